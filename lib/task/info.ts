import { toDate } from '../clock.js';
import { crashesOf } from '../wire/crashes.js';
import { expiryOf } from '../wire/expiry.js';
import type { TaskMessage } from '../wire/message.js';
import type { TaskState } from '../wire/states.js';
import { TECHNICAL_RETENTION } from './links.js';
import { type BytesEncoding, bytesToJson } from './bytes-json.js';
import {
  decodeChunks,
  decodeProgress,
  readLog,
  type SaidNotes,
  type TaskLog,
  type TaskLogLine,
  type TaskProgress,
} from './notes.js';
import { enqueuedAtOf } from './task-id.js';

/**
 * A task as it is in Redis (asynq's TaskInfo). Durations in milliseconds. A snapshot: it does not
 * change with the task.
 *
 * A class, so that all share one `toJSON` and an enqueue creates no closure. (`declare`: no field
 * is written twice.)
 *
 * `R` is the type of the handler's result, where the call knew it.
 */
export class TaskInfo<R = unknown> {
  /** Never set: it only carries the type of the result. */
  declare readonly __types?: { readonly result: R };
  declare readonly id: string;
  declare readonly queue: string;
  declare readonly type: string;
  /** As it is stored; empty if there is none. */
  declare readonly payload: Buffer;
  declare readonly headers: Readonly<Record<string, string>>;
  declare readonly state: TaskState;
  declare readonly maxRetry: number;
  /**
   * Retries used so far, of `maxRetry`: failed attempts that were retried. The attempt that
   * archives a task does not count, so after the last attempt this is `maxRetry`.
   */
  declare readonly retried: number;
  /** Text of the last failure; empty if there was none. */
  declare readonly lastErr: string;
  declare readonly lastFailedAt: Date | undefined;
  /** Milliseconds one attempt may take; 0: until the deadline, or 30 minutes without one. */
  declare readonly timeout: number;
  declare readonly deadline: Date | undefined;
  /** Empty if the task is in no group. */
  declare readonly group: string;
  /**
   * When the task is due: its time when it is delayed, now when it is pending, the end of its wait
   * when it is waiting, when it is tried again at the latest when it is held; else `undefined`.
   */
  declare readonly nextProcessAt: Date | undefined;
  /**
   * Since when a task is pending; `undefined` in every other state, and if unknown: a Go server
   * that shuts down requeues its tasks without it. Only an inspector sets it; the info of `enqueue`
   * has none.
   */
  declare readonly pendingSince: Date | undefined;
  /**
   * Why a task is held: the scope of the limit that holds it back (`limitScope`; its default is the type, or prefix, of the handler), or
   * `~newer:` and its type when its payload is newer than its handler. `undefined` in every other state, and if unknown.
   */
  declare readonly heldBy: string | undefined;
  /** Since when a task is held; `undefined` in every other state. Only an inspector sets it. */
  declare readonly heldSince: Date | undefined;
  /** Active without a lease: its server died. Only a listing of active tasks sets it. */
  declare readonly isOrphaned: boolean;
  /** Milliseconds the task is kept after success. */
  declare readonly retention: number;
  declare readonly completedAt: Date | undefined;
  /** What the handler returned or wrote; `undefined` if nothing. */
  declare readonly result: Buffer | undefined;
  /** How far its handler has said it is. Only of a task that was read alone, as are `log` and `chunks`, or listed as active; `undefined` if it said nothing. */
  declare readonly progress: TaskProgress | undefined;
  /** The last lines that its handlers have logged, and how many before them are gone. */
  declare readonly log: TaskLog | undefined;
  /** The last chunks that its handler has emitted, up to 64 KiB of them. */
  declare readonly chunks: readonly unknown[] | undefined;
  /**
   * `false` in the info of an enqueue that created no task, as there was one already: this is that one, as it is now. Else `true`. If it is over and
   * was not kept, only its id is known, and its state is `completed`.
   */
  get created(): boolean {
    return true;
  }

