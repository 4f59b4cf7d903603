import type { Settlement, SettleStatus } from '../broker.js';

/** Bytes, as counted below, of the latest results that are kept at least; at most it is twice as many. */
const KEPT_BYTES = 4 * 1024 * 1024;
/** Bytes of memory that a result takes, about, but for its key and its own bytes: a full store takes 9 MiB, measured. */
const ENTRY_BYTES = 200;
/** Bytes. A larger result is read. */
const LARGEST_RESULT = 4096;

/**
 * Results of steps that this process has stored in Redis: mostly it also runs the step after them, which need not read
 * them then. The result of a step never changes within a run, and a run is known by its start.
 */
export class StoredResults {
  /**
   * By the keys of steps, with a character per byte: thousands of strings cost Node's garbage collector less than as many buffers,
   * and hold no memory that they share with others.
   */
  private latest = new Map<string, string>();
  /** Those before: let go all at once, which costs less than a deletion per result. */
  private earlier: ReadonlyMap<string, string> = new Map();
  /** Of the latest ones. */
  private bytes = 0;

  /** Redis has these settlements, but for those that were lost. */
  settled(settlements: readonly Settlement[], statuses: readonly SettleStatus[]): void {
    for (let i = 0; i < settlements.length; i++) {
      const item = settlements[i]!;
      if (item.kind !== 'done' || !item.step?.since || statuses[i] !== 'settled') continue;
      const { step, lease, result } = item;
      // The run of another queue has the result when a parcel has brought it.
      if (!result?.length || result.length > LARGEST_RESULT || step.to !== lease.queue) continue;
      this.keep(prefixOf(step.to, step.run, item.step.since) + step.step, result);
    }
  }

  /** The results of these steps, in order; undefined unless all of them are here. */
  all(queue: string, run: string, since: string, steps: readonly string[]): Buffer[] | undefined {
    const prefix = prefixOf(queue, run, since);
    const found: Buffer[] = [];
    for (const step of steps) {
      const key = prefix + step;
      const result = this.latest.get(key) ?? this.earlier.get(key);
      if (result === undefined) return undefined;
      found.push(Buffer.from(result, 'latin1'));
    }
    return found;
  }

  private keep(key: string, result: Buffer): void {
    this.bytes += key.length + result.length + ENTRY_BYTES;
    if (this.bytes > KEPT_BYTES) {
      this.earlier = this.latest;
      this.latest = new Map();
      this.bytes = 0;
    }
    this.latest.set(key, result.toString('latin1'));
  }
}

const prefixOf = (queue: string, run: string, since: string): string => `${since} ${queue} ${run}\0`;
