import type { QueueState } from './queue-state.js';

/** What executor and processor report, for the parts of the server that act on it. */
export interface QueueListener {
  /** Something waits to be settled, or a slot is free: a round is due. */
  workAvailable(): void;
  /** How many handlers may run at the same time. */
  readonly concurrency: number;
  /** Whether a slot is free. */
  hasRoom(): boolean;
  /** A queue replied to an exchange that asked for `asked` tasks, with `got`. */
  exchanged(queue: QueueState, asked: number, got: number): void;
  /** A queue did not reply. */
  exchangeFailed(queue: QueueState, error: unknown): void;
  /** No round is under way any more. */
  roundsOver(): void;
}
