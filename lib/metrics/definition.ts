import type { Samples } from './sample.js';
import type { MetricsSource } from './source.js';

/** A metric, and how it is read. Nothing is stored for it: its samples are read at each scrape. */
export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** The labels of its samples, besides `connection` for a named one. */
  readonly labels: readonly string[];
  /**
   * How equal samples of two sources are merged: of two servers in a process, or of the workers of
   * a Node cluster. What is read from Redis is the same for all.
   */
  readonly merge: 'sum' | 'max';
  readonly read: (source: MetricsSource) => Samples;
}
