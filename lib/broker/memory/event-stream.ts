import { EVENT_STREAM_SECONDS, type StreamedEntry } from '../event-stream.js';

/** As Redis does it, which drops whole blocks: trimming each time would copy the line each time. */
const SLACK = 100;

/** The stream of events. */
export class MemoryEventStream {
  private entries: { time: number; number: number; data: Buffer }[] = [];
  /** Milliseconds since the epoch. */
  private endsAt = Infinity;

  append(entries: readonly Buffer[], most: number, now: number): void {
    const last = this.living(now).at(-1);
    const time = Math.max(Math.floor(now), last?.time ?? 0);
    let number = last?.time === time ? last.number : -1;
    for (const data of entries) this.entries.push({ time, number: ++number, data: Buffer.from(data) });
    if (this.entries.length > most + SLACK) this.entries = this.entries.slice(-most);
    if (entries.length > 0) this.endsAt = now + EVENT_STREAM_SECONDS * 1000;
  }

  read(after: string, limit: number, now: number): StreamedEntry[] {
    const [time, number] = after.split('-').map(Number) as [number, number];
    const later = this.living(now).filter(
      (entry) => entry.time > time || (entry.time === time && entry.number > number),
    );
    return later.slice(0, limit).map((entry) => ({ id: idOf(entry), data: entry.data }));
  }

  last(now: number): string {
    const newest = this.living(now).at(-1);
    return newest ? idOf(newest) : '0-0';
  }

  clear(): void {
    this.entries = [];
  }

  private living(now: number): typeof this.entries {
    if (now >= this.endsAt) this.entries = [];
    return this.entries;
  }
}

const idOf = ({ time, number }: { time: number; number: number }): string => `${time}-${number}`;
