/*
 * Bounded streams of what has happened. They are ours; Go does not know them. They are for watching
 * only: entries may be lost while Redis is away, and the oldest are dropped.
 */

/** `events`: what happens to tasks in the whole fleet. `audit`: what is changed through the console. */
export type StreamName = 'events' | 'audit';

/** Seconds without a new entry after which a stream is forgotten. */
export const STREAM_SECONDS: Readonly<Record<StreamName, number>> = { events: 7 * 86_400, audit: 90 * 86_400 };

export interface StreamedEntry {
  /** `<milliseconds>-<number>`: later entries have greater ones. */
  readonly id: string;
  readonly data: Buffer;
}

export interface AppendOptions {
  /** About this many entries are kept; older ones are dropped. */
  readonly most: number;
  /** The id of an entry to remove in the same step, if it still exists. */
  readonly replaces?: string;
}

export interface EventsRole {
  /** Appends entries in their order. Returns the id of the last; `undefined` when there is none. */
  appendEvents(stream: StreamName, entries: readonly Buffer[], options: AppendOptions): Promise<string | undefined>;
  /**
   * The entries after an entry, oldest first.
   *
   * @param after an id, of an existing entry or not; `0-0` is before all
   */
  readEvents(stream: StreamName, after: string, limit: number): Promise<StreamedEntry[]>;
  /**
   * The entries before an entry, newest first.
   *
   * @param before an id, of an existing entry or not; `undefined`: from the newest on
   */
  readEventsBack(stream: StreamName, before: string | undefined, limit: number): Promise<StreamedEntry[]>;
  /** The id of the newest entry; `0-0` when there is none. */
  lastEventId(stream: StreamName): Promise<string>;
}
