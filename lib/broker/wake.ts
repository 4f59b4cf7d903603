/** Wake-ups: an idle server starts a task at once without polling faster. */
export interface WakeSource {
  /**
   * Arms one wake-up per queue for the next change of `pending` or `paused`, and reads the backlog
   * in the same step, so that no change is missed. Returns the backlog by queue (0 when paused).
   * Rejects when wake-ups are not available.
   */
  armPending(queues: readonly string[]): Promise<Map<string, number>>;
  /**
   * The same for `scheduled` and `retry`. Returns the lowest score of all queues (Unix seconds).
   */
  armDelayed(queues: readonly string[]): Promise<number | undefined>;
  /** The same for the list of places with links, which it returns: see LinksRole.places. */
  armPlaces(): Promise<string[]>;
  close(): Promise<void>;
}

export interface WakeListener {
  /**
   * `pending` or `paused` of the queue has changed since it was armed. Arm again for the next
   * change.
   */
  onPending(queue: string): void;
  onDelayed(queue: string): void;
  /** The list of places with links has changed since it was armed. */
  onPlaces?(): void;
  /**
   * All wake-ups are lost (lost connection, not permitted): poll, and arm again at the next
   * occasion.
   */
  onLost(): void;
}

export interface WakeRole {
  /** A source of wake-ups on connections of its own, opened at first use. Each server has one. */
  watch(listener: WakeListener): WakeSource;
}
