import type { MetricDefinition } from './definition.js';
import type { Sample } from './sample.js';
import type { MetricsSource } from './source.js';

/**
 * A metric in the form that prom-client's registry takes. It stores nothing, but reads its sources
 * at each scrape: so sources come and go (a second connection, a module created again) without a
 * second registration.
 */
export class LiveMetric {
  /** A registry in OpenMetrics format removes `_total` from the name of a counter. */
  name: string;
  readonly help: string;
  readonly type: MetricDefinition['type'];
  readonly labelNames: readonly string[];
  readonly aggregator: MetricDefinition['merge'];
  private readonly readers = new Map<MetricsSource, () => Promise<Sample[]>>();

  constructor({ name, help, type, labels, merge }: MetricDefinition) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.labelNames = [...labels, 'connection'];
    this.aggregator = merge;
  }

  get isRead(): boolean {
    return this.readers.size > 0;
  }

  /** Returns whether a source of the same connection is read already. */
  reads(source: MetricsSource): boolean {
    return [...this.readers.keys()].some((other) => other.countsSameEvents(source));
  }

  /** @returns a function that removes the source */
  add({ read }: MetricDefinition, source: MetricsSource): () => void {
    const { connection } = source;
    const reader = async (): Promise<Sample[]> => {
      const samples = [...(await read(source))];
      if (connection === undefined) return samples;
      return samples.map((sample) => ({ ...sample, labels: { ...sample.labels, connection } }));
    };
    this.readers.set(source, reader);
    return () => this.readers.delete(source);
  }

  async get(): Promise<object> {
    const { name, help, type, aggregator } = this;
    const lists = await Promise.all([...this.readers.values()].map((read) => read()));
    const values = lists.length === 1 ? lists[0]! : this.merge(lists.flat());
    return { name, help, type, aggregator, values };
  }

  /** Called by `registry.resetMetrics()`: there is nothing to reset. */
  reset(): void {}

  private merge(samples: readonly Sample[]): Sample[] {
    const merged = new Map<string, Sample>();
    for (const sample of samples) {
      const key = JSON.stringify([sample.metricName, Object.entries(sample.labels).sort()]);
      const other = merged.get(key);
      if (!other) merged.set(key, sample);
      else {
        const value = this.aggregator === 'max' ? Math.max(other.value, sample.value) : other.value + sample.value;
        merged.set(key, { ...other, value });
      }
    }
    return [...merged.values()];
  }
}
