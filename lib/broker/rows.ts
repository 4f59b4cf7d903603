import type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';
import type { Caused, LinkedRequest } from './links.js';
import type { RepeatReply, RepeatRequest } from './uniqueness.js';

/** A row of an outbox. */
export interface Row<R extends EnqueueRequest = EnqueueRequest> {
  /** A whole number from 1. Those of a sender only grow. */
  readonly number: number;
  readonly request: R;
}

/**
 * Tasks from the outbox of a database. A sender is a line of rows, each with a number; whoever sends them may send
 * them again, at any time: a row whose number is not above the highest one that the queue has got from its sender
 * is left out, and counts as enqueued. The store keeps one number per queue and sender, for ever, also when the
 * queue is deleted.
 */
export interface RowsRole {
  /** Creates tasks as ProducerRole.enqueue. @param rows at least one, in the order of their numbers */
  enqueue(queue: string, sender: string, rows: readonly Row[]): Promise<EnqueueStatus[]>;
  /** As LinksRole.enqueue. Rows with links have numbers of their own: the highest is another one. */
  enqueueLinked(
    queue: string,
    sender: string,
    rows: readonly Row<LinkedRequest>[],
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }>;
  /** As UniquenessRole.enqueue. These rows, too, have numbers of their own. */
  enqueueRepeats(
    queue: string,
    sender: string,
    rows: readonly Row<RepeatRequest>[],
  ): Promise<Caused & { readonly statuses: readonly RepeatReply[] }>;
}
