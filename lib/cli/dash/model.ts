import type { GroupSize, TaskLocation } from '../../broker/inspection.js';
import type { DailyStats, QueueInfo } from '../../inspector/views.js';
import type { WorkflowDetails, WorkflowInfo } from '../../inspector/workflows.js';
import type { BatchInfo } from '../../task/batch.js';
import type { TaskDetails } from '../../task/info.js';
import { TASK_STATES, type TaskState } from '../../wire/states.js';
import type { ActionRequest } from './actions.js';
import { type StepLine, toStepLines } from '../output/step-tree.js';
import { AT_START, type List } from './list.js';

/*
 * The whole state of the dashboard. Views form a stack: queues, one queue, (its groups,) tasks, one task; or runs, one run; or batches. `update.ts` computes
 * the next state, `render.ts` the screen; both are pure.
 */

interface LoadedView {
  /** When the data was read; `undefined` before. */
  readonly readAt: number | undefined;
}

/** A view of a queue, or of something in it. */
interface InQueue extends LoadedView {
  readonly queue: string;
  /** The figures of the queue. */
  readonly info: QueueInfo | undefined;
}

export interface QueuesView extends LoadedView {
  readonly kind: 'queues';
  readonly list: List;
  /** Text that names must contain. */
  readonly filter: string;
  readonly names: readonly string[];
  /** The figures of the queues that the screen has shown. */
  readonly infos: ReadonlyMap<string, QueueInfo>;
}

export interface QueueView extends InQueue {
  readonly kind: 'queue';
  /** The list of states. */
  readonly list: List;
  readonly days: readonly DailyStats[];
}

export interface GroupsView extends InQueue {
  readonly kind: 'groups';
  readonly list: List;
  readonly filter: string;
  readonly groups: readonly GroupSize[];
}

/** A page of tasks: where it begins, and how it is reached. */
export interface Page {
  /** How many tasks are before it, approximately. */
  readonly first: number;
  readonly cursor?: string;
  /** Instead of a cursor, after a jump: the number of the page, from 1, for pages of that size. */
  readonly jump?: { readonly page: number; readonly size: number };
}

/** A task in a list, or an entry without a readable message. */
export interface Row {
  readonly id: string;
  readonly task: TaskDetails | undefined;
  readonly damage: string;
}

export interface TasksView extends InQueue {
  readonly kind: 'tasks';
  readonly location: TaskLocation;
  readonly list: List;
  readonly marked: ReadonlySet<string>;
  /** The pages on the path to this one, which is the last. */
  readonly trail: readonly Page[];
  /** The text as typed: see `filter.ts`. */
  readonly filter: string;
  readonly rows: readonly Row[];
  readonly cursor: string | undefined;
  /** How many tasks a search has read. */
  readonly scanned: number;
}

export interface TaskView extends InQueue {
  readonly kind: 'task';
  readonly id: string;
  /** How many lines are above the screen. */
  readonly scroll: number;
  /** The task as it was read last. */
  readonly task: TaskDetails;
  /** The task is no longer in the queue. */
  readonly gone: boolean;
}

/** A list beside the queues. `queue`: only what that queue keeps; `undefined`: that of all queues. */
interface LinkedView extends LoadedView {
  readonly queue: string | undefined;
  readonly list: List;
}

/** The newest runs of workflows. */
export interface RunsView extends LinkedView {
  readonly kind: 'runs';
  readonly runs: readonly WorkflowInfo[];
}

/** The newest batches. */
export interface BatchesView extends LinkedView {
  readonly kind: 'batches';
  readonly batches: readonly BatchInfo[];
}

/** The steps of a run. */
export interface RunView extends LinkedView {
  readonly kind: 'run';
  readonly queue: string;
  readonly id: string;
  /** `undefined`: it was deleted, or is not read yet. */
  readonly run: WorkflowDetails | undefined;
}

export type View = QueuesView | QueueView | GroupsView | TasksView | TaskView | RunsView | BatchesView | RunView;

