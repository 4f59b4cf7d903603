import type { TaskDetails } from '../../task/info.js';
import type { ActionResult } from './actions.js';
import { follow } from './list.js';
import { idsOf, listHeight, type Model, type TaskView, viewOf, withView, type View } from './model.js';
import { type Reply, hasSameTarget, type Query, queryOf } from './query.js';
import { pressKey } from './keys.js';
import { withStatus, type Transition } from './transition.js';
import { clampScroll } from './task-text.js';

export type Event = { readonly now: number } & (
  | { readonly type: 'key'; readonly key: string }
  | { readonly type: 'resize'; readonly columns: number; readonly rows: number }
  | { readonly type: 'reply'; readonly query: Query; readonly reply: Reply }
  | { readonly type: 'failure'; readonly message: string }
  | { readonly type: 'result'; readonly result: ActionResult }
  | { readonly type: 'tick' }
);

export function update(before: Model, event: Event): Transition {
  const model: Model = { ...before, now: event.now };
  switch (event.type) {
    case 'key':
      return pressKey(model, event.key);
    case 'resize':
      return { model: keepSelections({ ...model, columns: event.columns, rows: event.rows }) };
    case 'reply':
      return { model: hasSameTarget(event.query, queryOf(model)) ? receive(model, event.reply) : model };
    case 'failure':
      return { model: keepSelections({ ...model, failure: event.message }) };
    case 'result':
      return { model: applyResult(model, event.result), reload: true };
    case 'tick':
      return { model: model.status && model.status.until <= model.now ? { ...model, status: undefined } : model };
  }
}

/** Keeps the selection of each list, and keeps it on the screen. */
function keepSelections(model: Model): Model {
  return { ...model, views: model.views.map((view) => keepSelection(view, model)) };
}

function keepSelection(view: View, model: Model): View {
  if (view.kind === 'task') return { ...view, scroll: clampScroll(view, model, view.scroll) };
  if (view.readAt === undefined) return view;
  return { ...view, list: follow(view.list, idsOf(view), listHeight(model), model.actedOn) };
}

function receive(model: Model, reply: Reply): Model {
  const view = viewOf(model);
  const next = { ...merge(view, reply), readAt: model.now } as View;
  const better = { ...model, failure: undefined };
  return withView(better, keepSelection(next, better));
}

/** The view with the data that was read for it. */
function merge(view: View, reply: Reply): View {
  const { kind, ...data } = reply;
  if (view.kind === 'task' && reply.kind === 'task') return mergeTask({ ...view, info: reply.info }, reply.task);
  if (view.kind === 'queues' && reply.kind === 'queues') {
    const known = new Set(reply.names);
    const kept = [...view.infos].filter(([name]) => known.has(name));
    const infos = new Map([...kept, ...reply.infos.map((info) => [info.queue, info] as const)]);
    return { ...view, names: reply.names, infos };
  }
  return view.kind === kind ? ({ ...view, ...data } as View) : view;
}

function mergeTask(view: TaskView, task: TaskDetails | undefined): View {
  if (!task) return { ...view, gone: true };
  // Only lists report whether a task is orphaned.
  const isOrphaned = task.state === 'active' && view.task.isOrphaned;
  return { ...view, gone: false, task: { ...task, isOrphaned } };
}

function applyResult(model: Model, { text, good, actedOn }: ActionResult): Model {
  const done: Model = { ...withStatus(model, text, good), busy: false, actedOn: new Set(actedOn) };
  const unmark = (view: View): View =>
    view.kind === 'tasks' ? { ...view, marked: new Set([...view.marked].filter((id) => !done.actedOn.has(id))) } : view;
  return { ...done, views: done.views.map(unmark) };
}
