import type { EnqueueRequest, EnqueueStatus } from '../broker/broker.js';
import type { RepeatReply } from '../broker/uniqueness.js';

/** What takes tasks for one queue: the broker's producer, or the way of tasks with links. */
export interface Producing {
  /** One status per request, in order; or an error that is about this task alone. */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<readonly EnqueueReply[]>;
}

export type EnqueueReply = EnqueueStatus | RepeatReply | Error;
