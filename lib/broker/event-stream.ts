/*
 * What happens to tasks in the whole fleet, as one bounded line of events: a stream of ours that Go does not know. It is for looking on:
 * whoever appends may lose events when Redis is away, and the oldest are dropped.
 */

/** Seconds without a new event after which the stream is forgotten. */
export const EVENT_STREAM_SECONDS = 7 * 86_400;

export interface StreamedEntry {
  /** `<milliseconds>-<number>`: later entries have greater ones. */
  readonly id: string;
  readonly data: Buffer;
}

export interface EventStreamBroker {
  /** Appends entries in their order. Of more than about `most` the oldest are dropped; the newest `most` are kept. */
  appendEvents(entries: readonly Buffer[], most: number): Promise<void>;
  /**
   * What came after an entry, oldest first.
   *
   * @param after an id, whether there is such an entry or not; `0-0` is before all
   */
  readEvents(after: string, limit: number): Promise<StreamedEntry[]>;
  /** The id of the newest entry; `0-0` when there is none. */
  lastEventId(): Promise<string>;
}
