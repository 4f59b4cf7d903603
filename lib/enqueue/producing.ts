import type { EnqueueRequest, EnqueueStatus } from '../broker/broker.js';
import type { Full } from '../broker/enqueue-request.js';
import type { Acknowledge } from '../task/acknowledge.js';
import type { RepeatReply } from '../broker/uniqueness.js';

/** What takes tasks for one queue: the broker's producer, or the way of tasks with links. */
export interface Producing {
  /**
   * One reply per request, in order: a status, or an error that is about this task alone; a promise when its task is not decided with
   * the others of the call.
   */
  enqueue(
    queue: string,
    requests: readonly EnqueueRequest[],
  ): Promise<readonly (EnqueueReply | Promise<EnqueueReply>)[]>;
}

/** Decides all tasks of a call at once, and can leave out those that the queue has no room for. */
export interface BoundedProducing extends Producing {
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<readonly EnqueueReply[]>;
  enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<readonly (EnqueueReply | Full)[]>;
}

/** The task is stored, but not where it was to be within its time. */
export class Unacknowledged {
  constructor(
    readonly wanted: Acknowledge,
    readonly found: { readonly replicas: number; readonly disk: boolean },
    /** What became of one with a policy for repeats. */
    readonly reply?: RepeatReply,
  ) {}
}

export type EnqueueReply = EnqueueStatus | RepeatReply | Unacknowledged | Error;
