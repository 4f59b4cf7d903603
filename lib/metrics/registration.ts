import type { Metric, OpenMetricsContentType, Registry } from 'prom-client';
import { InvalidOptionError } from '../errors.js';
import type { MetricDefinition } from './definition.js';
import { LiveMetric } from './live-metric.js';
import type { MetricsSource } from './source.js';

/** A registry of prom-client, of either format. */
export type MetricsRegistry = Registry | Registry<OpenMetricsContentType>;

/**
 * Where a registry stores our metrics: another copy of this code, as hot reloading creates, finds
 * them too.
 */
const METRICS = Symbol.for('nestjs-asynq.metrics');

type Marked = MetricsRegistry & { [METRICS]?: Map<string, LiveMetric> };

/**
 * Has the registry export what the definitions read from a source. A metric that exists gets one
 * more source.
 *
 * @returns a function that removes the source, and with the last one the metrics
 * @throws InvalidOptionError when the registry has another metric of such a name, or one that reads
 * this connection already; nothing is registered then
 */
export function register(
  registry: MetricsRegistry,
  definitions: readonly MetricDefinition[],
  source: MetricsSource,
): () => void {
  const marked = registry as Marked;
  const ours = (marked[METRICS] ??= new Map());
  for (const { name } of definitions) {
    const there: unknown = registry.getSingleMetric(name);
    if (there && there !== ours.get(name)) throw new InvalidOptionError(nameTaken(name));
    if (ours.get(name)?.reads(source)) throw new InvalidOptionError(countedTwice(name, source.connection));
  }
  const ends = definitions.map((definition) => {
    const { name } = definition;
    let metric = ours.get(name);
    if (!metric || !registry.getSingleMetric(name)) {
      ours.set(name, (metric = metric ?? new LiveMetric(definition)));
      // The registry asks no more of a metric than a LiveMetric has.
      registry.registerMetric(metric as unknown as Metric);
    }
    return metric.add(definition, source);
  });
  return () => {
    for (const end of ends) end();
    for (const { name } of definitions) withdraw(registry, ours, name);
  };
}

function withdraw(registry: MetricsRegistry, ours: Map<string, LiveMetric>, name: string): void {
  const metric = ours.get(name);
  if (!metric || metric.isRead) return;
  ours.delete(name);
  const there: unknown = registry.getSingleMetric(name);
  if (there === metric) registry.removeSingleMetric(name);
}

const nameTaken = (name: string): string =>
  `the registry has a metric "${name}" that is not of AsynqMetricsModule: give the module another registry or prefix, or leave asynq's ` +
  'names to the exporter that has them (asynqNames: false)';

const countedTwice = (name: string, connection: string | undefined): string =>
  `two AsynqMetricsModules would count everything ${connection === undefined ? '' : `of connection "${connection}" `}twice in "${name}": ` +
  'import one, or give one of them another registry (or another prefix, and asynqNames: false)';
