import type { Samples } from './sample.js';
import type { MetricsSource } from './source.js';

/** What a metric is, and how it is read. Nothing is kept for it: it is put together when it is scraped. */
export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** What its samples are told apart by, besides `connection` where there is a name. */
  readonly labels: readonly string[];
  /**
   * What the same sample of two sources comes to: servers of one process, or workers of one Node cluster. What is read from Redis is the
   * same for all.
   */
  readonly merge: 'sum' | 'max';
  readonly read: (source: MetricsSource) => Samples;
}
