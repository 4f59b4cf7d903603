import type { TaskOptions } from './options.js';
import type { TypedTask } from './typed-task.js';

/**
 * Of the options of a task, those that a member may have. Its id is its number in the batch, and a
 * member in a group would not run itself.
 */
export const MEMBER_OPTION_NAMES = [
  'queue',
  'maxRetry',
  'timeout',
  'deadline',
  'expiresIn',
  'onExpiry',
  'unique',
  'processAt',
  'processIn',
  'retention',
  'headers',
] as const satisfies readonly (keyof TaskOptions)[];

/** Options of the members that one call adds; they override those of the definition. */
export type MemberOptions = Pick<TaskOptions, (typeof MEMBER_OPTION_NAMES)[number]>;

/** Payloads that are read as they are added: an array, a generator, the rows of a stream. */
export type Payloads<P> = Iterable<P> | AsyncIterable<P>;

/**
 * `open`: members may be added; `closed`: its members run; `succeeded`: every member has succeeded;
 * `completed`: every member has ended, and some have failed. A batch that has completed succeeds
 * when its failed members are run again and succeed.
 */
export type BatchState = 'open' | 'closed' | 'succeeded' | 'completed';

/** How far a batch is. A snapshot. */
export interface BatchInfo {
  readonly id: string;
  /** The queue where the batch lives. */
  readonly queue: string;
  readonly name: string;
  readonly state: BatchState;
  /** Members added so far. */
  readonly total: number;
  /** Members that have not ended. */
  readonly pending: number;
  readonly succeeded: number;
  /** Members that are archived, or were deleted, cancelled or revoked. */
  readonly failed: number;
  /** The queues with members that have failed, by name. */
  readonly failedIn: readonly string[];
  readonly openedAt: Date;
  readonly endedAt: Date | undefined;
}

/** The batch of a running task: a member, or a callback. */
export interface TaskBatch {
  readonly id: string;
  /** The queue where the batch lives; the tasks may be in others. */
  readonly queue: string;
  /**
   * Adds members: see `AsynqBatch.add`. A member may add to a closed batch, too: it cannot end before
   * this member has.
   */
  add(type: string, payloads: Payloads<unknown>, options?: MemberOptions): Promise<number>;
  add<P>(task: TypedTask<P>, payloads: Payloads<NoInfer<P>>, options?: MemberOptions): Promise<number>;
  /** How far it is. A member that asks counts as pending. */
  progress(): Promise<BatchInfo>;
  /** No more members will come from outside. */
  close(): Promise<void>;
}
