import type { QueueInfo } from '../../inspector/views.js';
import { refusalOf, needsConfirmation, questionOf, type TaskActionRequest, type DashAction } from './actions.js';
import { select, selectedOf } from './list.js';
import {
  idsOf,
  isLinked,
  type LinkedViews,
  listHeight,
  type Model,
  type TasksView,
  type TaskView,
  type View,
  viewOf,
  withView,
} from './model.js';
import { SELECTION_LOST } from './navigation.js';
import { withStatus, type Transition } from './transition.js';

/** The action on tasks of each key. */
export const ACTION_KEYS: Readonly<Record<string, DashAction>> = { R: 'run', A: 'archive', D: 'delete', C: 'cancel' };

const NO_TASKS = 'Runs and batches are changed by nestjs-asynq workflow and nestjs-asynq batch.';

/** Keys that act on tasks and queues, and keys that mark tasks. */
export function pressActionKey(model: Model, key: string): Transition {
  const view = viewOf(model);
  if (key === 'space') return { model: mark(model) };
  if (key === '*') return { model: markAll(model) };
  if (key !== 'P' && !ACTION_KEYS[key]) return { model };
  if (model.busy) return { model: withStatus(model, 'The last action is still running.') };
  if (key === 'P') return togglePause(model);
  const action = ACTION_KEYS[key]!;
  if (isLinked(view)) return { model: withStatus(model, NO_TASKS) };
  if (view.kind !== 'tasks' && view.kind !== 'task') {
    const all = action === 'cancel' ? '' : ` All of its tasks at once: nestjs-asynq task ${action}all.`;
    return { model: withStatus(model, `Open a state first.${all}`) };
  }
  const request = view.kind === 'tasks' ? requestForSelection(view, action) : requestForTask(view, action);
  if (typeof request === 'string') return { model: withStatus(model, request) };
  if (needsConfirmation(request))
    return { model: { ...model, prompt: { kind: 'confirm', question: questionOf(request), request } } };
  return { model: { ...model, busy: true }, request };
}

/** A request for the tasks that the screen showed when the key was pressed, or why there is none. */
function requestForSelection(view: TasksView, action: DashAction): TaskActionRequest | string {
  const refused = refusalOf(action, view.location.state);
  if (refused) return refused;
  const selected = selectedOf(view.list);
  const ids = view.marked.size > 0 ? [...view.marked] : selected === undefined ? [] : [selected];
  if (ids.length === 0) return view.list.lost ? SELECTION_LOST : 'There is no task here.';
  const damaged = view.rows.find((row) => !row.task && ids.includes(row.id));
  if (damaged && action !== 'delete') return `"${damaged.id}" cannot be read, only deleted: ${damaged.damage}`;
  return { action, queue: view.queue, location: view.location, ids };
}

function requestForTask({ task, queue, id, gone }: TaskView, action: DashAction): TaskActionRequest | string {
  if (gone) return 'The task is no longer in the queue.';
  const { state, group } = task;
  const location = state === 'aggregating' ? { state, group } : { state };
  return refusalOf(action, state) ?? { action, queue, location, ids: [id] };
}

/** Pauses the queue, or ends its pause, by what the screen showed. */
function togglePause(model: Model): Transition {
  const view = viewOf(model);
  if (isLinked(view)) return { model: withStatus(model, 'Open a queue first.') };
  const queue = view.kind === 'queues' ? selectedOf(view.list) : view.queue;
  if (queue === undefined) return { model: withStatus(model, SELECTION_LOST) };
  const info = infoOf(view, queue);
  if (!info) return { model: withStatus(model, 'The figures of the queue are not read yet.') };
  return { model: { ...model, busy: true }, request: { action: info.paused ? 'resume' : 'pause', queue } };
}

/** The figures of the queue as this view read them last. */
export function infoOf(view: Exclude<View, LinkedViews>, queue: string): QueueInfo | undefined {
  return view.kind === 'queues' ? view.infos.get(queue) : view.info;
}

function mark(model: Model): Model {
  const view = viewOf(model);
  if (view.kind !== 'tasks') return withStatus(model, 'Only tasks can be marked.');
  const id = selectedOf(view.list);
  if (id === undefined) return view.list.lost ? withStatus(model, SELECTION_LOST) : model;
  const marked = new Set(view.marked);
  if (!marked.delete(id)) marked.add(id);
  const list = select(view.list, idsOf(view), listHeight(model), view.list.index + 1);
  return withView(model, { ...view, marked, list });
}

/** Marks all tasks on this page; if they are marked, none on any page. */
function markAll(model: Model): Model {
  const view = viewOf(model);
  if (view.kind !== 'tasks') return withStatus(model, 'Only tasks can be marked.');
  const here = idsOf(view);
  const isFull = here.every((id) => view.marked.has(id));
  return withView(model, { ...view, marked: isFull ? new Set() : new Set([...view.marked, ...here]) });
}
