import type { Settlement, SettleStatus, StoredResult } from '../broker.js';

/** Bytes, as counted below, of the latest results that are kept at least; at most it is twice as many. */
const KEPT_BYTES = 4 * 1024 * 1024;
/**
 * Bytes of memory that a result takes, about, but for its name and its own bytes, and more if it is no text; and a run. A full store
 * takes up to 8 MiB of text, measured, or 12 MiB of bytes.
 */
const RESULT_BYTES = 70;
const BUFFER_BYTES = 130;
const RUN_BYTES = 250;
/** Bytes. A larger result is read. */
const LARGEST_RESULT = 4096;

/** The results of a run that this process has stored, by the names of the steps. */
interface RunResults {
  readonly queue: string;
  readonly since: string;
  readonly steps: Map<string, StoredResult>;
}

/**
 * Results of steps that this process has stored in Redis: mostly it also runs the step after them, which need not read
 * them then. The result of a step never changes within a run, and a run is known by its start.
 */
export class StoredResults {
  /** By the ids of runs. Of runs with one id in two queues only the last one is kept. */
  private latest = new Map<string, RunResults>();
  /** Those before: let go all at once, which costs less than a deletion per result. */
  private earlier: ReadonlyMap<string, RunResults> = new Map();
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
      const size = Buffer.byteLength(result);
      if (size <= LARGEST_RESULT) this.keep(step.to, step.run, item.step.since, step.step, result, size);
    }
  }

  /** Of these steps, in order; undefined where there is none here. */
  of(queue: string, run: string, since: string, steps: readonly string[]): (StoredResult | undefined)[] {
    const latest = matching(this.latest.get(run), queue, since)?.steps;
    const earlier = matching(this.earlier.get(run), queue, since)?.steps;
    return steps.map((step) => latest?.get(step) ?? earlier?.get(step));
  }

  private keep(queue: string, run: string, since: string, step: string, result: StoredResult, size: number): void {
    let results = matching(this.latest.get(run), queue, since);
    this.bytes += step.length + size + RESULT_BYTES;
    if (typeof result !== 'string') this.bytes += BUFFER_BYTES;
    if (!results) this.bytes += run.length + RUN_BYTES;
    if (this.bytes > KEPT_BYTES) {
      this.earlier = this.latest;
      this.latest = new Map();
      this.bytes = 0;
      results = undefined;
    }
    if (!results) this.latest.set(run, (results = { queue, since, steps: new Map() }));
    // Bytes may be a view of memory that they share with others.
    results.steps.set(step, typeof result === 'string' ? result : Buffer.copyBytesFrom(result));
  }
}

const matching = (results: RunResults | undefined, queue: string, since: string): RunResults | undefined =>
  results?.since === since && results.queue === queue ? results : undefined;
