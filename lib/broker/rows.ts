import type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';
import type { Caused, LinkedRequest } from './links.js';
import type { RepeatReply, RepeatRequest } from './uniqueness.js';

/** A row of an outbox. */
export interface Row<R extends EnqueueRequest = EnqueueRequest> {
  /** A whole number from 1. Those of a sender only grow. */
  readonly number: number;
  readonly request: R;
}

/** The queue has a higher number from this sender than its database has given: the database has lost what it knew. Nothing was done. */
export class SenderAheadError extends Error {
  constructor(queue: string, sender: string, number: number) {
    super(
      `queue "${queue}" has got row number ${number} of the sender "${sender}", which its database knows nothing of: ` +
        'it has lost its last transactions, as by a failover or an old backup',
    );
  }
}

/**
 * Tasks from the outbox of a database. A sender is a line of rows, each with a number; whoever sends them may send
 * them again, at any time: a row whose number is not above the highest one that the queue has got from its sender
 * is left out, and counts as enqueued. The store keeps one number per queue and sender, for ever, also when the
 * queue is deleted.
 */
export interface RowsRole {
  /**
   * Creates tasks as ProducerRole.enqueue.
   *
   * @param rows at least one, in the order of their numbers
   * @param given the highest number that the sender has given to any row. Default: unknown
   * @throws SenderAheadError
   */
  enqueue(queue: string, sender: string, rows: readonly Row[], given?: number): Promise<EnqueueStatus[]>;
  /** As LinksRole.enqueue. Rows with links have numbers of their own: the highest is another one. */
  enqueueLinked(
    queue: string,
    sender: string,
    rows: readonly Row<LinkedRequest>[],
    given?: number,
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }>;
  /** As UniquenessRole.enqueue. These rows, too, have numbers of their own. */
  enqueueRepeats(
    queue: string,
    sender: string,
    rows: readonly Row<RepeatRequest>[],
    given?: number,
  ): Promise<Caused & { readonly statuses: readonly RepeatReply[] }>;
}
