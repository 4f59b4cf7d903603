import type { SchedulerEnqueueEvent, SchedulerEntry, ServerInfo, TaskMessage, WorkerInfo } from '../wire/message.js';
import type { TaskState } from '../wire/states.js';
import type { StoredAttempt } from '../task/attempts.js';
import type { SaidNotes } from '../task/notes.js';

export type { ClusterLocation, RedisInfo, RedisNode } from './operations.js';

/*
 * The administrative side of the contract (wire-protocol section 7). Every call does a bounded
 * amount of work, so that none blocks Redis for long, however many tasks there are. The inspector
 * composes operations on a whole queue of such calls.
 * `hasQueue` is a call of its own, as the list of queues is in another slot of a cluster.
 */

/** A task as an inspector sees it. */
export interface StoredTask {
  readonly message: TaskMessage;
  /** `waiting` for a task that is stored as aggregating in WAITING_GROUP, `held` for one that is stored as a retry and is in a waitlist. */
  readonly state: TaskState;
  /**
   * Unix seconds: the score in `scheduled` or `retry`, or the end of the wait of one that is
   * `waiting` or `held`; else `undefined`.
   */
  readonly nextProcessAt: number | undefined;
  /**
   * Milliseconds since the epoch: when it last became pending. `undefined` in every other state,
   * and when nobody wrote it: a Go server that shuts down puts its tasks back without it.
   */
  readonly pendingSince: number | undefined;
  /** Given exactly when the state is `held`. */
  readonly held?: StoredHold | undefined;
  readonly result: Buffer | undefined;
  /** What its handler has said; only when one task is read, and there is something. */
  readonly notes?: SaidNotes | undefined;
}

/** How a task is held. */
export interface StoredHold {
  /** Milliseconds since the epoch; `undefined` when unknown. */
  readonly since: number | undefined;
  /** Its name; empty when it was put there by an older version, which did not note it. */
  readonly waitlist: string;
}

/** A place where tasks wait: a state, or a group. */
export interface TaskLocation {
  readonly state: TaskState;
  /** Given exactly when the state is `aggregating`. */
  readonly group?: string;
  /** Only tasks of this key of a fair queue, and only in `pending`; '' for those without one. To move tasks it does not count. */
  readonly fairnessKey?: string;
}

export interface ListRequest extends TaskLocation {
  /** How many entries at most, 1 to {@link MAX_PAGE_SIZE}; fewer when they are large. */
  readonly size: number;
  /** The `cursor` of the previous page; without it the list begins at its front. */
  readonly cursor?: string;
  /** Entries to skip, without a cursor. Default 0. */
  readonly offset?: number;
  /**
   * Highest score first, and ids of one score backwards; not for `pending` and `active`. Default:
   * as the cursor, else false. A cursor continues in its own direction only.
   */
  readonly reverse?: boolean;
}

export const MAX_PAGE_SIZE = 1_000;

export interface ListedTask extends StoredTask {
  /** Active without a valid lease. */
  readonly orphaned: boolean;
  /** Unix seconds: when an archived task was archived; else `undefined`. */
  readonly archivedAt?: number | undefined;
}

/**
 * An entry without a readable message: none at all, one that cannot be decoded, or that of another
 * task.
 */
export interface DamagedEntry {
  readonly id: string;
  readonly error: Error;
}

export interface TaskPage {
  /**
   * `pending` in the order to run, `active` in the order of their claims, all others by score and
   * id, or in reverse. Of a fair queue, those first that are in no line, then line by line, or in the
   * order of their arrival.
   */
  readonly tasks: ListedTask[];
  readonly damaged: DamagedEntry[];
  /**
   * Continues after the last entry of this page, even if that entry is gone or others were added
   * meanwhile; `undefined` at the end. In `pending` and `active`, whose order only Redis knows, it
   * remembers the last entries: if all of those are gone, tasks may be listed twice, but none is
   * left out.
   */
  readonly cursor: string | undefined;
}

export interface IdPage {
  readonly ids: string[];
  readonly cursor: string | undefined;
}

export interface GroupSize {
  readonly group: string;
  readonly size: number;
}

/** The figures of a queue. */
export interface QueueNumbers {
  readonly pending: number;
  readonly active: number;
  readonly scheduled: number;
  /** Without those that are held. */
  readonly retry: number;
  readonly archived: number;
  readonly completed: number;
  /** Tasks waiting in groups; estimated where there are more than 1,000 groups. */
  readonly aggregating: number;
  /** Tasks that wait for other tasks. */
  readonly waiting: number;
  /**
   * Tasks that a limit of their handler holds back, or that are too new for it. Those that Go has taken out of `retry` may be counted
   * until their turn comes, but never more than are there.
   */
  readonly held: number;
  /** Groups that have waiting tasks. */
  readonly groups: number;
  /** Keys of a fair queue that have tasks in lines, and those of them that a limit of their own holds back; absent without any. */
  readonly keys?: { readonly waiting: number; readonly held: number };
  /** Attempts finished today (UTC), and those of them that failed. */
  readonly processed: number;
  readonly failed: number;
  readonly processedTotal: number;
  readonly failedTotal: number;
  readonly paused: boolean;
  /**
   * How long the next task has waited, in milliseconds: the longest wait of the next 20. 0 when
   * unknown.
   */
  readonly latency: number;
  /** How long the task that is held longest has been held, in milliseconds; 0 when none is, or unknown. */
  readonly oldestHeld: number;
  /** Bytes in Redis, estimated from the first 20 tasks of each state; in memory a rough figure. */
  readonly memoryUsage: number;
}

