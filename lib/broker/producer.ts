import type { Acknowledge } from '../task/acknowledge.js';
import type { BoundedStatus, EnqueueRequest, EnqueueStatus } from './enqueue-request.js';

/** What became of the tasks of a call, and who has them for certain. */
export interface AcknowledgedReply {
  readonly statuses: readonly BoundedStatus[];
  /** How many replicas have them, as far as is known. */
  readonly replicas: number;
  /** Whether the file of the master has them, as far as is known. */
  readonly disk: boolean;
  /** Whether that is what was asked for. */
  readonly isEnough: boolean;
}

export interface ProducerRole {
  /** Creates tasks in one atomic step per call, in order. The result has one status per request. */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]>;
  /** The same, but a task that would be pending is only created while fewer than `maxPending` are. Checked task by task, in the same step. */
  enqueueBounded(queue: string, requests: readonly EnqueueRequest[], maxPending: number): Promise<BoundedStatus[]>;
  /**
   * One of the two, then waits until replicas or files have the tasks, up to a time. They are stored also when that is over.
   *
   * @param maxPending `undefined`: no bound
   * @throws InvalidOptionError when the store cannot wait for its disk; nothing is written
   */
  enqueueAcknowledged(
    queue: string,
    requests: readonly EnqueueRequest[],
    acknowledge: Acknowledge,
    maxPending?: number,
  ): Promise<AcknowledgedReply>;
}