/** Views beside the queues. */
export type LinkedViews = RunsView | BatchesView | RunView;

export const isLinked = (view: View): view is LinkedViews =>
  view.kind === 'runs' || view.kind === 'batches' || view.kind === 'run';

export type Prompt =
  | { readonly kind: 'confirm'; readonly question: string; readonly request: ActionRequest }
  | { readonly kind: 'filter'; readonly text: string };

export interface Status {
  readonly text: string;
  readonly good: boolean;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export interface Model {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly columns: number;
  readonly rows: number;
  /** The address of Redis, for the header. */
  readonly where: string;
  /** The last one is on the screen; there is at least one. */
  readonly views: readonly View[];
  readonly help: boolean;
  readonly prompt: Prompt | undefined;
  /** The result of the last key. */
  readonly status: Status | undefined;
  /** Why the data could not be read. */
  readonly failure: string | undefined;
  /** An action is running. */
  readonly busy: boolean;
  /** The ids of the tasks that the last action changed. */
  readonly actedOn: ReadonlySet<string>;
}

export function createModel(start: Pick<Model, 'now' | 'columns' | 'rows' | 'where'>): Model {
  const queues: QueuesView = {
    kind: 'queues',
    list: AT_START,
    filter: '',
    names: [],
    infos: new Map(),
    readAt: undefined,
  };
  return {
    ...start,
    views: [queues],
    help: false,
    prompt: undefined,
    status: undefined,
    failure: undefined,
    busy: false,
    actedOn: new Set(),
  };
}

/** How many tasks the list has in all; `undefined` if that is unknown. */
export function totalOf({ info, location }: TasksView): number | undefined {
  return location.group === undefined ? info?.[location.state] : undefined;
}

export const viewOf = (model: Model): View => model.views.at(-1)!;

/** The model with another view on the screen. */
export const withView = (model: Model, view: View): Model => ({ ...model, views: [...model.views.slice(0, -1), view] });

/** The states in the order of a task's life. */
export const STATES: readonly TaskState[] = [
  ...(['pending', 'active', 'scheduled', 'retry', 'archived', 'completed', 'waiting', 'held', 'aggregating'] as const),
] satisfies readonly (typeof TASK_STATES)[number][];

const containing = (names: readonly string[], filter: string): readonly string[] =>
  filter === '' ? names : names.filter((name) => name.includes(filter));

/** The queues that match the filter. */
export const queuesOf = ({ names, filter }: Pick<QueuesView, 'names' | 'filter'>): readonly string[] =>
  containing(names, filter);

/** Two queues may keep runs of one id. */
export const keyOfRun = ({ queue, id }: WorkflowInfo): string => `${queue} ${id}`;

/** The steps of a run, each below the last of those it waits for. */
export const stepsOf = ({ run, readAt }: RunView): readonly StepLine[] =>
  run ? toStepLines(run.graph, readAt ?? 0) : [];

/** The ids of a list's rows. */
export function idsOf(view: Exclude<View, TaskView>): readonly string[] {
  switch (view.kind) {
    case 'queues':
      return queuesOf(view);
    case 'queue':
      return STATES;
    case 'groups':
      return containing(
        view.groups.map(({ group }) => group),
        view.filter,
      );
    case 'tasks':
      return view.rows.map(({ id }) => id);
    case 'runs':
      return view.runs.map(keyOfRun);
    case 'batches':
      return view.batches.map(({ id }) => id);
    case 'run':
      return stepsOf(view).map(({ name }) => name);
  }
}

/** Header, status and keys. */
const FIXED_LINES = 3;

/** Lines for the view itself. */
export const bodyHeight = ({ rows, failure }: Model): number => Math.max(1, rows - FIXED_LINES - (failure ? 1 : 0));

/** How many rows of a list the screen shows. */
export const listHeight = (model: Model): number => Math.max(1, bodyHeight(model) - 1);
