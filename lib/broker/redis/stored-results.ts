import type { Lease, LeasedTask, Settlement, SettleStatus } from '../broker.js';

/** How many results are kept, and their bytes. The oldest go first. */
const MOST_RESULTS = 5000;
const MOST_BYTES = 4 * 1024 * 1024;

/**
 * Results of steps that this process has stored in Redis: mostly it also runs the step after them, which need not read
 * them then. The result of a step never changes within a run, and a run is known by its start.
 */
export class StoredResults {
  /** What each leased task of a step is, as `keyOf` has it. */
  private readonly steps = new WeakMap<Lease, string>();
  private readonly results = new Map<string, Buffer>();
  private bytes = 0;

  /** These tasks have been claimed. */
  claimed(tasks: readonly LeasedTask[]): void {
    for (const { lease, links } of tasks) {
      const watcher = links?.[0];
      if (watcher?.k !== 'r' || watcher.since === undefined || watcher.to !== lease.queue) continue;
      this.steps.set(lease, keyOf(watcher.to, watcher.run, watcher.since, watcher.step));
    }
  }

  /** Redis has these settlements, but for those that were lost. */
  settled(settlements: readonly Settlement[], statuses: readonly SettleStatus[]): void {
    for (const [index, item] of settlements.entries()) {
      if (item.kind !== 'done' || !item.result?.length || statuses[index] !== 'settled') continue;
      const key = this.steps.get(item.lease);
      if (key !== undefined) this.keep(key, item.result);
    }
  }

  /** The results of these steps, in order; undefined unless all of them are here. */
  all(queue: string, run: string, since: string, steps: readonly string[]): Buffer[] | undefined {
    const found: Buffer[] = [];
    for (const step of steps) {
      const result = this.results.get(keyOf(queue, run, since, step));
      if (!result) return undefined;
      found.push(result);
    }
    return found;
  }

  private keep(key: string, result: Buffer): void {
    this.results.set(key, result);
    this.bytes += result.length;
    for (const [oldest, { length }] of this.results) {
      if (this.results.size <= MOST_RESULTS && this.bytes <= MOST_BYTES) return;
      this.results.delete(oldest);
      this.bytes -= length;
    }
  }
}

const keyOf = (queue: string, run: string, since: string, step: string): string =>
  `${queue}\0${run}\0${since}\0${step}`;
