import type { ProtoReader } from './proto-reader.js';
import { NESTED_BOUND, NUMBER_BOUND, type ProtoWriter } from './proto-writer.js';

/** Go's zero time, 0001-01-01T00:00:00Z: what Go writes for "never" (wire-protocol section 2.3). */
const NEVER_SECONDS = -62_135_596_800;

/** The most bytes of a timestamp field. */
export const TIMESTAMP_BOUND = NESTED_BOUND + 2 * NUMBER_BOUND;

/** The range of a Date. A timestamp beyond it is read as its bound. */
const MAX_DATE_MS = 8.64e15;

const SECONDS = 8;
const NANOS = 16;

/** @param milliseconds since the epoch; `undefined` is never */
export function writeTimestamp(writer: ProtoWriter, tag: number, milliseconds: number | undefined): void {
  let seconds = NEVER_SECONDS;
  let nanos = 0;
  if (milliseconds !== undefined) {
    seconds = Math.floor(milliseconds / 1000);
    nanos = Math.min(Math.round((milliseconds - seconds * 1000) * 1e6), 999_999_999);
  }
  const mark = writer.open(tag);
  writer.int64(SECONDS, seconds);
  writer.int32(NANOS, nanos);
  writer.close(mark);
}

/**
 * Milliseconds since the epoch; finer parts are dropped. A missing timestamp, which means 0, never
 * gets here.
 */
export function readTimestamp(reader: ProtoReader): number {
  const outer = reader.enter();
  let seconds = 0;
  let nanos = 0;
  while (reader.more()) {
    const tag = reader.tag();
    if (tag === SECONDS) seconds = reader.int64();
    else if (tag === NANOS) nanos = reader.int32();
    else reader.skip(tag);
  }
  reader.leave(outer);
  return Math.min(Math.max(seconds * 1000 + Math.floor(nanos / 1e6), -MAX_DATE_MS), MAX_DATE_MS);
}

/** The same; `undefined` is never. */
export function readOptionalTimestamp(reader: ProtoReader): number | undefined {
  const milliseconds = readTimestamp(reader);
  return milliseconds === NEVER_SECONDS * 1000 ? undefined : milliseconds;
}
