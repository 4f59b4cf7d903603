import type { TaskBatch } from './batch.js';

/** What running tasks see of that which they belong to. The client makes it. */
export interface TaskContexts {
  /** Of a member. @param queue where the batch lives */
  batchOf(queue: string, id: string): TaskBatch;
}
