import type { RepeatPolicy } from '../task/repeats.js';
import type { TaskMessage } from '../wire/message.js';
import type { TaskState } from '../wire/states.js';
import type { Acknowledge } from '../task/acknowledge.js';
import type { EnqueueRequest, EnqueueStatus, Full } from './enqueue-request.js';
import type { Caused } from './links.js';
import type { AcknowledgedReply } from './producer.js';

export type { RepeatPolicy } from '../task/repeats.js';

/** What happens when there is such a task already. */
export interface Repeat {
  readonly policy: RepeatPolicy;
  /** The full name of the lock; empty for `once`, where the id of the task is the lock. */
  readonly lock: string;
  /** Seconds that the lock lasts, at least 1; 0 without a lock. */
  readonly ttl: number;
  /** Unix seconds. `debounce`: when the task starts at the latest. `latest`: how long one that follows waits at the latest. */
  readonly limit?: number | undefined;
}

/**
 * A task to create that has a policy for repeats, without group and links. `message.uniqueKey` is that of the lock if the success of the
 * task frees it. `uniqueTtl` is not used.
 */
export interface RepeatRequest extends EnqueueRequest {
  readonly repeat: Repeat;
}

/** A task that another call has created: the owner of a lock, or the one of an id. */
export interface Owner {
  readonly id: string;
  /** `undefined`: it is gone, and only its lock is left. */
  readonly state: TaskState | undefined;
  readonly message?: TaskMessage | undefined;
  /** Unix seconds: its time when it is delayed, the end of its wait when it is waiting. */
  readonly processAt?: number | undefined;
}

/**
 * `enqueued`: created; `owner` is the task itself when it waits for an active one. `existing`, `duplicate`: nothing was written; `owner` is in the
 * way. `replaced`: `owner` has the new message under its own id.
 */
export interface RepeatReply {
  readonly status: EnqueueStatus | 'existing' | 'replaced';
  readonly owner?: Owner | undefined;
}

export interface RepeatBounds {
  /** A task that would be pending is only created while fewer are; one that is there is changed in any case. Default: any number. */
  readonly maxPending?: number | undefined;
  /** Waits until replicas or files have what the call has made, changed or found. */
  readonly acknowledge?: Acknowledge | undefined;
}

export interface RepeatReplies {
  /** One per request. Full: only with `maxPending`. */
  readonly replies: readonly (RepeatReply | Full)[];
  /** Who has them; only with `acknowledge`. */
  readonly copies?: Pick<AcknowledgedReply, 'replicas' | 'disk' | 'isEnough'> | undefined;
}

/** A lock as it is now. */
export interface StoredLock {
  /** Its full name. */
  readonly lock: string;
  readonly owner: Owner;
  /** Milliseconds until it ends; `undefined` for one that never ends, which others have written. */
  readonly expiresIn: number | undefined;
}

export interface LockPage {
  readonly locks: readonly StoredLock[];
  /** For the next page; `undefined` after the last. */
  readonly cursor: string | undefined;
}

export interface UniquenessRole {
  /**
   * Creates tasks or changes those that are there, in order, in one atomic step. One reply per request. Active tasks that are superseded are
   * marked, and their servers told, in the same step: whoever calls may die at any time.
   *
   * @throws InvalidOptionError when the store cannot wait for its disk; nothing is written
   */
  enqueue(queue: string, requests: readonly RepeatRequest[], bounds?: RepeatBounds): Promise<Caused & RepeatReplies>;
  /** Frees a lock, by its full name, if this task holds it; returns whether it did. */
  release(queue: string, lock: string, id: string): Promise<boolean>;
  /** Of each active task of the queue the id of the newer one that supersedes it. */
  findSuperseded(queue: string, ids: readonly string[]): Promise<readonly (string | undefined)[]>;
  /** Locks by their full names, each of the queue; those that are free are left out. */
  describe(queue: string, locks: readonly string[]): Promise<readonly StoredLock[]>;
  /** Finds locks of the queue, a page at a time. Pages may be empty; a lock may come twice. */
  list(queue: string, cursor: string | undefined): Promise<LockPage>;
}
