/**
 * `max` starts per window: no window has more. Of more than 40, those of each 40th of the window count together, until all of them are a
 * window old.
 */
export interface StartLimit {
  readonly max: number;
  /** Milliseconds, at least 1. */
  readonly window: number;
  /** For how many milliseconds after the call the tasks may wait for their start: they are counted at its end. Default 0. */
  readonly allowance?: number;
}

export interface TakenStarts {
  readonly granted: number;
  /** Milliseconds until more may be; 0 while more may. */
  readonly retryIn: number;
  /** Milliseconds for which those that are granted count; 0 when none is. */
  readonly countsFor: number;
  /** How many more might have been granted. */
  readonly left: number;
  /** The time at which those that are granted count, in milliseconds since the epoch; 0 when none is. */
  readonly countedAt: number;
}

export interface TakenCosts {
  readonly granted: number;
  /** Milliseconds until the first that is not granted may be; 0 when all are. */
  readonly retryIn: number;
  /** The time at which they count, in milliseconds since the epoch. */
  readonly countedAt: number;
  /** The least cost that may be granted until then; 0 when all are granted. */
  readonly least: number;
}

/** How long room is kept for a task that did not fit, once there is some. */
export const SAVED_ROOM_MS = 2_000;
/** The shortest time until another try. */
export const MIN_COST_RETRY_MS = 100;

export interface CostCorrection {
  /** As `takeCosts` returned it. */
  readonly countedAt: number;
  /** What the task has spent, less its cost. */
  readonly by: number;
}

/** How long a request for a token is known, in milliseconds. */
export const TOKEN_REQUEST_MS = 3_000;

/** A millisecond of the store, about. */
export const WAITLISTS_AT_ONCE = 1_000;

export interface WaitlistPage {
  readonly names: readonly string[];
  /** '' when there are no more. */
  readonly cursor: string;
}

/** A token gets another name. */
export interface TokenMove {
  readonly from: string;
  readonly to: string;
}

/**
 * Bounds the work of the fleet. Tokens bound how many tasks run at the same time, as asynq's x/rate
 * (section 8.4). Starts and waitlists are ours: a task that reaches a limit is settled as `wait`,
 * and is in a waitlist of its queue until it is woken.
 */
export interface LimitingRole {
  /** For how many milliseconds after a first call a task may wait for its start; 0 when a call takes no time, so that no task comes late. */
  readonly firstAllowance: number;
  /**
   * Takes tokens of a scope that has `max`, one per task. Returns which tasks have one now. A
   * holder keeps its token, and only the deadline moves. Tokens whose deadline (Unix seconds) has
   * passed are free, which frees those of crashed holders. A holder is any text: servers name their tokens, so that one may pass from
   * task to task.
   */
  acquireTokens(scope: string, max: number, deadline: number, holders: readonly string[]): Promise<boolean[]>;
  /** Returns how many of the holders had a token. */
  releaseTokens(scope: string, holders: readonly string[]): Promise<number>;
  /** Gives tokens other names and this deadline (Unix seconds). Returns which have the new name now. */
  moveTokens(scope: string, deadline: number, moves: readonly TokenMove[]): Promise<boolean[]>;
  /**
   * Notes for TOKEN_REQUEST_MS that `server` has tasks and no token, unless another server is noted: whoever keeps tokens for its next
   * tasks gives one up, then. Returns whether it is noted. Only a hint: no token depends on it.
   */
  requestToken(scope: string, server: string): Promise<boolean>;
  /** The server that is noted. */
  tokenRequest(scope: string): Promise<string | undefined>;
  /**
   * Counts up to `wanted` starts of a scope.
   */
  takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<TakenStarts>;
  /**
   * Counts the costs of tasks (whole numbers from 1 to `max`) in the same way, in their order, as long as they fit: none behind the first
   * that does not. Until that one, or another of its cost, is granted, no task of the scope is that costs less, so that it does not wait
   * for ever. This ends two seconds after there was room for it: it may be gone.
   */
  takeCosts(scope: string, limit: StartLimit, costs: readonly number[]): Promise<TakenCosts>;
  /**
   * Counts now what tasks have spent beyond their costs, and takes back what they have not, while it still counts: also the starts of tasks
   * that were granted and did not start.
   */
  correctCosts(scope: string, window: number, corrections: readonly CostCorrection[]): Promise<void>;
  /**
   * Moves up to `count` tasks of a waitlist to the front of their queue, the longest waiting first,
   * behind those that were woken before and have waited longer; none while the queue is paused. A
   * task that was run, archived or deleted meanwhile has lost its position.
   */
  wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }>;
  /**
   * The waitlists of a queue in which tasks wait, or may wait: `wakeWaiting` returns how many do. About WAITLISTS_AT_ONCE of them; one may come twice.
   *
   * @param cursor where the call before has stopped; '' to begin
   */
  findWaitlists(queue: string, cursor: string): Promise<WaitlistPage>;
  /** Those of these waitlists in which tasks wait, or may wait. */
  usedWaitlists(queue: string, waitlists: readonly string[]): Promise<readonly string[]>;
}
