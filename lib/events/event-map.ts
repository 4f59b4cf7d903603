import type { TaskInfo } from '../task/info.js';
import type { ExpiryPolicy } from '../wire/expiry.js';
import type { ConsoleAction } from './console-action.js';
import type { LinkEventMap } from './link-events.js';
import type { TaskRef } from './task-ref.js';

export type { EndedWait } from './link-events.js';
export type { TaskRef } from './task-ref.js';

/**
 * The end of an attempt. `done`: deleted after success; `completed`: retained; `lost`: the lease
 * was lost, nothing is written.
 */
export type TaskOutcomeKind =
  | 'done'
  | 'completed'
  | 'retry'
  | 'archived'
  | 'revoked'
  | 'postponed'
  | 'suspended'
  | 'requeued'
  | 'lost';

/** A kind of step that does work, and so takes time. */
export type StepWork = 'run' | 'each' | 'undo';

/**
 * How a step ended in an attempt. `interrupted`: the server shut down, or the task is another server's by now; the step runs again
 * there.
 */
export type StepOutcomeKind = 'done' | 'failed' | 'interrupted';

/** A step of a handler that was not answered from what is stored, or one try of it. */
export interface FinishedStep {
  /** Its name; the second of one name is `name#2`. */
  readonly step: string;
  readonly kind: StepWork;
  readonly outcome: StepOutcomeKind;
  /** Milliseconds, until its result was stored. */
  readonly duration: number;
  /** What it threw. */
  readonly error?: unknown;
}

export interface GroupRef {
  readonly queue: string;
  readonly group: string;
}

/** One attempt, after its outcome is stored. */
export interface TaskOutcome {
  readonly outcome: TaskOutcomeKind;
  readonly task: TaskRef;
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /** What the handler returned. */
  readonly result?: unknown;
  /** What the handler threw, or why it was stopped. */
  readonly error?: unknown;
  /** When the task runs again, for `retry`. */
  readonly retryAt?: Date;
  /** Milliseconds from the start of the handler to its end. */
  readonly duration: number;
  /**
   * Milliseconds the task was pending before the attempt; measured on request
   * ({@link AsynqEvents.measureWaits}).
   */
  readonly waited?: number;
}

/** An attempt of a server that is gone, ended by another one. */
export interface TaskRecovery {
  readonly outcome: 'retry' | 'archived';
  readonly task: TaskRef;
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /** How often its server has died while it ran, this time included. */
  readonly crashes: number;
  /** LeaseExpiredError, or TaskCrashedError when it was archived as a suspect. */
  readonly error: Error;
  readonly retryAt?: Date;
}

/** One planned time of a periodic task. */
export interface PeriodicRef {
  /** The id of the entry. */
  readonly id: string;
  readonly spec: string;
  readonly type: string;
  readonly queue: string;
  readonly planned: Date;
}

/**
 * The events, by name. Listeners run synchronously; what they throw is reported as
 * `listenerFailed`.
 */
