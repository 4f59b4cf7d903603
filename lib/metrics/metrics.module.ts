import {
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  Optional,
} from '@nestjs/common';
import { withTimeout } from '../async.js';
import { BrokerUnavailableError, InvalidOptionError } from '../errors.js';
import { AsynqCoreModule } from '../nest/asynq-core.module.js';
import { ConnectionRegistry, type Connection } from '../nest/connection/connection.registry.js';
import { DEFAULT_CONNECTION } from '../nest/names/nest.constants.js';
import { notForRoot } from '../nest/names/nest.messages.js';
import { AsynqInspector } from '../inspector/inspector.js';
import { ServerOrchestrator } from '../nest/lifecycle/server.orchestrator.js';
import type { Server, ServerStats } from '../server/index.js';
import { ASYNQ_METRICS } from './asynq-metrics.js';
import type { MetricDefinition } from './definition.js';
import { ASYNC_OPTIONS_TYPE, ConfigurableModuleClass, OPTIONS_TYPE } from './metrics.module.definition.js';
import { checkGiven, checkGivenAsync, type ResolvedMetricsOptions } from './metrics.options.js';
import { RESOLVED_METRICS_OPTIONS } from './metrics.tokens.js';
import { outboxMetrics, processMetrics, queueMetrics } from './own-metrics.js';
import { QueueReader } from './queue-reader.js';
import { register } from './registration.js';
import { MetricsSource } from './source.js';
import { Tally } from './tally.js';
import { TaskTally } from './task-tally.js';

/**
 * Metrics for Prometheus, in a registry of prom-client: those of asynq's exporter under its names,
 * and ours. Everything is read at each scrape. Needs prom-client.
 *
 * @example
 * imports: [AsynqModule.forRoot({ … }), AsynqMetricsModule.forRoot({ path: 'metrics' })]
 */
@Module({ imports: [AsynqCoreModule] })
export class AsynqMetricsModule
  extends ConfigurableModuleClass
  implements OnApplicationBootstrap, OnApplicationShutdown
{
  private readonly ends: (() => void)[] = [];

  constructor(
    @Optional() @Inject(RESOLVED_METRICS_OPTIONS) private readonly options: ResolvedMetricsOptions,
    @Inject(ConnectionRegistry) private readonly connections: ConnectionRegistry,
    @Inject(ServerOrchestrator) private readonly orchestrator: ServerOrchestrator,
  ) {
    super();
    if (!options) throw new InvalidOptionError(notForRoot('AsynqMetricsModule'));
  }

  /**
   * @throws InvalidOptionError at once for an unknown option, an invalid path or guard; at boot for
   * the others
   */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    checkGiven(options);
    return super.forRoot(options);
  }

  /**
   * The options from a factory or a class; `path`, `guards` and `imports` beside it.
   *
   * @throws InvalidOptionError
   */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    checkGivenAsync(options);
    return super.forRootAsync(options);
  }

  /**
   * Runs before the servers start.
   *
   * @throws InvalidOptionError for an unknown connection, or names that the registry has already
   */
  onApplicationBootstrap(): void {
    const definitions = this.definitions();
    this.orchestrator.whenBootFails(() => this.onApplicationShutdown());
    for (const connection of this.wanted()) {
      const source = this.createSource(connection);
      this.ends.push(register(this.options.registry, definitions, source), () => source.stop());
      source.start();
    }
  }

  /** Runs after the servers have drained, so that this can be observed. */
  onApplicationShutdown(): void {
    for (const end of this.ends.splice(0)) end();
  }

  private wanted(): readonly Connection[] {
    const { connections: names } = this.options;
    this.connections.requireSome('AsynqMetricsModule');
    if (!names) return this.connections.all();
    return names.map((name) => this.connections.get(name, 'AsynqMetricsModule option connections'));
  }

  private definitions(): readonly MetricDefinition[] {
    const { prefix, asynqNames, queues, topKeys } = this.options;
    const ofQueues = queues === false ? [] : [...(asynqNames ? ASYNQ_METRICS : []), ...queueMetrics(prefix, topKeys)];
    return [...ofQueues, ...outboxMetrics(prefix), ...processMetrics(prefix)];
  }

  private createSource(connection: Connection): MetricsSource {
    const { name, broker, events, options } = connection;
    const { queues, maxQueues, topKeys, durationBuckets, waitBuckets, concurrency, cacheFor, timeout } = this.options;
    const server = options.server === false ? undefined : () => this.orchestrator.serverOf(connection);
    const scrapeErrors = new Tally();
    const reader = new QueueReader({
      inspector: new AsynqInspector(broker),
      clock: broker.clock,
      concurrency,
      cacheFor,
      timeout,
      queues: queues || undefined,
      maxQueues,
      topKeys,
      served: () => (server ? (statsOf(server)?.inFlight.keys() ?? []) : []),
      onError: (queue) => scrapeErrors.add({ queue }),
    });
    const patternOf = (type: string): string | undefined => server?.().patternOf(type);
    return new MetricsSource({
      connection: name === DEFAULT_CONNECTION ? undefined : name,
      events,
      scrapeErrors,
      tasks: new TaskTally({ durationBuckets, waitBuckets, patternOf }),
      reader: queues === false ? undefined : reader,
      outbox: () => {
        const counts = connection.transactions.outbox?.counts();
        return counts && withTimeout(counts, timeout, broker.clock, tooLate);
      },
      stats: () => {
        const stats = server && statsOf(server);
        return stats?.status === 'new' ? undefined : stats; // it may have no handlers, and never start
      },
    });
  }
}

const tooLate = (): never => {
  throw new BrokerUnavailableError('the database of the outbox does not answer in time');
};

/**
 * `undefined` when the server cannot be created: the application has not started, and scrapes of
 * the next one must not fail.
 */
function statsOf(server: () => Server): ServerStats | undefined {
  try {
    return server().stats();
  } catch {
    return undefined;
  }
}
