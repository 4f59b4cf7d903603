/**
 * `max` starts per window, counted in sixteenths of it, the oldest part whole: no window has more
 * than `max`.
 */
export interface StartLimit {
  readonly max: number;
  /** Milliseconds, at least 1. */
  readonly window: number;
}

/**
 * Bounds the work of the fleet. Tokens bound how many tasks run at the same time, as asynq's x/rate
 * (section 8.4). Starts and waitlists are ours: a task that reaches a limit is settled as `wait`,
 * and is in a waitlist of its queue until it is woken.
 */
export interface LimitingRole {
  /**
   * Takes tokens of a scope that has `max`, one per task. Returns which tasks have one now. A
   * holder keeps its token, and only the deadline moves. Tokens whose deadline (Unix seconds) has
   * passed are free, which frees those of crashed holders.
   */
  acquireTokens(scope: string, max: number, deadline: number, taskIds: readonly string[]): Promise<boolean[]>;
  /** Returns how many of the tasks held a token. */
  releaseTokens(scope: string, taskIds: readonly string[]): Promise<number>;
  /**
   * Counts up to `wanted` starts of a scope. Returns how many are granted, and milliseconds until
   * more may be (0 when all are).
   */
  takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<{ granted: number; retryIn: number }>;
  /**
   * Moves up to `count` tasks of a waitlist to the front of their queue, the longest waiting first,
   * behind those that were woken before and have waited longer; none while the queue is paused. A
   * task that was run, archived or deleted meanwhile has lost its position.
   */
  wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }>;
}
