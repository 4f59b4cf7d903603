/*
 * Cancelling an active task. A cancellation is recorded first, then published on asynq's channel,
 * which carries the bare id: a Go server understands the message, and ignores reason and outcome. A
 * server of ours reads the record when it receives the message; if it missed the message, it finds
 * the record a little later.
 */

/**
 * How long a cancellation stays recorded: far longer than a server can be disconnected and still
 * hold the task.
 */
export const CANCELLATION_SECONDS = 600;
/** At most this many are recorded; the oldest are deleted. */
export const MAX_CANCELLATIONS = 10_000;

/**
 * `retry`: an ordinary failure, as in asynq; `archive`: given up; `delete`: deleted with its lock.
 */
export const CANCEL_OUTCOMES = ['retry', 'archive', 'delete'] as const;
export type CancelOutcome = (typeof CANCEL_OUTCOMES)[number];

export interface Cancellation {
  readonly id: string;
  /** Milliseconds since the epoch: attempts that start later are not cancelled. */
  readonly at: number;
  readonly outcome: CancelOutcome;
  readonly reason?: string;
}

export interface RecordedCancellation extends Cancellation {
  /** Queues in which a server has acted on it: an id may be active in several. */
  readonly acted: readonly string[];
}

/** A server has acted on a cancellation. */
export interface ActedCancellation extends Pick<Cancellation, 'id' | 'at'> {
  readonly queue: string;
}

export interface CancellationRole {
  /**
   * Records a cancellation for {@link CANCELLATION_SECONDS}, in place of an earlier one of this id.
   */
  recordCancellation(cancellation: Cancellation): Promise<void>;
  /** The records of these ids. One small command when nothing is recorded at all. */
  findCancellations(ids: readonly string[]): Promise<RecordedCancellation[]>;
  /**
   * Notes in which queue a server has acted, so that the next attempt there is not cancelled, even
   * if the clock of its server is wrong. Does not change a later record of the id.
   */
  noteCancelled(acted: readonly ActedCancellation[]): Promise<void>;
  /** Asks the server that runs the task to cancel it; best effort, without a reply. */
  publishCancellation(id: string): Promise<void>;
  /**
   * Calls `onCancel` for every cancelled id from when the promise resolves; it rejects when subscribing failed.
   * A lost connection is renewed by the broker. The returned function ends the subscription.
   */
  subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>>;
}
