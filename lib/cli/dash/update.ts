import type { TaskFacts } from '../../task/info.js';
import type { Outcome } from './actions.js';
import { follow } from './list.js';
import { idsOf, listHeight, type Model, type TaskView, viewOf, withView, type View } from './model.js';
import { type Answer, hasSameAim, type Query, queryOf } from './query.js';
import { pressKey } from './keys.js';
import { say, type Step } from './step.js';
import { clampScroll } from './task-text.js';

export type Event = { readonly now: number } & (
  | { readonly type: 'key'; readonly key: string }
  | { readonly type: 'resize'; readonly columns: number; readonly rows: number }
  | { readonly type: 'answer'; readonly query: Query; readonly answer: Answer }
  | { readonly type: 'failure'; readonly message: string }
  | { readonly type: 'outcome'; readonly outcome: Outcome }
  | { readonly type: 'tick' }
);

export function update(before: Model, event: Event): Step {
  const model: Model = { ...before, now: event.now };
  switch (event.type) {
    case 'key':
      return pressKey(model, event.key);
    case 'resize':
      return { model: settle({ ...model, columns: event.columns, rows: event.rows }) };
    case 'answer':
      return { model: hasSameAim(event.query, queryOf(model)) ? receive(model, event.answer) : model };
    case 'failure':
      return { model: settle({ ...model, failure: event.message }) };
    case 'outcome':
      return { model: conclude(model, event.outcome), again: true };
    case 'tick':
      return { model: model.status && model.status.until <= model.now ? { ...model, status: undefined } : model };
  }
}

/** Lists keep what is selected on the screen, whatever has changed around them. */
function settle(model: Model): Model {
  return { ...model, views: model.views.map((view) => settleView(view, model)) };
}

function settleView(view: View, model: Model): View {
  if (view.kind === 'task') return { ...view, scroll: clampScroll(view, model, view.scroll) };
  if (view.readAt === undefined) return view;
  return { ...view, list: follow(view.list, idsOf(view), listHeight(model), model.settled) };
}

function receive(model: Model, answer: Answer): Model {
  const view = viewOf(model);
  const next = { ...merge(view, answer), readAt: model.now } as View;
  const better = { ...model, failure: undefined };
  return withView(better, settleView(next, better));
}

/** The view with what was read for it. */
function merge(view: View, answer: Answer): View {
  const { kind, ...data } = answer;
  if (view.kind === 'task' && answer.kind === 'task') return mergeTask({ ...view, info: answer.info }, answer.task);
  if (view.kind === 'queues' && answer.kind === 'queues') {
    const known = new Set(answer.names);
    const kept = [...view.infos].filter(([name]) => known.has(name));
    const infos = new Map([...kept, ...answer.infos.map((info) => [info.queue, info] as const)]);
    return { ...view, names: answer.names, infos };
  }
  return view.kind === kind ? ({ ...view, ...data } as View) : view;
}

function mergeTask(view: TaskView, task: TaskFacts | undefined): View {
  if (!task) return { ...view, gone: true };
  // Only a list can tell of orphans.
  const isOrphaned = task.state === 'active' && view.task.isOrphaned;
  return { ...view, gone: false, task: { ...task, isOrphaned } };
}

function conclude(model: Model, { text, good, settled }: Outcome): Model {
  const done: Model = { ...say(model, text, good), busy: false, settled: new Set(settled) };
  const unmark = (view: View): View =>
    view.kind === 'tasks' ? { ...view, marked: new Set([...view.marked].filter((id) => !done.settled.has(id))) } : view;
  return { ...done, views: done.views.map(unmark) };
}
