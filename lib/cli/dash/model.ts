import type { GroupSize, Place } from '../../broker/inspection.js';
import type { DailyStats, QueueInfo } from '../../inspector/views.js';
import type { TaskFacts } from '../../task/info.js';
import { TASK_STATES, type TaskState } from '../../wire/states.js';
import type { Deed } from './deeds.js';
import { AT_START, type List } from './list.js';

/*
 * All there is to know about the dashboard at one moment. Views lie on a stack: queues, one queue, (its groups,) tasks, one
 * task. `update.ts` says what follows what, `render.ts` what it looks like; neither does anything else.
 */

interface Looking {
  /** When its data was read; `undefined` as long as there is none. */
  readonly readAt: number | undefined;
}

/** Views of something in a queue. */
interface InQueue extends Looking {
  readonly queue: string;
  /** How the queue stands. */
  readonly info: QueueInfo | undefined;
}

export interface QueuesView extends Looking {
  readonly kind: 'queues';
  readonly list: List;
  /** Text in the names. */
  readonly filter: string;
  readonly names: readonly string[];
  /** Of the queues that were on the screen so far. */
  readonly infos: ReadonlyMap<string, QueueInfo>;
}

export interface QueueView extends InQueue {
  readonly kind: 'queue';
  /** Of states. */
  readonly list: List;
  readonly days: readonly DailyStats[];
}

export interface GroupsView extends InQueue {
  readonly kind: 'groups';
  readonly list: List;
  readonly filter: string;
  readonly groups: readonly GroupSize[];
}

/** A page of tasks: where it begins, and how it was come to. */
export interface Page {
  /** How many tasks are before it, as far as that can be told. */
  readonly first: number;
  readonly cursor?: string;
  /** In place of a cursor, where somebody has jumped: the number of the page, of that size. */
  readonly jump?: { readonly page: number; readonly size: number };
}

/** A task in a list, or an entry without a readable message. */
export interface Row {
  readonly id: string;
  readonly task: TaskFacts | undefined;
  readonly damage: string;
}

export interface TasksView extends InQueue {
  readonly kind: 'tasks';
  readonly place: Place;
  readonly list: List;
  readonly marked: ReadonlySet<string>;
  /** The pages on the way here, this one last. */
  readonly trail: readonly Page[];
  /** As it was typed: see `filter.ts`. */
  readonly filter: string;
  readonly rows: readonly Row[];
  readonly cursor: string | undefined;
  /** How many tasks a search has looked at. */
  readonly scanned: number;
}

export interface TaskView extends InQueue {
  readonly kind: 'task';
  readonly id: string;
  /** Lines above the screen. */
  readonly scroll: number;
  /** As it was seen last. */
  readonly task: TaskFacts;
  /** The queue has it no more. */
  readonly gone: boolean;
}

export type View = QueuesView | QueueView | GroupsView | TasksView | TaskView;

export type Prompt =
  | { readonly kind: 'confirm'; readonly question: string; readonly deed: Deed }
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
  /** Redis, for the header. */
  readonly where: string;
  /** The last one is on the screen; there is always one. */
  readonly views: readonly View[];
  readonly help: boolean;
  readonly prompt: Prompt | undefined;
  /** What came of the last key. */
  readonly status: Status | undefined;
  /** Why the data could not be read. */
  readonly failure: string | undefined;
  /** Something is being done. */
  readonly busy: boolean;
  /** Ids of the tasks it was done to. */
  readonly settled: ReadonlySet<string>;
}

export function createModel(start: Pick<Model, 'now' | 'columns' | 'rows' | 'where'>): Model {
  const queues: QueuesView = {
    ...{ kind: 'queues', list: AT_START, filter: '', names: [], infos: new Map(), readAt: undefined },
  };
  return {
    ...start,
    ...{ views: [queues], help: false, prompt: undefined, status: undefined, failure: undefined, busy: false },
    settled: new Set(),
  };
}

/** How many tasks there are in all; `undefined` where that is not known. */
export function totalOf({ info, place }: TasksView): number | undefined {
  return place.group === undefined ? info?.[place.state] : undefined;
}

export const viewOf = (model: Model): View => model.views.at(-1)!;

/** The model with another view in place of the one on the screen. */
export const withView = (model: Model, view: View): Model => ({ ...model, views: [...model.views.slice(0, -1), view] });

/** In the order of a task's life. */
export const STATES: readonly TaskState[] = [
  ...(['pending', 'active', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const),
] satisfies readonly (typeof TASK_STATES)[number][];

const containing = (names: readonly string[], filter: string): readonly string[] =>
  filter === '' ? names : names.filter((name) => name.includes(filter));

/** The queues that fit what is looked for. */
export const queuesOf = ({ names, filter }: Pick<QueuesView, 'names' | 'filter'>): readonly string[] =>
  containing(names, filter);

/** What the rows of a list are called. */
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
  }
}

/** Header, status and keys; the line of a failure; the heads of columns. */
const AROUND = 3;

/** Lines between what is above and below. */
export const bodyHeight = ({ rows, failure }: Model): number => Math.max(1, rows - AROUND - (failure ? 1 : 0));

/** Rows of a list that are on the screen. */
export const listHeight = (model: Model): number => Math.max(1, bodyHeight(model) - 1);
