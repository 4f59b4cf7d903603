import { type AppendOptions, type EventsRole, STREAM_SECONDS, type StreamedEntry, type StreamName } from '../events.js';
import type { MemoryState } from './memory-state.js';

export class MemoryEvents implements EventsRole {
  private readonly streams: Readonly<Record<StreamName, MemoryEventStream>>;

  constructor(private readonly state: MemoryState) {
    this.streams = { events: new MemoryEventStream('events'), audit: new MemoryEventStream('audit') };
  }

  async appendEvents(
    stream: StreamName,
    entries: readonly Buffer[],
    options: AppendOptions,
  ): Promise<string | undefined> {
    this.state.assertOpen();
    return this.streams[stream].append(entries, options, this.state.now);
  }

  async readEvents(stream: StreamName, after: string, limit: number): Promise<StreamedEntry[]> {
    this.state.assertOpen();
    return this.streams[stream].read(after, limit, this.state.now);
  }

  async readEventsBack(stream: StreamName, before: string | undefined, limit: number): Promise<StreamedEntry[]> {
    this.state.assertOpen();
    return this.streams[stream].readBack(before, limit, this.state.now);
  }

  async lastEventId(stream: StreamName): Promise<string> {
    this.state.assertOpen();
    return this.streams[stream].last(this.state.now);
  }

  clear(): void {
    for (const stream of Object.values(this.streams)) stream.clear();
  }
}

/**
 * As in Redis, which drops whole blocks: trimming at each append would copy the stream each time.
 */
const TRIM_SLACK = 100;

interface Entry {
  readonly time: number;
  readonly number: number;
  readonly data: Buffer;
}

/** One bounded stream of events. */
class MemoryEventStream {
  private entries: Entry[] = [];
  /** Milliseconds since the epoch. */
  private endsAt = Infinity;

  constructor(private readonly name: StreamName) {}

  append(entries: readonly Buffer[], { most, replaces }: AppendOptions, now: number): string | undefined {
    if (entries.length === 0) return undefined;
    const last = this.living(now).at(-1);
    const time = Math.max(Math.floor(now), last?.time ?? 0);
    let number = last?.time === time ? last.number : -1;
    for (const data of entries) this.entries.push({ time, number: ++number, data: Buffer.from(data) });
    if (replaces !== undefined) this.entries = this.entries.filter((entry) => idOf(entry) !== replaces);
    if (this.entries.length > most + TRIM_SLACK) this.entries = this.entries.slice(-most);
    this.endsAt = now + STREAM_SECONDS[this.name] * 1000;
    return `${time}-${number}`;
  }

  read(after: string, limit: number, now: number): StreamedEntry[] {
    const all = this.living(now);
    // From the end, where readers are that follow the stream: a poll costs what is new, not what is kept.
    const start = all.findLastIndex(isUntil(after)) + 1;
    return all.slice(start, start + limit).map(toStreamed);
  }

  readBack(before: string | undefined, limit: number, now: number): StreamedEntry[] {
    const all = this.living(now);
    const earlier = before === undefined ? [...all] : all.filter(isBefore(before));
    return earlier.reverse().slice(0, limit).map(toStreamed);
  }

  last(now: number): string {
    const newest = this.living(now).at(-1);
    return newest ? idOf(newest) : '0-0';
  }

  clear(): void {
    this.entries = [];
  }

  private living(now: number): Entry[] {
    if (now >= this.endsAt) this.entries = [];
    return this.entries;
  }
}

const idOf = ({ time, number }: Entry): string => `${time}-${number}`;

const toStreamed = (entry: Entry): StreamedEntry => ({ id: idOf(entry), data: entry.data });

/** Tests of entries against an id, which is read once and not for each entry. */
function isBefore(id: string): (entry: Entry) => boolean {
  const [time, number] = parseId(id);
  return (entry) => (entry.time - time || entry.number - number) < 0;
}
function isUntil(id: string): (entry: Entry) => boolean {
  const [time, number] = parseId(id);
  return (entry) => (entry.time - time || entry.number - number) <= 0;
}

const parseId = (id: string) => id.split('-').map(Number) as [time: number, number: number];
