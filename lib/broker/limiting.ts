/**
 * `max` starts per window, counted in 40 parts of it, the oldest part whole: no window has more
 * than `max`.
 */
export interface StartLimit {
  readonly max: number;
  /** Milliseconds, at least 1. */
  readonly window: number;
}

export interface TakenCosts {
  readonly granted: number;
  /** Milliseconds until the first that is not granted may be; 0 when all are. */
  readonly retryIn: number;
  /** The part of time in which they count. */
  readonly part: number;
  /** The least cost that may be granted until then; 0 when all are granted. */
  readonly least: number;
}

/** How long room is kept for a task that did not fit, once there is some. */
export const SAVED_ROOM_MS = 2_000;
/** The shortest time until another try. */
export const MIN_COST_RETRY_MS = 100;

export interface CostCorrection {
  /** As `takeCosts` returned it. */
  readonly part: number;
  /** What the task has spent, less its cost. */
  readonly by: number;
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
   * Counts the costs of tasks (whole numbers from 1 to `max`) in the same way, in their order, as long as they fit: none behind the first
   * that does not. Until that one, or another of its cost, is granted, no task of the scope is that costs less, so that it does not wait
   * for ever. This ends two seconds after there was room for it: it may be gone.
   */
  takeCosts(scope: string, limit: StartLimit, costs: readonly number[]): Promise<TakenCosts>;
  /** Counts now what tasks have spent beyond their costs, and takes back what they have not, while it still counts. */
  correctCosts(scope: string, window: number, corrections: readonly CostCorrection[]): Promise<void>;
  /**
   * Moves up to `count` tasks of a waitlist to the front of their queue, the longest waiting first,
   * behind those that were woken before and have waited longer; none while the queue is paused. A
   * task that was run, archived or deleted meanwhile has lost its position.
   */
  wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }>;
  /** The waitlists of a queue in which tasks wait, or may wait: `wakeWaiting` tells. */
  usedWaitlists(queue: string): Promise<readonly string[]>;
}