export interface AsynqEventMap extends LinkEventMap {
  /** A client, a scheduler or an aggregator of this process has stored a new task. */
  taskEnqueued: { readonly task: TaskInfo };
  /**
   * A call to store this many tasks failed: Redis did not reply, or refused it. The callers get the
   * error as well.
   */
  enqueueFailed: { readonly queue: string; readonly tasks: number; readonly error: unknown };
  /**
   * A task of a committed transaction was not stored: its lock is held, its id is taken, or what it was to
   * wait for cannot be found. The caller has not got the error.
   */
  refusedAfterCommit: { readonly task: TaskRef; readonly error: Error };
  /** Tasks of a committed transaction could not be stored for a minute, or until the client closed. */
  lostAfterCommit: { readonly tasks: readonly TaskRef[]; readonly error: unknown };
  /** Rows of an outbox wait, as Redis does not take tasks of this queue. They are sent again. */
  rowsUnsent: { readonly queue: string; readonly rows: number; readonly error: unknown };
  /** A row of an outbox cannot become a task; it stays, and somebody must look. `row`: its id. */
  rowPoisoned: { readonly row: number; readonly queue: string; readonly error: unknown };
  /** A handler is about to be called. `waited`: see TaskOutcome. */
  taskStarted: {
    readonly task: TaskRef;
    readonly retried: number;
    readonly maxRetry: number;
    readonly waited?: number;
  };
  /** The outcome of an attempt is stored (or is `lost`). */
  taskFinished: TaskOutcome;
  /** A step of a handler has done something. A sleep, a wait for a signal and the call of a task are no such steps. */
  stepFinished: FinishedStep & { readonly task: TaskRef };
  /** A handler still runs some time after its attempt ended; it keeps its slot. */
  handlerStuck: { readonly task: TaskRef; readonly reason: unknown; readonly seconds: number };
  /**
   * A message, or the payload of a grouped task, cannot be decoded; the task is archived unchanged.
   * `type`: if known.
   */
  taskDamaged: { readonly task: Pick<TaskRef, 'id' | 'queue'> & Partial<TaskRef>; readonly error: Error };
  /**
   * The payload of a claimed task has a newer version than its handler knows; the task waits for a server that knows it. `known`: the
   * handler's version.
   */
  payloadTooNew: { readonly task: TaskRef; readonly version: number; readonly known: number };
  /** A claimed task did not run: it was to begin before (`expiresIn`). Then `taskFinished` follows, `archived` or `revoked`. */
  taskExpired: { readonly task: TaskRef; readonly expiredAt: Date; readonly onExpiry: ExpiryPolicy };
  /** A handler's result cannot be stored; the task succeeds without it. */
  resultDropped: { readonly task: TaskRef; readonly error: unknown };
  /**
   * A hook of the user (onError, retryDelay, isFailure, healthCheck) threw; its default applies.
   */
  hookFailed: { readonly hook: string; readonly error: unknown; readonly task?: TaskRef };
  /** `listener`: the method, if it is known. */
  listenerFailed: {
    readonly event: string;
    readonly error: unknown;
    readonly listener?: string;
    /** The task of the event, if it has one. */
    readonly task?: TaskRef;
  };
  /** Events for the fleet's stream are lost; emitted once until the stream can be written again. */
  eventStreamFailed: { readonly error: unknown; readonly lost: number };
  /** The fleet's stream cannot be read; emitted once until it can be read again. */
  eventStreamUnread: { readonly error: unknown };
  /**
   * A change in the web console was made or refused; emitted in the process that received the
   * request.
   */
  consoleAction: ConsoleAction;
  /**
   * An action of the web console could not be recorded in the audit trail; it is carried out all
   * the same.
   */
  consoleTrailFailed: { readonly action: ConsoleAction; readonly error: unknown };
  /** The application ends while listeners still run, after waiting for them. */
  listenersLeft: { readonly listeners: number };
  /** A task of a crashed or stalled server was recovered. */
  taskRecovered: TaskRecovery;
  /** The same as a sum: the tasks of one queue that were recovered in one step. `suspects`: those of the archived ones with too many crashes. */
  tasksRecovered: {
    readonly queue: string;
    readonly retried: number;
    readonly archived: number;
    readonly suspects: number;
  };
  /** Dangling ids were removed, and active tasks without a lease were given one. */
  queueRepaired: { readonly queue: string; readonly dangling: number; readonly leases: number };
  /** Tasks of a queue wait in lines by key, and this process did not know that the queue is fair: it takes their turns from now on. */
  linesFound: { readonly queue: string };
  /** The tasks of a group have become one task. */
  groupAggregated: GroupRef & { readonly size: number; readonly task: TaskRef };
  /**
   * Aggregating a group failed; its tasks go back to the group at `retryAt`, for another try.
   * `types`: of these tasks.
   */
  aggregationFailed: GroupRef & {
    readonly size: number;
    readonly error: unknown;
    readonly retryAt: Date;
    readonly types?: readonly string[];
  };
  /** Tasks whose aggregation did not end in time went back to their groups. */
  groupsReclaimed: { readonly queue: string; readonly tasks: number };
  /** Groups missing from the list of groups were added, and empty ones removed from it. */
  groupsRepaired: { readonly queue: string; readonly listed: number; readonly removed: number };
  /** A group is due and no server aggregates it; emitted once per queue. */
  groupNotAggregated: GroupRef;
  /** Redis does not reply for a queue; `unsettled` finished tasks wait to be stored. */
  queueUnreachable: { readonly queue: string; readonly error: unknown; readonly unsettled: number };
  queueReachable: { readonly queue: string };
  /** A pass of a loop failed; the loop goes on with back-off. */
  loopFailed: { readonly loop: string; readonly error: unknown };
  /** The event loop stood still for so long while tasks of these types (ten at most) were here: one of them kept it busy. */
  loopBlocked: { readonly milliseconds: number; readonly types: readonly string[] };
  /** A thread of handlers has ended by itself, or could not start; another one takes its place. Its task has failed. */
  threadDied: { readonly reason: string };
  /** Leases are not kept while the event loop stands still, for this reason. Emitted once. */
  leasesUnguarded: { readonly reason: string };
  /** Redis sends no wake-ups; the server polls. */
  wakeUnavailable: { readonly error: unknown };
  /**
   * The application has handlers or aggregators for a connection that only produces
   * (`server: false`): they do not run here.
   */
  handlersIdle: { readonly handlers: number };
  /** The module has server options, but the application has no handler: no server is started. */
  handlersMissing: { readonly connection: string };
  /**
   * Classes with handlers were loaded, and no module provides them: they handle nothing here. Emitted once, when the application
   * starts, where it has a server.
   */
  handlersNotProvided: { readonly classes: readonly string[] };
  /**
   * Tasks go to a queue that no server serves: this process enqueues them, or `handler` is of a definition with this queue. `near`: a
   * queue with a similar name that is served. Emitted once per queue, some seconds later.
   */
  queueNotServed: { readonly queue: string; readonly near?: string | undefined; readonly handler?: string | undefined };
  /**
   * Another server (`host`, `pid`) takes tasks of this queue, and handles none of the types that are handled here: most likely another
   * application uses the same prefix and queue. Emitted once, some seconds after the start.
   */
  queueShared: {
    readonly queue: string;
    readonly host: string;
    readonly pid: number;
    readonly theirs: readonly string[];
    readonly ours: readonly string[];
  };
  /** Nothing in this process handles SIGTERM, which then ends it at once, with tasks running. Emitted once, some seconds after the start. */
  shutdownHooksMissing: Readonly<Record<string, never>>;
  /**
   * The first payload of this type loses something as JSON: `what` is at `path` (`$` is the payload). Emitted once per type of a client.
   */
  payloadChanged: { readonly type: string; readonly path: string; readonly what: string };
  /**
   * `handler` takes a `field` of its payload that the first payload does not have, and `near` is there: most likely the name is misspelt.
   * Emitted once per field, with the first task.
   */
  payloadFieldMissing: {
    readonly type: string;
    readonly handler: string;
    readonly field: string;
    readonly near: string;
  };
  /** This process enqueued the task of a planned time. */
  periodicTaskEnqueued: { readonly entry: PeriodicRef; readonly taskId: string };
  /**
   * A planned time was skipped: it was `missed` (and perhaps later ones, too), the last task is
   * `unfinished`, or the entry is `paused`.
   */
  periodicTaskSkipped: { readonly entry: PeriodicRef; readonly reason: 'missed' | 'unfinished' | 'paused' };
  /** The task of a planned time was refused: it is a duplicate, or its id is taken. */
  periodicTaskFailed: { readonly entry: PeriodicRef; readonly error: Error };
  /**
   * The planned times of an entry count as dealt with up to `entry.planned`, which is `ahead`
   * milliseconds ahead of this machine's clock: no process enqueues the entry before. Some clock is
   * wrong. Emitted once until that is over, by each process.
   */
  periodicTaskAhead: {
    readonly entry: PeriodicRef;
    readonly ahead: number;
    /** The key in Redis. Once the clocks agree it may be deleted: then the entry goes on. */
    readonly key: string;
  };
  /**
   * A source of periodic tasks failed, or one of its specs is invalid; the entries stay as they
   * are.
   */
  periodicSourceFailed: { readonly source: string; readonly error: unknown };
  serverStarted: { readonly concurrency: number; readonly queues: Readonly<Record<string, number>> };
  /** Redis may remove tasks when its memory is full; emitted once, at the start. */
  storeEvicts: { readonly address: string; readonly policy: string };
  /** Redis is older than this library needs; emitted once, at the start. */
  storeOutdated: { readonly address: string; readonly version: string; readonly needed: string };
  /**
   * This machine's clock is `ahead` milliseconds ahead of Redis's, or behind it when negative;
   * emitted once, at the start. Servers of a queue must agree on the time of leases, schedules and
   * retries.
   */
  storeClockDiffers: { readonly address: string; readonly ahead: number };
  /** The server fetches no more tasks; running ones go on. */
  serverStopped: { readonly active: number };
  /** After `drain`: no task runs or has to be settled any more. */
  serverDrained: Readonly<Record<string, never>>;
  /**
   * The shutdown timeout passed while tasks ran, which are aborted now, or while groups were
   * aggregated.
   */
  shutdownTimedOut: { readonly active: number; readonly aggregating: number };
  serverClosed: { readonly requeued: number };
}

export type AsynqEventName = keyof AsynqEventMap;
