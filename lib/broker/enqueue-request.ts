import type { TaskMessage } from '../wire/message.js';

/** One task to create. Its state follows from the request: scheduled, else group, else pending. */
export interface EnqueueRequest {
  readonly message: TaskMessage;
  /**
   * Unix seconds, rounded up. If given, the task is scheduled, and joins its group, if any, when it
   * is due.
   */
  readonly processAt?: number;
  /** Seconds (at least 1) the lock `message.uniqueKey` lives; given exactly when that key is not empty. */
  readonly uniqueTtl?: number;
  /** The id was made for this request: a task with this id is this one. */
  readonly madeId?: boolean;
}

/**
 * `duplicate`: another task holds the lock (checked first). `conflict`: a task with this id exists.
 */
export type EnqueueStatus = 'enqueued' | 'duplicate' | 'conflict';

/** The queue has no room for the task: it had so many pending ones. Nothing is stored. */
export interface Full {
  readonly pending: number;
}

/** What became of a task that is only created while its queue has room. */
export type BoundedStatus = EnqueueStatus | Full;

/** Whether the task would be pending, and so takes room: not one with a time, or of a group. */
export const takesRoom = ({ processAt, message }: EnqueueRequest): boolean =>
  processAt === undefined && message.groupKey === '';
