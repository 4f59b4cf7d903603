import type { TaskLocation } from '../../broker/inspection.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { TaskState } from '../../wire/states.js';
import { parseFilter } from './filter.js';
import { AT_END, AT_START, type List, select, selectedOf } from './list.js';
import {
  bodyHeight,
  idsOf,
  isLinked,
  keyOfRun,
  listHeight,
  type Model,
  type Page,
  type RunsView,
  type RunView,
  type TasksView,
  totalOf,
  type TaskView,
  type View,
  viewOf,
  withView,
} from './model.js';
import { withStatus } from './transition.js';
import { clampScroll } from './task-text.js';

export type Move = 'up' | 'down' | 'screenUp' | 'screenDown' | 'first' | 'last';

/** Moves the selection on the screen, or to another page of the list. */
export function move(model: Model, direction: Move): Model {
  const view = viewOf(model);
  if (view.kind === 'task') {
    const by = stepOf(direction, bodyHeight(model));
    return withView(model, { ...view, scroll: clampScroll(view, model, view.scroll + by) });
  }
  const ids = idsOf(view);
  const { index } = view.list;
  if (view.kind === 'tasks') {
    const turned = turnPage(view, direction, ids.length);
    if (turned) return withView(model, turned);
  }
  const by = stepOf(direction, listHeight(model));
  // The selected row disappeared: moving down selects the row that took its place.
  const from = view.list.lost && direction === 'down' ? index - 1 : index;
  return withView(model, { ...view, list: select(view.list, ids, listHeight(model), from + by) });
}

/** More than any list has rows. */
const BEYOND_ANY_LIST = 1e9;

function stepOf(direction: Move, screen: number): number {
  const steps: Readonly<Record<Move, number>> = {
    up: -1,
    down: 1,
    screenUp: -screen,
    screenDown: screen,
    first: -BEYOND_ANY_LIST,
    last: BEYOND_ANY_LIST,
  };
  return steps[direction];
}

/** The view on another page, if the move leads there. */
function turnPage(view: TasksView, direction: Move, count: number): TasksView | undefined {
  const { index } = view.list;
  if (direction === 'first' && view.trail.at(-1)!.first > 0) return onPage(view, [{ first: 0 }], AT_START);
  if (direction === 'last') return toLastPage(view, count);
  if (view.readAt === undefined) return undefined;
  const goesDown = direction === 'down' || direction === 'screenDown';
  if (goesDown && index >= count - 1 && view.cursor !== undefined) {
    const first = view.trail.at(-1)!.first + (view.scanned || count);
    return onPage(view, [...view.trail, { first, cursor: view.cursor }], AT_START);
  }
  const goesUp = direction === 'up' || direction === 'screenUp';
  const before = goesUp && index <= 0 ? trailBefore(view.trail) : undefined;
  return before && onPage(view, before, AT_END);
}

function trailBefore(trail: readonly Page[]): readonly Page[] | undefined {
  if (trail.length > 1) return trail.slice(0, -1);
  const { jump } = trail[0]!;
  if (!jump) return undefined;
  return [pageAt(jump.page - 1, jump.size)];
}

const pageAt = (page: number, size: number): Page =>
  page <= 1 ? { first: 0 } : { first: (page - 1) * size, jump: { page, size } };

/** Jumps to the last page; a search has none. */
function toLastPage(view: TasksView, count: number): TasksView | undefined {
  const total = totalOf(view);
  if (view.cursor === undefined || total === undefined || count === 0 || parseFilter(view.filter)) return undefined;
  return onPage(view, [pageAt(Math.ceil(total / count), count)], AT_END);
}

const onPage = (view: TasksView, trail: readonly Page[], list: List): TasksView => ({
  ...view,
  trail,
  list,
  rows: [],
  cursor: undefined,
  readAt: undefined,
});

