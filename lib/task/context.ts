import type { TaskBatch } from './batch.js';
import type { WorkflowContext } from './workflow-context.js';

/** The task that a handler runs. */
export interface TaskContext {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  /** Empty if the task has none. */
  readonly headers: Readonly<Record<string, string>>;
  /** The payload as it is stored; empty if there is none. */
  readonly payload: Buffer;
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /**
   * Milliseconds the task was pending before this attempt; `undefined` if unknown or not measured
   * (see `AsynqEvents.measureWaits`; metrics and traces measure it).
   */
  readonly waited?: number;
  /** The end of this attempt: the earlier of timeout and deadline. */
  readonly deadline: Date;
  /**
   * Fires when the deadline passes, the task is cancelled, its lease is lost or the server shuts
   * down; `signal.reason` is DeadlineExceededError, TaskCanceledError, LeaseExpiredError or
   * ShutdownError. The slot stays taken until the handler settles.
   */
  readonly signal: AbortSignal;
  /**
   * Stores a result on the task: bytes as they are, anything else as JSON. Each call replaces the
   * previous result. It is kept after success only if the task has a retention. Rejects once the
   * task is done or its lease is lost.
   */
  writeResult(result: unknown): Promise<void>;
  /**
   * Says what the task has really cost of the rate of its handler, instead of what `cost` said before. It is counted when the handler
   * ends; the last call counts. After a crash the first cost stands.
   *
   * @param amount 0 or more, also more than `max`; a fraction is rounded up
   * @throws InvalidCostError for anything else, and when the handler has no rate with a cost
   */
  spent(amount: number): void;
  /** Whether it is a member of a batch. */
  readonly isMember: boolean;
  /**
   * The batch that this task is a member of: to add members, and to see how far it is.
   *
   * @throws NotAMemberError when it is read in a task that is in none
   */
  readonly batch: TaskBatch;
  /** Whether it is a step of a workflow. */
  readonly isStep: boolean;
  /**
   * The run that this task is a step of: results of other steps, steps to add, and its end.
   *
   * @throws NotAStepError when it is read in a task that is no step
   */
  readonly workflow: WorkflowContext;
}

/** Milliseconds until the next attempt. `retried` is the number of failures before this one. */
export type RetryDelay = (retried: number, error: unknown, task: TaskContext) => number;

/** Whether an error counts as a failure; otherwise the task is retried without using up a retry. */
export type IsFailure = (error: unknown) => boolean;
