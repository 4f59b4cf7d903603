/** So many per window; counted in sixteenths of it, the oldest whole: no stretch of that length ever sees more than `max`. */
export interface StartLimit {
  readonly max: number;
  /** Milliseconds, at least 1. */
  readonly window: number;
}

/**
 * What bounds work of the whole fleet. Tokens bound how many tasks do something at the same time: asynq's x/rate (section 8.4). Starts
 * and lines are ours: a task that finds a limit reached is settled as `wait`, and stands in a line of its queue until it is woken.
 */
export interface LimitingRole {
  /**
   * Takes tokens of a scope that has `max`, one per task; answers which tasks have one now. Who has one keeps it, and only its
   * deadline moves. Tokens whose deadline (Unix seconds) has passed are free: those of crashed holders come back so.
   */
  acquireTokens(scope: string, max: number, deadline: number, taskIds: readonly string[]): Promise<boolean[]>;
  /** Answers how many of the tasks held a token. */
  releaseTokens(scope: string, taskIds: readonly string[]): Promise<number>;
  /** Counts up to `wanted` starts of a scope; answers how many may be, and milliseconds until more may (0 when all may). */
  takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<{ granted: number; retryIn: number }>;
  /**
   * Puts up to `count` tasks that wait in a line to the front of their queue, the one that has waited longest first, and behind those
   * that were woken before and have waited longer; none while the queue is paused. A task that was run, archived or deleted
   * meanwhile has lost its place.
   */
  wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }>;
}
