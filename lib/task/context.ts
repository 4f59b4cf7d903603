/** What a handler knows of the task it runs. */
export interface TaskContext {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  /** Empty when the task has none. */
  readonly headers: Readonly<Record<string, string>>;
  /** The payload as it is stored; empty when there is none. */
  readonly payload: Buffer;
  /** Failures so far, before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /**
   * Milliseconds it was pending before this attempt; `undefined` when that is not known, or nobody asked: `AsynqEvents.measureWaits`,
   * as the metrics and the traces do.
   */
  readonly waited?: number;
  /** When this attempt must have ended: the earlier of timeout and deadline. */
  readonly deadline: Date;
  /**
   * Fires when the deadline passes, the task is cancelled, its lease is lost or the server shuts down; `signal.reason`
   * is DeadlineExceededError, TaskCanceledError, LeaseExpiredError or ShutdownError. The slot stays taken until the handler settles.
   */
  readonly signal: AbortSignal;
  /**
   * Stores a result on the task: bytes as they are, anything else as JSON. Each call replaces the former. Kept after
   * success only when the task has a retention. Rejects once the task is over or no longer ours.
   */
  writeResult(result: unknown): Promise<void>;
}

/** Milliseconds until the next attempt. `retried` is the number of failures before this one. */
export type RetryDelay = (retried: number, error: unknown, task: TaskContext) => number;

/** Whether an error counts as a failure; a non-failure is retried without counting against the retries. */
export type IsFailure = (error: unknown) => boolean;
