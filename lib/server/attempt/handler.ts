import type { IsFailure, RetryDelay, TaskContext } from '../../task/context.js';
import type { TaskLimits } from '../../task/limits.js';

/**
 * One handler as the server sees it: a pattern, what to call, and what it decides about failures.
 */
export interface TaskHandlerEntry {
  /** Exact type, or a prefix of types. */
  readonly pattern: string;
  /**
   * Runs the task. The value (or what it resolves to) is the task's result; `undefined` is none.
   */
  readonly handle: (task: TaskContext) => unknown;
  readonly retryDelay?: RetryDelay;
  readonly isFailure?: IsFailure;
  /**
   * How many of its tasks run and start. Default: as many as the server and the queue let through.
   */
  readonly limits?: TaskLimits;
}
