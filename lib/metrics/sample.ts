/** One line of a scrape. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** The name, if it is not that of the metric: the parts of a histogram. */
  readonly metricName?: string;
}

export type Samples = Iterable<Sample> | Promise<Iterable<Sample>>;
