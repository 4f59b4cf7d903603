import type { IsFailure, RetryDelay, TaskContext } from '../../task/context.js';
import type { TaskLimits } from '../../task/limits.js';
import type { StepsOptions } from '../../task/steps-options.js';

/** A handler: the tasks it runs, what to call, and what it decides about failures. */
export type TaskHandlerEntry = SingleHandlerEntry | BatchHandlerEntry;

/** Whether its tasks may have steps. */
export const runsSteps = ({ steps, batch }: TaskHandlerEntry): boolean => steps !== undefined && !batch;

/** A handler that is called for each task. */
export interface SingleHandlerEntry extends HandlerSettings {
  /** Runs the task. What it returns or resolves to is the result; `undefined` is none. */
  readonly handle: (task: TaskContext) => unknown;
  readonly batch?: undefined;
}

/** A handler that is called for many tasks. */
export interface BatchHandlerEntry extends HandlerSettings {
  readonly handle?: undefined;
  readonly batch: BatchHandling;
}

interface HandlerSettings {
  /** Exact type, or a prefix of types. */
  readonly pattern: string;
  readonly retryDelay?: RetryDelay;
  readonly isFailure?: IsFailure;
  /** The newest version of payloads that it knows. Default 1. */
  readonly version?: number | undefined;
  /** That it has steps, and how they meet what is stored. Default: it may have some, and nothing is known of them. */
  readonly steps?: StepsOptions | undefined;
  /** Limits of its own, besides those of server and queue. */
  readonly limits?: TaskLimits;
  /** What a task costs of the rate among the limits. Default: 1. */
  readonly cost?: ((task: TaskContext) => number) | undefined;
  /** Whose limits hold for a task. It throws InvalidLimitKeyError when there is no key. Default: one limit for all. */
  readonly limitKey?: ((task: TaskContext) => string) | undefined;
}

/** What a batch handler does with its tasks. */
export interface BatchHandling {
  /** The most tasks of one call. */
  readonly size: number;
  /** How long the first task of a call waits for others, in milliseconds. */
  readonly wait: number;
  /**
   * Runs some tasks. Resolves to an entry for each, in their order: its result, or a {@link FailedTask}. When it rejects, all have
   * failed.
   */
  readonly handle: (tasks: readonly TaskContext[]) => Promise<readonly unknown[]>;
}

/** Stands for the result of a task that has failed alone. */
export class FailedTask {
  constructor(readonly error: unknown) {}
}
