import { toDate } from '../clock.js';
import type { TaskMessage } from '../wire/message.js';
import type { TaskState } from '../wire/states.js';
import { type BytesEncoding, bytesToJson } from './bytes-json.js';

/**
 * A task as it stands in Redis (asynq's TaskInfo). Durations in milliseconds. A snapshot: it does not follow the task.
 * A class, so that all share one `toJSON`: a task of an enqueue costs no closure. (`declare`: no field is written twice.)
 */
export class TaskInfo {
  declare readonly id: string;
  declare readonly queue: string;
  declare readonly type: string;
  /** As it is stored; empty when there is none. */
  declare readonly payload: Buffer;
  declare readonly headers: Readonly<Record<string, string>>;
  declare readonly state: TaskState;
  declare readonly maxRetry: number;
  /**
   * Retries used so far, of `maxRetry`: failed attempts after which the task was to be tried again. The attempt that archives it is not
   * among them, so that after the last of them this is `maxRetry`, and the attempts were one more.
   */
  declare readonly retried: number;
  /** Text of the last failure; empty when there was none. */
  declare readonly lastErr: string;
  declare readonly lastFailedAt: Date | undefined;
  /** Milliseconds one attempt may take; 0 = until the deadline, or 30 minutes where there is none. */
  declare readonly timeout: number;
  declare readonly deadline: Date | undefined;
  /** Empty when the task is in none. */
  declare readonly group: string;
  /** When the task is due: the time asked for when it is delayed, now when it is pending; else `undefined`. */
  declare readonly nextProcessAt: Date | undefined;
  /**
   * Since when a pending task waits for a server to take it; `undefined` in every other state, and where that is not known: a Go
   * server that shuts down puts its tasks back without it. Only an inspector can tell: what `enqueue` resolves to has none.
   */
  declare readonly pendingSince: Date | undefined;
  /** Active, but leased by no server: its server died. Only a listing of active tasks can tell. */
  declare readonly isOrphaned: boolean;
  /** Milliseconds the task is kept after success. */
  declare readonly retention: number;
  declare readonly completedAt: Date | undefined;
  /** What the handler returned or wrote; `undefined` when there is nothing. */
  declare readonly result: Buffer | undefined;

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
    this.isOrphaned = standing.isOrphaned ?? false;
    this.retention = message.retention * 1000;
    this.completedAt = secondsToDate(message.completedAt);
    this.result = standing.result?.length ? standing.result : undefined;
  }

  /**
   * What `JSON.stringify` and the replies of controllers show: payload and result as JSON if that is what they are, times in
   * ISO 8601, and nothing where there is nothing. Without the headers, which may carry credentials from enqueuer to handler.
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
      ...(payload && { payload: payload.value, payloadEncoding: payload.encoding }),
      maxRetry,
      retried,
      ...(this.lastErr && { lastErr: this.lastErr }),
      ...(this.lastFailedAt && { lastFailedAt: this.lastFailedAt.toJSON() }),
      timeout,
      ...(this.deadline && { deadline: this.deadline.toJSON() }),
      ...(this.group && { group: this.group }),
      ...(this.nextProcessAt && { nextProcessAt: this.nextProcessAt.toJSON() }),
      ...(this.pendingSince && { pendingSince: this.pendingSince.toJSON() }),
      isOrphaned,
      retention,
      ...(this.completedAt && { completedAt: this.completedAt.toJSON() }),
      ...(result && { result: result.value, resultEncoding: result.encoding }),
    };
  }
}

/** What is known of a task, without the class. */
export type TaskDetails = Omit<TaskInfo, 'toJSON'>;

/** A {@link TaskInfo} as JSON. Times in ISO 8601, durations in milliseconds; what there is not is left out. */
export interface TaskInfoJson {
  readonly id: string;
  readonly queue: string;
  readonly type: string;
  readonly state: TaskState;
  /** As `payloadEncoding` says. */
  readonly payload?: unknown;
  readonly payloadEncoding?: BytesEncoding;
  readonly maxRetry: number;
  readonly retried: number;
  readonly lastErr?: string;
  readonly lastFailedAt?: string;
  readonly timeout: number;
  readonly deadline?: string;
  readonly group?: string;
  readonly nextProcessAt?: string;
  readonly pendingSince?: string;
  readonly isOrphaned: boolean;
  readonly retention: number;
  readonly completedAt?: string;
  /** As `resultEncoding` says. */
  readonly result?: unknown;
  readonly resultEncoding?: BytesEncoding;
}

/** What is known of a task besides its message. */
export interface TaskStanding {
  readonly state: TaskState;
  /** Milliseconds since the epoch. */
  readonly nextProcessAt: number | undefined;
  /** Milliseconds since the epoch. */
  readonly pendingSince?: number | undefined;
  readonly result?: Buffer | undefined;
  readonly isOrphaned?: boolean;
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** What users see of a stored task. */
export const toTaskInfo = (message: TaskMessage, standing: TaskStanding): TaskInfo => new TaskInfo(message, standing);

/** An int64 of seconds; 0 is no time. */
const secondsToDate = (seconds: number): Date | undefined => (seconds === 0 ? undefined : toDate(seconds * 1000));
