import type { Settlement, SettleStatus } from '../broker.js';

/** How many results are kept: those of the last steps. What is kept for long costs Node's garbage collector more than a read. */
const MOST_RESULTS = 1000;
/** Bytes. A larger result is read. */
const LARGEST_RESULT = 4096;

/**
 * Results of steps that this process has stored in Redis: mostly it also runs the step after them, which need not read
 * them then. The result of a step never changes within a run, and a run is known by its start.
 */
export class StoredResults {
  private readonly results = new Map<string, Buffer>();
  /** Their keys, a ring: the next one takes the place of the oldest. */
  private readonly keys: string[] = [];
  private next = 0;

  /** Redis has these settlements, but for those that were lost. */
  settled(settlements: readonly Settlement[], statuses: readonly SettleStatus[]): void {
    for (let i = 0; i < settlements.length; i++) {
      const item = settlements[i]!;
      if (item.kind !== 'done' || !item.step?.since || statuses[i] !== 'settled') continue;
      const { step, lease, result } = item;
      // The run of another queue has the result when a parcel has brought it.
      if (!result?.length || result.length > LARGEST_RESULT || step.to !== lease.queue) continue;
      this.keep(keyOf(step.to, step.run, item.step.since, step.step), result);
    }
  }

  /** The results of these steps, in order; undefined unless all of them are here. */
  all(queue: string, run: string, since: string, steps: readonly string[]): Buffer[] | undefined {
    if (steps.length > this.results.size) return undefined;
    const found: Buffer[] = [];
    for (const step of steps) {
      const result = this.results.get(keyOf(queue, run, since, step));
      if (!result) return undefined;
      found.push(result);
    }
    return found;
  }

  private keep(key: string, result: Buffer): void {
    const oldest = this.keys[this.next];
    if (oldest !== undefined) this.results.delete(oldest);
    this.keys[this.next] = key;
    this.next = (this.next + 1) % MOST_RESULTS;
    this.results.set(key, result);
  }
}

const keyOf = (queue: string, run: string, since: string, step: string): string => `${since} ${queue} ${run}\0${step}`;
