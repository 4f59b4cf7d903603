import type { QueueInfo } from '../../inspector/views.js';
import { impossibility, isGrave, questionOf, type TaskDeed, type TaskVerb } from './actions.js';
import { select, selectedOf } from './list.js';
import { idsOf, listHeight, type Model, type TasksView, type TaskView, type View, viewOf, withView } from './model.js';
import { LOST } from './navigation.js';
import { say, type Step } from './step.js';

/** The keys of actions on tasks. */
export const VERBS: Readonly<Record<string, TaskVerb>> = { R: 'run', A: 'archive', D: 'delete', C: 'cancel' };

/** Keys that do something, and those that choose to what. */
export function act(model: Model, key: string): Step {
  const view = viewOf(model);
  if (key === 'space') return { model: mark(model) };
  if (key === '*') return { model: markAll(model) };
  if (key !== 'P' && !VERBS[key]) return { model };
  if (model.busy) return { model: say(model, 'The last action is still under way.') };
  if (key === 'P') return steer(model);
  const verb = VERBS[key]!;
  if (view.kind !== 'tasks' && view.kind !== 'task') {
    const all = verb === 'cancel' ? '' : ` All of its tasks at once: nestjs-asynq task ${verb}all.`;
    return { model: say(model, `Open a state first.${all}`) };
  }
  const deed = view.kind === 'tasks' ? deedOf(view, verb) : deedOfTask(view, verb);
  if (typeof deed === 'string') return { model: say(model, deed) };
  if (isGrave(deed)) return { model: { ...model, prompt: { kind: 'confirm', question: questionOf(deed), deed } } };
  return { model: { ...model, busy: true }, deed };
}

/** By what was seen when the key was pressed; or why not. */
function deedOf(view: TasksView, verb: TaskVerb): TaskDeed | string {
  const refused = impossibility(verb, view.place.state);
  if (refused) return refused;
  const selected = selectedOf(view.list);
  const ids = view.marked.size > 0 ? [...view.marked] : selected === undefined ? [] : [selected];
  if (ids.length === 0) return view.list.lost ? LOST : 'There is no task here.';
  const damaged = view.rows.find((row) => !row.task && ids.includes(row.id));
  if (damaged && verb !== 'delete') return `"${damaged.id}" cannot be read, only deleted: ${damaged.damage}`;
  return { verb, queue: view.queue, place: view.place, ids };
}

function deedOfTask({ task, queue, id, gone }: TaskView, verb: TaskVerb): TaskDeed | string {
  if (gone) return 'The queue has no such task any more.';
  const { state, group } = task;
  const place = state === 'aggregating' ? { state, group } : { state };
  return impossibility(verb, state) ?? { verb, queue, place, ids: [id] };
}

/** Pauses the queue, or ends its pause, by how it was seen. */
function steer(model: Model): Step {
  const view = viewOf(model);
  const queue = view.kind === 'queues' ? selectedOf(view.list) : view.queue;
  if (queue === undefined) return { model: say(model, LOST) };
  const info = infoOf(view, queue);
  if (!info) return { model: say(model, 'It is not known yet how the queue stands.') };
  return { model: { ...model, busy: true }, deed: { verb: info.paused ? 'resume' : 'pause', queue } };
}

/** The queue as it was seen last in this view. */
export function infoOf(view: View, queue: string): QueueInfo | undefined {
  return view.kind === 'queues' ? view.infos.get(queue) : view.info;
}

function mark(model: Model): Model {
  const view = viewOf(model);
  if (view.kind !== 'tasks') return say(model, 'Only tasks are marked.');
  const id = selectedOf(view.list);
  if (id === undefined) return view.list.lost ? say(model, LOST) : model;
  const marked = new Set(view.marked);
  if (!marked.delete(id)) marked.add(id);
  const list = select(view.list, idsOf(view), listHeight(model), view.list.index + 1);
  return withView(model, { ...view, marked, list });
}

/** All on this page, or none anywhere. */
function markAll(model: Model): Model {
  const view = viewOf(model);
  if (view.kind !== 'tasks') return say(model, 'Only tasks are marked.');
  const here = idsOf(view);
  const isFull = here.every((id) => view.marked.has(id));
  return withView(model, { ...view, marked: isFull ? new Set() : new Set([...view.marked, ...here]) });
}