/** Opens the selected row in a new view. */
export function open(model: Model): Model {
  const view = viewOf(model);
  if (view.kind === 'task') return model;
  const id = selectedOf(view.list);
  if (id === undefined) return withStatus(model, view.list.lost ? SELECTION_LOST : 'There is nothing to open.');
  const next = viewFrom(view, id);
  if (typeof next === 'string') return withStatus(model, next);
  return next ? { ...model, views: [...model.views, next] } : model;
}

export const SELECTION_LOST = 'The selected row disappeared; select another first.';

function viewFrom(view: Exclude<View, TaskView>, id: string): View | string | undefined {
  switch (view.kind) {
    case 'queues':
      return { kind: 'queue', queue: id, list: AT_START, info: view.infos.get(id), days: [], readAt: undefined };
    case 'queue': {
      const { queue, info } = view;
      if (id !== 'aggregating') return tasksOf(queue, info, { state: id as TaskState });
      return { kind: 'groups', queue, info, list: AT_START, filter: '', groups: [], readAt: undefined };
    }
    case 'groups':
      return tasksOf(view.queue, view.info, { state: 'aggregating', group: id });
    case 'tasks':
      return taskOf(view, id);
    case 'runs':
      return runOf(view, id);
    case 'batches':
      return `More of it: nestjs-asynq batch inspect -q ${view.batches.find((batch) => batch.id === id)?.queue} ${id}`;
    case 'run':
      return taskOfStep(view, id.trim());
  }
}

function runOf({ runs }: RunsView, key: string): RunView | undefined {
  const run = runs.find((one) => keyOfRun(one) === key);
  if (!run) return undefined;
  return { kind: 'run', queue: run.queue, id: run.id, list: AT_START, run: undefined, readAt: undefined };
}

function taskOfStep({ run }: RunView, name: string): string {
  const step = run?.graph.find((one) => one.name === name);
  const hasTask = step?.state === 'ready' || step?.state === 'failed';
  return hasTask ? `Its task: nestjs-asynq task inspect -q ${step.queue} ${step.taskId}` : 'The step has no task.';
}

/** The runs or batches of the queue that is on the screen, or of all. */
export function openLinked(model: Model, kind: 'runs' | 'batches'): Model {
  const view = viewOf(model);
  if (view.kind === kind) return model;
  const queue = view.kind === 'queues' ? undefined : view.queue;
  const fresh = { queue, list: AT_START, readAt: undefined };
  const next: View = kind === 'runs' ? { ...fresh, kind, runs: [] } : { ...fresh, kind, batches: [] };
  // One takes the place of the other.
  const before = isLinked(view) ? model.views.filter((one) => !isLinked(one)) : model.views;
  return { ...model, views: [...before, next] };
}

function tasksOf(queue: string, info: QueueInfo | undefined, location: TaskLocation): TasksView {
  return {
    kind: 'tasks',
    queue,
    info,
    location,
    list: AT_START,
    marked: new Set(),
    trail: [{ first: 0 }],
    filter: '',
    rows: [],
    cursor: undefined,
    scanned: 0,
    readAt: undefined,
  };
}

function taskOf({ rows, queue, info, readAt }: TasksView, id: string): TaskView | string | undefined {
  const row = rows.find((one) => one.id === id);
  if (row && !row.task) return `This entry cannot be read: ${row.damage}`;
  return row?.task && { kind: 'task', queue, info, id, scroll: 0, task: row.task, gone: false, readAt };
}

/** Removes the filter, or returns to the view before. */
export function back(model: Model): Model {
  const view = viewOf(model);
  if ('filter' in view && view.filter !== '') return applyFilter(model, '');
  return model.views.length > 1 ? { ...model, views: model.views.slice(0, -1) } : model;
}

/** Applies a filter; a list with a new filter starts at its first row. */
export function applyFilter(model: Model, filter: string): Model {
  const view = viewOf(model);
  if (!('filter' in view) || view.filter === filter) return model;
  const list = AT_START;
  if (view.kind !== 'tasks') return withView(model, { ...view, filter, list });
  return withView(model, onPage({ ...view, filter }, [{ first: 0 }], list));
}
