import type { GroupSize, TaskLocation } from '../../broker/inspection.js';
import type { DailyStats, QueueInfo } from '../../inspector/views.js';
import type { WorkflowDetails, WorkflowInfo } from '../../inspector/workflows.js';
import type { BatchInfo } from '../../task/batch.js';
import type { TaskDetails } from '../../task/info.js';
import { type Criteria, parseFilter } from './filter.js';
import { listHeight, type Model, type Page, type Row, viewOf } from './model.js';

/** What a view shows. */
export type QueryTarget =
  | { readonly kind: 'queues'; readonly filter: string }
  | { readonly kind: 'queue'; readonly queue: string }
  | { readonly kind: 'groups'; readonly queue: string }
  | {
      readonly kind: 'tasks';
      readonly queue: string;
      readonly location: TaskLocation;
      readonly page: Page;
      readonly criteria: Criteria | undefined;
    }
  | { readonly kind: 'task'; readonly queue: string; readonly id: string }
  | LinkedTarget;

/** What is read beside the queues. */
export type LinkedTarget =
  | { readonly kind: 'runs' | 'batches'; readonly queue: string | undefined }
  | { readonly kind: 'run'; readonly queue: string; readonly id: string };

export const isLinkedTarget = (target: QueryTarget): target is LinkedTarget =>
  target.kind === 'runs' || target.kind === 'run' || target.kind === 'batches';

/** What must be read for the screen. */
export interface Query {
  readonly target: QueryTarget;
  /** The rows on the screen, for lists that are read row by row. */
  readonly top: number;
  readonly height: number;
}

export interface Replies {
  readonly queues: { readonly names: readonly string[]; readonly infos: readonly QueueInfo[] };
  readonly queue: InQueue & { readonly days: readonly DailyStats[] };
  readonly groups: InQueue & { readonly groups: readonly GroupSize[] };
  readonly tasks: InQueue & {
    readonly rows: readonly Row[];
    readonly cursor: string | undefined;
    /** How many tasks a search has read. */
    readonly scanned: number;
  };
  /** `undefined`: there is no such task. */
  readonly task: InQueue & { readonly task: TaskDetails | undefined };
  readonly runs: { readonly runs: readonly WorkflowInfo[] };
  readonly batches: { readonly batches: readonly BatchInfo[] };
  /** `undefined`: there is no such run. */
  readonly run: { readonly run: WorkflowDetails | undefined };
}

interface InQueue {
  readonly info: QueueInfo;
}

export type Reply = { [Kind in keyof Replies]: { readonly kind: Kind } & Replies[Kind] }[keyof Replies];

export function queryOf(model: Model): Query {
  const view = viewOf(model);
  // The line of a failure must not change the query.
  const height = listHeight({ ...model, failure: undefined });
  switch (view.kind) {
    case 'queues':
      return { target: { kind: 'queues', filter: view.filter }, top: view.list.top, height };
    case 'tasks': {
      const { kind, queue, location } = view;
      const target = { kind, queue, location, page: view.trail.at(-1)!, criteria: parseFilter(view.filter) };
      // On a smaller screen the page keeps its rows: the selected one is among them.
      return { target, top: 0, height: target.criteria ? 0 : Math.max(height, view.rows.length) };
    }
    case 'task':
    case 'run':
      return { target: { kind: view.kind, queue: view.queue, id: view.id }, top: 0, height: 0 };
    case 'runs':
    case 'batches':
      return { target: { kind: view.kind, queue: view.queue }, top: 0, height: 0 };
    default:
      return { target: { kind: view.kind, queue: view.queue }, top: 0, height: 0 };
  }
}

/** A key that is equal for equal queries. */
export const keyOf = (query: Query): string => JSON.stringify(query);

/** Whether both are for the same view, perhaps for other rows of it. */
export const hasSameTarget = (a: Query, b: Query): boolean => JSON.stringify(a.target) === JSON.stringify(b.target);

/** Whether the query is repeated on a timer. A search is not: it may read a thousand tasks. */
export const isRefreshed = ({ target }: Query): boolean => target.kind !== 'tasks' || target.criteria === undefined;
