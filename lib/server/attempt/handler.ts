import type { IsFailure, RetryDelay, TaskContext } from '../../task/context.js';
import type { TaskLimits } from '../../task/limits.js';

/** A handler: the tasks it runs, what to call, and what it decides about failures. */
export interface TaskHandlerEntry {
  /** Exact type, or a prefix of types. */
  readonly pattern: string;
  /** Runs the task. What it returns or resolves to is the result; `undefined` is none. */
  readonly handle: (task: TaskContext) => unknown;
  readonly retryDelay?: RetryDelay;
  readonly isFailure?: IsFailure;
  /** The newest version of payloads that it knows. Default 1. */
  readonly version?: number | undefined;
  /** Limits of its own, besides those of server and queue. */
  readonly limits?: TaskLimits;
}
