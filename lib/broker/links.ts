import type { StepLink } from '../task/contexts.js';
import type { FailurePolicy, TimeoutPolicy } from '../task/links.js';
import type { BoundedStatus, EnqueueRequest, EnqueueStatus } from './enqueue-request.js';
import type { LinkNews } from './link-news.js';

/*
 * Links between tasks: who waits for whom, and who must be notified when a task ends. A place is where
 * links are kept: a queue, or the marks of a task type (see placeOfMarks). One place is one slot of
 * a Redis Cluster, and what happens in it happens in one step. Places send each other parcels: a parcel
 * is stored where it comes from in the step that caused it, delivered at least once, applied
 * by identity (twice is once), and then acknowledged.
 */

export {
  FAILURE_POLICIES,
  type FailurePolicy,
  MAX_PREREQUISITES,
  TECHNICAL_RETENTION,
  TIMEOUT_POLICIES,
  type TimeoutPolicy,
} from '../task/links.js';
export { WAITING_GROUP } from '../wire/keys.js';
export type { LinkNews } from './link-news.js';

/** The place of the marks of a task type. */
export const placeOfMarks = (type: string): string => `~${type}`;

/** A message between two places. */
export interface Parcel {
  readonly from: string;
  readonly to: string;
  /** Its identity in the outbox of `from`. */
  readonly key: string;
  /** JSON; only the store reads it. */
  readonly body: string;
  readonly data: Buffer;
}

/** What a task waits for: a task, or the end of any task of this type with this key. */
export type Prerequisite =
  | { readonly queue: string; readonly id: string }
  | { readonly type: string; readonly key: string };

/** The wait of a task. */
export interface Wait {
  /** In order: the index of a prerequisite is the identity of its edge. */
  readonly prerequisites: readonly Prerequisite[];
  readonly onFailure: FailurePolicy;
  readonly onTimeout: TimeoutPolicy;
  /** Unix seconds. Together with the id of the task it is the identity of the wait. */
  readonly deadline: number;
}

/** Where the end of a task is remembered for those that wait for its key. */
export interface MarkRequest {
  readonly type: string;
  readonly key: string;
  /** Seconds, at least 1. */
  readonly rememberFor: number;
}

/** A task to create that waits, or whose end is remembered. */
export interface LinkedRequest extends EnqueueRequest {
  readonly wait?: Wait;
  readonly mark?: MarkRequest;
}

export const isLinked = ({ wait, mark }: LinkedRequest): boolean => wait !== undefined || mark !== undefined;

/**
 * Who is notified of the end of a task, as the store keeps it. `d`: see `until`, `lost`: see `missing` of WatchRequest;
 * `since`: when the run has started; `again`: how often the step was run again by a retry of its run.
 */
export type Watcher =
  | {
      readonly k: 'w';
      readonly to: string;
      readonly id: string;
      readonly n: number;
      readonly d: number;
      readonly lost?: string;
    }
  | { readonly k: 'm'; readonly to: string; readonly key: string; readonly ttl: number }
  | ({ readonly k: 'r'; readonly again?: number } & StepLink)
  | { readonly k: 'b'; readonly to: string; readonly batch: string }
  /** A step of the handler of task `id` has called it. */
  | { readonly k: 's'; readonly to: string; readonly id: string; readonly answer: string };

export interface WaitingEdge {
  readonly queue: string;
  readonly id: string;
  /** The index of the edge. */
  readonly n: number;
  /** The deadline of the wait, which distinguishes it from that of an earlier task of this id. */
  readonly until: number;
}

/** Registers a waiting task, which may not exist yet, with a prerequisite that is a task. */
export interface WatchRequest {
  /** The prerequisite. */
  readonly id: string;
  /** The waiting task, and which of its edges is meant. */
  readonly waiting: WaitingEdge;
  /**
   * How a prerequisite counts that does not exist: the edge ends so at once, with a parcel. Default: `missing` is returned.
   * Also one that is active, without a retention, and then gone without a notice of its end: a server ran it that knows no
   * links. Default there: it has failed.
   */
  readonly missing?: 'succeeded' | 'failed';
}

export interface EdgeState {
  readonly prerequisite: Prerequisite;
  readonly state: 'waiting' | 'succeeded' | 'failed';
  /** Why it failed. */
  readonly reason?: string;
}

/** What a stored task waits for. */
export interface StoredWait {
  readonly edges: readonly EdgeState[];
  readonly onFailure: FailurePolicy;
  readonly onTimeout: TimeoutPolicy;
  /** Unix seconds; `undefined` when it waits no more. */
  readonly deadline: number | undefined;
  /** It was archived because a prerequisite failed; the success of that one revives it. */
  readonly cancelled: boolean;
}

/** What a call about links has brought about: see Relay. */
export interface Caused {
  /** What is to happen elsewhere. Always empty in memory. */
  readonly parcels: readonly Parcel[];
  /** Something stored was damaged, so that a part of the call was not done; all else was. */
  readonly damage?: Error;
  /** What has happened; only when there is any. */
  readonly news?: readonly LinkNews[];
}

export interface Delivered extends Caused {
  /** Parcels that only a newer version of this library understands: nothing was done about them. */
  readonly unknown?: { readonly parcels: readonly Parcel[]; readonly error: Error };
}

export interface PassReply extends Caused {
  /** Links that were found ended by somebody who knows no links, and timers that were due. */
  readonly settled: number;
  /** How many of the parcels nobody had carried. */
  readonly late: number;
  /** The place has nothing left to keep. */
  readonly empty: boolean;
}

export interface LinksRole {
  /** Creates tasks with links, in order, in one atomic step: as ProducerRole.enqueue. */
  enqueue(
    queue: string,
    requests: readonly LinkedRequest[],
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }>;
  /** As ProducerRole.enqueueBounded. A task that waits for others takes no room. */
  enqueueBounded(
    queue: string,
    requests: readonly LinkedRequest[],
    maxPending: number,
  ): Promise<Caused & { readonly statuses: readonly BoundedStatus[] }>;
  /**
   * Registers waiting tasks with prerequisites of one queue. `missing`: there is no such task, and
   * nothing was registered, unless the request says how that counts. A prerequisite that has ended
   * answers at once, with a parcel.
   */
  watch(
    queue: string,
    requests: readonly WatchRequest[],
  ): Promise<Caused & { readonly found: readonly ('watched' | 'missing')[] }>;
  /** Applies parcels of any origin to their place. */
  deliver(place: string, parcels: readonly Parcel[]): Promise<Delivered>;
  /** Removes delivered parcels; one that has changed since stays. */
  acknowledge(place: string, parcels: readonly Parcel[]): Promise<void>;
  /** Has parcels of a place wait that their destination does not understand: passes return them a minute later. */
  postpone(place: string, parcels: readonly Parcel[]): Promise<void>;
  /** Notifies the watchers of these tasks, if they have ended: after an action of an operator, say. */
  check(queue: string, ids: readonly string[]): Promise<Caused>;
  /** `undefined` when the task does not exist or has never waited. */
  waitOf(queue: string, id: string): Promise<StoredWait | undefined>;
  /** The places that may have something to keep. */
  places(): Promise<string[]>;
  /** Takes or extends the right to keep a place, for `ttl` milliseconds. */
  lease(place: string, owner: string, ttl: number): Promise<boolean>;
  /**
   * One bounded pass over a place: waits and timers that are due, ends of tasks that no watcher was notified of,
   * parcels that were stored `age` seconds ago or earlier.
   */
  keep(place: string, age: number): Promise<PassReply>;
}