  constructor(message: TaskMessage, standing: TaskStanding) {
    this.id = message.id;
    this.queue = message.queue;
    this.type = message.type;
    this.payload = message.payload;
    this.headers = message.headers ?? NO_HEADERS;
    this.state = standing.state;
    this.maxRetry = message.maxRetry;
    this.retried = message.retried;
    this.lastErr = message.errorMsg;
    this.lastFailedAt = secondsToDate(message.lastFailedAt);
    this.timeout = message.timeout * 1000;
    this.deadline = secondsToDate(message.deadline);
    this.group = message.groupKey;
    this.nextProcessAt = standing.nextProcessAt === undefined ? undefined : toDate(standing.nextProcessAt);
    this.pendingSince = standing.pendingSince === undefined ? undefined : toDate(standing.pendingSince);
    this.heldBy = standing.held?.waitlist || undefined;
    this.heldSince = standing.held?.since === undefined ? undefined : toDate(standing.held.since);
    this.isOrphaned = standing.isOrphaned ?? false;
    this.retention = message.retention === TECHNICAL_RETENTION ? 0 : message.retention * 1000;
    this.completedAt = secondsToDate(message.completedAt);
    this.result = standing.result?.length ? standing.result : undefined;
    const { notes } = standing;
    this.progress = notes && decodeProgress(notes.progress);
    this.log = notes && readLog(notes);
    this.chunks = notes && notes.chunks.length > 0 ? notes.chunks.flatMap(decodeChunks) : undefined;
  }

  /**
   * When it was enqueued, by the clock of its client. `undefined` when that is not known: it is read from the id, and Go's clients and calls with a
   * `taskId` make other ids. Of a `taskId` that is a UUID v7 it is the time of that.
   */
  get enqueuedAt(): Date | undefined {
    return enqueuedAtOf(this.id);
  }

  /** By when its first attempt must begin (`expiresIn`); `undefined`: it does not expire. */
  get expiresAt(): Date | undefined {
    const expiry = expiryOf(this.headers);
    return expiry && toDate(expiry.at);
  }

  /** How often its server has died while it ran, since it last slept or waited in a step. */
  get crashes(): number {
    return crashesOf(this.headers)?.count ?? 0;
  }

  /** Where and when its servers have died: the last five times. */
  get lastCrashes(): TaskCrash[] {
    const last = crashesOf(this.headers)?.last ?? [];
    return last.map(({ at, servers, others }) => ({ at: toDate(at), servers, others }));
  }

  /**
   * The form for `JSON.stringify` and replies of controllers: payload and result as JSON if they
   * are JSON, times in ISO 8601, and no empty fields. Without the headers, which may carry
   * credentials.
   */
  toJSON(): TaskInfoJson {
    const { id, queue, type, state, maxRetry, retried, timeout, retention, isOrphaned } = this;
    const payload = bytesToJson(this.payload);
    const result = bytesToJson(this.result);
    return {
      id,
      queue,
      type,
      state,
      ...(this.enqueuedAt && { enqueuedAt: this.enqueuedAt.toJSON() }),
      ...(payload && { payload: payload.value, payloadEncoding: payload.encoding }),
      maxRetry,
      retried,
      ...(this.crashes > 0 && { crashes: this.crashes }),
      ...(this.lastErr && { lastErr: this.lastErr }),
      ...(this.lastFailedAt && { lastFailedAt: this.lastFailedAt.toJSON() }),
      timeout,
      ...(this.deadline && { deadline: this.deadline.toJSON() }),
      ...(this.expiresAt && { expiresAt: this.expiresAt.toJSON() }),
      ...(this.group && { group: this.group }),
      ...(this.nextProcessAt && { nextProcessAt: this.nextProcessAt.toJSON() }),
      ...(this.pendingSince && { pendingSince: this.pendingSince.toJSON() }),
      ...(this.heldBy !== undefined && { heldBy: this.heldBy }),
      ...(this.heldSince && { heldSince: this.heldSince.toJSON() }),
      isOrphaned,
      retention,
      ...(this.completedAt && { completedAt: this.completedAt.toJSON() }),
      ...(result && { result: result.value, resultEncoding: result.encoding }),
      ...(this.progress && { progress: { ...this.progress, at: this.progress.at.toJSON() } }),
      ...(this.log && {
        log: { ...this.log, lines: this.log.lines.map((line) => ({ ...line, at: line.at.toJSON() })) },
      }),
      ...(this.chunks && { chunks: this.chunks }),
      ...(!this.created && { created: false }),
    };
  }
}

