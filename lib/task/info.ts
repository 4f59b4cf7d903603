import type { TaskMessage } from '../wire/message.js';
import type { TaskState } from '../wire/states.js';

/** A task as it stands in Redis (asynq's TaskInfo). Durations in milliseconds. A snapshot: it does not follow the task. */
export interface TaskInfo {
  readonly id: string;
  readonly queue: string;
  readonly type: string;
  /** As it is stored; empty when there is none. */
  readonly payload: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly state: TaskState;
  readonly maxRetry: number;
  /**
   * Retries used so far, of `maxRetry`: failed attempts after which the task was to be tried again. The attempt that archives it is not
   * among them, so that after the last of them this is `maxRetry`, and the attempts were one more.
   */
  readonly retried: number;
  /** Text of the last failure; empty when there was none. */
  readonly lastErr: string;
  readonly lastFailedAt: Date | undefined;
  /** Milliseconds one attempt may take, 0 = no limit but the deadline. */
  readonly timeout: number;
  readonly deadline: Date | undefined;
  /** Empty when the task is in none. */
  readonly group: string;
  /** When the task is due: the time asked for when it is delayed, now when it is pending; else `undefined`. */
  readonly nextProcessAt: Date | undefined;
  /**
   * Since when a pending task waits for a server to take it; `undefined` in every other state, and where that is not known: a Go
   * server that shuts down puts its tasks back without it.
   */
  readonly pendingSince: Date | undefined;
  /** Active, but leased by no server: its server died. Only a listing of active tasks can tell. */
  readonly isOrphaned: boolean;
  /** Milliseconds the task is kept after success. */
  readonly retention: number;
  readonly completedAt: Date | undefined;
  /** What the handler returned or wrote; `undefined` when there is nothing. */
  readonly result: Buffer | undefined;
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
export function toTaskInfo(message: TaskMessage, standing: TaskStanding): TaskInfo {
  return {
    id: message.id,
    queue: message.queue,
    type: message.type,
    payload: message.payload,
    headers: message.headers ?? NO_HEADERS,
    state: standing.state,
    maxRetry: message.maxRetry,
    retried: message.retried,
    lastErr: message.errorMsg,
    lastFailedAt: toDate(message.lastFailedAt),
    timeout: message.timeout * 1000,
    deadline: toDate(message.deadline),
    group: message.groupKey,
    nextProcessAt: standing.nextProcessAt === undefined ? undefined : new Date(standing.nextProcessAt),
    pendingSince: standing.pendingSince === undefined ? undefined : new Date(standing.pendingSince),
    isOrphaned: standing.isOrphaned ?? false,
    retention: message.retention * 1000,
    completedAt: toDate(message.completedAt),
    result: standing.result?.length ? standing.result : undefined,
  };
}

/** The last moment a Date can tell; an int64 of seconds reaches further. */
const LAST_SECOND = 8.64e12;

const toDate = (seconds: number): Date | undefined =>
  seconds === 0 ? undefined : new Date(Math.min(Math.max(seconds, -LAST_SECOND), LAST_SECOND) * 1000);
