import type { BoundedStatus, EnqueueRequest, EnqueueStatus } from './enqueue-request.js';

export interface ProducerRole {
  /** Creates tasks in one atomic step per call, in order. The result has one status per request. */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]>;
  /** The same, but a task that would be pending is only created while fewer than `maxPending` are. Checked task by task, in the same step. */
  enqueueBounded(queue: string, requests: readonly EnqueueRequest[], maxPending: number): Promise<BoundedStatus[]>;
}