/** One time that the server of a task has died. */
export interface TaskCrash {
  /** Its last sign of life. */
  readonly at: Date;
  /** `<host>:<pid>` of the servers that went silent then; empty: not known, several: one of them. */
  readonly servers: readonly string[];
  /** How many other tasks of its queue lost their server with it, at least. */
  readonly others: number;
}

/** A task that was there already: an enqueue has created none. */
export class ExistingTaskInfo extends TaskInfo {
  override get created(): boolean {
    return false;
  }
}

/** The fields of a task, without the class. */
export type TaskDetails = Omit<
  TaskInfo,
  'toJSON' | '__types' | 'enqueuedAt' | 'expiresAt' | 'crashes' | 'lastCrashes' | 'created'
>;

/**
 * A {@link TaskInfo} as JSON. Times in ISO 8601, durations in milliseconds; fields without a value
 * are left out.
 */
export interface TaskInfoJson {
  readonly id: string;
  readonly queue: string;
  readonly type: string;
  readonly state: TaskState;
  readonly enqueuedAt?: string;
  /** As `payloadEncoding` says. */
  readonly payload?: unknown;
  readonly payloadEncoding?: BytesEncoding;
  readonly maxRetry: number;
  readonly retried: number;
  readonly crashes?: number;
  readonly lastErr?: string;
  readonly lastFailedAt?: string;
  readonly timeout: number;
  readonly deadline?: string;
  readonly expiresAt?: string;
  readonly group?: string;
  readonly nextProcessAt?: string;
  readonly pendingSince?: string;
  readonly heldBy?: string;
  readonly heldSince?: string;
  readonly isOrphaned: boolean;
  readonly retention: number;
  readonly completedAt?: string;
  /** As `resultEncoding` says. */
  readonly result?: unknown;
  readonly resultEncoding?: BytesEncoding;
  readonly progress?: Omit<TaskProgress, 'at'> & { readonly at: string };
  readonly log?: Omit<TaskLog, 'lines'> & {
    readonly lines: readonly (Omit<TaskLogLine, 'at'> & { readonly at: string })[];
  };
  readonly chunks?: readonly unknown[];
  /** An enqueue has created no task: this is the one that was there. */
  readonly created?: false;
}

/** The fields of a task that are not in its message. */
export interface TaskStanding {
  readonly state: TaskState;
  /** Milliseconds since the epoch. */
  readonly nextProcessAt: number | undefined;
  /** Milliseconds since the epoch. */
  readonly pendingSince?: number | undefined;
  /** Of a task that is held: its waitlist, and milliseconds since the epoch. */
  readonly held?: { readonly waitlist: string; readonly since: number | undefined } | undefined;
  readonly result?: Buffer | undefined;
  readonly isOrphaned?: boolean;
  /** What its handler has said, as it is stored. */
  readonly notes?: SaidNotes | undefined;
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** Returns a stored task as users see it. */
export const toTaskInfo = (message: TaskMessage, standing: TaskStanding): TaskInfo => new TaskInfo(message, standing);

/** Converts an int64 of seconds; 0 is no time. */
const secondsToDate = (seconds: number): Date | undefined => (seconds === 0 ? undefined : toDate(seconds * 1000));
