import type { Sample } from './sample.js';

/** Upper bounds in seconds: from a handler that reads one value to one that runs for an hour. */
export const DEFAULT_BUCKETS: readonly number[] = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600,
];

/**
 * A histogram of seconds. One of prom-client takes microseconds per observation, much of the time
 * of a small task.
 */
export class Buckets {
  private readonly counts: Float64Array;
  private sum = 0;
  private count = 0;

  /** @param bounds in seconds, ascending */
  constructor(private readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length);
  }

  observe(seconds: number): void {
    this.sum += seconds;
    this.count += 1;
    const { bounds } = this;
    for (let index = 0; index < bounds.length; index++) {
      if (seconds <= bounds[index]!) {
        this.counts[index]! += 1;
        return;
      }
    }
  }

  *samples(name: string, labels: Readonly<Record<string, string>>): Iterable<Sample> {
    if (this.count === 0) return;
    let below = 0;
    for (const [index, le] of this.bounds.entries()) {
      below += this.counts[index]!;
      yield { metricName: `${name}_bucket`, labels: { le, ...labels }, value: below };
    }
    yield { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: this.count };
    yield { metricName: `${name}_sum`, labels, value: this.sum };
    yield { metricName: `${name}_count`, labels, value: this.count };
  }
}