/** More groups than this are estimated. */
export const MAX_COUNTED_GROUPS = 1_000;

export interface DayCount {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly processed: number;
  readonly failed: number;
}

/** A server that has published its state, which has not expired. */
export interface PublishedServer {
  readonly info: ServerInfo;
  readonly workers: readonly WorkerInfo[];
}

export type MoveAction = 'run' | 'archive' | 'delete';

/**
 * `moved`: done. `missing`: no such task. `active`: a server runs it. `same`: in that state
 * already. `elsewhere`: not in the given location (any more). `claimed`: its group is being
 * aggregated. `waiting`: it waits for other tasks, so that no time can be set. `full`: the archive
 * has reached its limit.
 */
export type MoveStatus = 'moved' | 'missing' | 'active' | 'same' | 'elsewhere' | 'claimed' | 'waiting' | 'full';

/**
 * `notEditable`: active, completed, or in a group (not: waiting). `different`: not the payload to be replaced.
 * `changed`: somebody else changed it during each of several tries.
 */
export type UpdateStatus = 'updated' | 'missing' | 'notEditable' | 'different' | 'changed';

export interface DeletionOptions {
  /** Delete waiting tasks too. */
  readonly force: boolean;
  /** Called after every step with the number of tasks deleted so far. */
  readonly onProgress?: (deleted: number) => void;
  /** Stops between two steps. The call then rejects with its reason, and the rest stays usable. */
  readonly signal?: AbortSignal;
}

/** `active`, `notEmpty` and `kept` (no tasks, but runs or batches): nothing was deleted. */
export type DeletionStatus = 'deleted' | 'active' | 'notEmpty' | 'kept';

/** What queues and single tasks look like. */
export interface InspectionRole {
  queues(): Promise<string[]>;
  /** Whether the queue is listed: something was enqueued to it, and it has not been deleted. */
  hasQueue(queue: string): Promise<boolean>;
  /** The groups that have waiting tasks, by name. */
  groups(queue: string): Promise<GroupSize[]>;
  describeQueue(queue: string): Promise<QueueNumbers>;
  /** The counters of these days, in the same order; 0 where there is none. @param days `YYYY-MM-DD` */
  countsOfDays(queue: string, days: readonly string[]): Promise<DayCount[]>;
  /** `undefined` when there is no such task. */
  getTask(queue: string, id: string): Promise<StoredTask | undefined>;
  /** What is kept of the history of a task, oldest first; empty when there is nothing, or no such task. */
  attempts(queue: string, id: string): Promise<StoredAttempt[]>;
}

/** The tasks of a state or a group, page by page. */
export interface ListingRole {
  listTasks(queue: string, request: ListRequest): Promise<TaskPage>;
  /** The same order and cursors, but the tasks are not read. */
  listIds(queue: string, request: ListRequest): Promise<IdPage>;
}

/** What an operator changes. */
export interface AdministrationRole {
  /**
   * Makes tasks pending (at the end of the queue, due at once), archives them (the archive is trimmed as usual) or deletes
   * them, with the locks they hold; never an active one. Atomic for each task. Damaged entries can only be deleted. One
   * status per id.
   *
   * @param from only tasks that are there
   * @param maxArchived archives only while fewer tasks are archived, and never trims: no archived task is deleted for it
   */
  moveTasks(
    queue: string,
    action: MoveAction,
    ids: readonly string[],
    from?: TaskLocation,
    maxArchived?: number,
  ): Promise<MoveStatus[]>;
  /**
   * Runs tasks at another time, wherever they are, unless they wait for other tasks: they become scheduled; one in `retry` stays there. A task with a group
   * joins it at that time. A lock that a task holds is extended by as much as the task is put off. Otherwise as {@link moveTasks}.
   *
   * @param at Unix seconds; a time that has passed is due at once
   */
  rescheduleTasks(queue: string, ids: readonly string[], at: number, from?: TaskLocation): Promise<MoveStatus[]>;
  /**
   * Gives a task another payload while it is scheduled, pending, in retry, archived or waiting. A lock it holds stays that of the old one.
   *
   * @param replaces only if this is its payload
   */
  updatePayload(queue: string, id: string, payload: Buffer, replaces?: Buffer): Promise<UpdateStatus>;
  /** Returns whether this call changed anything. */
  pauseQueue(queue: string): Promise<boolean>;
  resumeQueue(queue: string): Promise<boolean>;
  /**
   * Deletes a queue with everything that belongs to it: tasks in every state, groups, locks, counters, the pause. It is
   * paused meanwhile. An enqueue to it during the deletion brings it back. Runs and batches that live in it go on: it
   * stays listed while there are any.
   */
  deleteQueue(queue: string, options: DeletionOptions): Promise<DeletionStatus>;
}

/** What servers and schedulers have published. */
export interface PublicationsRole {
  /** Servers of every kind, with what they run; what cannot be decoded is left out. */
  servers(): Promise<PublishedServer[]>;
  /** The entries of all schedulers, Go's too; what cannot be decoded is left out. */
  schedulerEntries(): Promise<SchedulerEntry[]>;
  /** The history of an entry, newest first. */
  enqueueEvents(entryId: string, offset: number, size: number): Promise<SchedulerEnqueueEvent[]>;
}
