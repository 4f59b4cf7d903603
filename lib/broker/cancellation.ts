/*
 * Cancelling a task that runs. What is asked for is recorded first, and then told over the channel that asynq has for it, which
 * carries the bare id: a Go server understands the message, and knows nothing of reason and outcome. A server of ours that heard
 * it looks up what was recorded; one that did not, since its connection was away, finds the record by itself a little later.
 */

/** Seconds a cancellation stays recorded: far longer than a server can be away and still hold the task. */
export const CANCELLATION_SECONDS = 600;
/** How many are recorded at most; of more, the oldest are forgotten. */
export const MAX_CANCELLATIONS = 10_000;

/** What becomes of the task: an ordinary failure, as in asynq; given up; or deleted with the lock it holds. */
export const CANCEL_OUTCOMES = ['retry', 'archive', 'delete'] as const;
export type CancelOutcome = (typeof CANCEL_OUTCOMES)[number];

export interface Cancellation {
  readonly id: string;
  /** Milliseconds since the epoch: attempts that begin later are not meant. */
  readonly at: number;
  readonly outcome: CancelOutcome;
  readonly reason?: string;
}

export interface RecordedCancellation extends Cancellation {
  /** Queues in which a server has acted on it: an id may run in several. */
  readonly acted: readonly string[];
}

/** A server has acted on a cancellation. */
export interface ActedCancellation extends Pick<Cancellation, 'id' | 'at'> {
  readonly queue: string;
}

export interface CancellationRole {
  /** Records what is to be cancelled for {@link CANCELLATION_SECONDS}, in place of an earlier record of this id. */
  recordCancellation(cancellation: Cancellation): Promise<void>;
  /** What is recorded for these ids. One small question when nothing is recorded for any id. */
  findCancellations(ids: readonly string[]): Promise<RecordedCancellation[]>;
  /**
   * Notes in which queue a server has acted, so that whoever runs the next attempt there is not taken for the one that was meant,
   * however wrong his clock is. Without effect on a later record of the id.
   */
  noteCancelled(acted: readonly ActedCancellation[]): Promise<void>;
  /** Asks whichever server runs the task to cancel it; best effort, not acknowledged. */
  publishCancellation(id: string): Promise<void>;
  /**
   * Calls `onCancel` for every cancelled id from when the promise resolves; it rejects when subscribing failed.
   * A lost connection is renewed by the broker. The returned function ends the subscription.
   */
  subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>>;
}
