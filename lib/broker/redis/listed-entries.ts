import { PackedReader } from './scripts/packed-reader.js';

/**
 * The maximal bytes of a page: large payloads make it short, so that it does not block Redis or
 * fill the memory.
 */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/** One task of a list, as a script returns it. */
export interface Entry {
  readonly id: Buffer;
  /**
   * The score; '1' for an orphaned active task; since when a pending task waits, in nanoseconds. ''
   * for none.
   */
  readonly mark: string;
  readonly message: Buffer;
  readonly result: Buffer;
  /** Since when it is held, in nanoseconds, and in which waitlist; '' for a task that is not. */
  readonly since: string;
  readonly waitlist: string;
  /** JSON of what an active task has said last of its progress; '' for none. */
  readonly progress: string;
}

export interface RawPage {
  readonly entries: Entry[];
  readonly cursor: string | undefined;
}

const NO_BYTES = Buffer.alloc(0);
const NO_TEXTS = { mark: '', since: '', waitlist: '', progress: '' };
const NOTHING: Entry = { id: NO_BYTES, message: NO_BYTES, result: NO_BYTES, ...NO_TEXTS };
const TEXTS: ReadonlySet<keyof Entry> = new Set(['mark', 'since', 'waitlist', 'progress']);

/** @param fields what is packed of each */
export function readEntries(packed: Buffer, fields: readonly (keyof Entry)[]): Entry[] {
  const entries: Entry[] = [];
  const reader = new PackedReader(packed);
  while (reader.more()) {
    const read = fields.map((field) => [field, TEXTS.has(field) ? reader.text() : reader.view()]);
    entries.push({ ...NOTHING, ...(Object.fromEntries(read) as Partial<Entry>) });
  }
  return entries;
}
