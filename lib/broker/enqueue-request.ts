import type { TaskMessage } from '../wire/message.js';

/** One task to create. Which state it enters follows from the request: scheduled before group before pending. */
export interface EnqueueRequest {
  readonly message: TaskMessage;
  /** Unix seconds, rounded up; given = the task is scheduled, and joins its group, if it has one, when it is due. */
  readonly processAt?: number;
  /** Seconds (at least 1) the lock `message.uniqueKey` lives; given exactly when that key is not empty. */
  readonly uniqueTtl?: number;
  /** The id was made for this request: a task that has it is this one. */
  readonly madeId?: boolean;
}

/** `duplicate`: another task holds the lock (tested first). `conflict`: a task with this id exists. */
export type EnqueueStatus = 'enqueued' | 'duplicate' | 'conflict';
