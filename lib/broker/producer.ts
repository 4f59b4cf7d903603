import type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';

export interface ProducerRole {
  /** Creates tasks in one atomic step per call, in order. The result has one status per request. */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]>;
}
