import type { TaskBatch } from './batch.js';
import type { TaskSteps } from './steps.js';
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
  readonly waited?: number | undefined;
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
   * Says how far the handler is; the last call counts. It is written soon, together with what is said meanwhile, and for the last time
   * right before the end of the attempt: a call costs nothing, and never waits for Redis.
   *
   * @param fraction from 0 to 1: divide a percentage by 100. An estimate of a little more than 1 counts as 1, less than 0 as 0, `NaN` is
   * ignored
   * @param text what it does just now; up to 500 characters, a longer one is cut
   * @throws InvalidNoteError for 2 and more, and for anything else
   */
  progress(fraction: number, text?: string): void;
  /**
   * Adds a line to the log of the task, which is kept as long as the task: the last 1,000 lines, up to 64 KiB. Written as `progress`.
   *
   * @param text up to 4,000 characters, a longer one is cut
   * @throws InvalidNoteError when it is no string
   */
  log(text: string): void;
  /**
   * Hands a part of the result to those who follow the task, such as the tokens of a model. The last 10,000 chunks of the attempt are kept
   * with the task, up to 256 KiB, for those who come later. Written as `progress`.
   *
   * @param chunk JSON data, up to 64 KiB
   * @throws InvalidNoteError when it is not
   */
  emit(chunk: unknown): void;
  /**
   * Says what the task has really cost of the rate of its handler, instead of what `cost` said before. It is counted when the handler
   * ends; the last call counts. After a crash the first cost stands.
   *
   * @param amount 0 or more, also more than `max`; a fraction is rounded up
   * @throws InvalidCostError for anything else, and when the handler has no rate with a cost
   */
  spent(amount: number): void;
  /**
   * Steps of the handler that are done once, however often it is called: see TaskSteps.
   *
   * @throws InvalidStepError when it is read in a batch handler
   */
  readonly steps: TaskSteps;
  /** Whether it is a member of a batch. */
  readonly isMember: boolean;
  /**
   * The batch that this task is a member of: to add members, and to see how far it is. In a callback the batch that has called it.
   *
   * @throws NotAMemberError when it is read in any other task
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
