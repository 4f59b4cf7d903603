import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { AsynqClient } from '../../client/client.js';
import { finishesWithin } from '../../async.js';
import { SystemClock } from '../../clock.js';
import { InvalidHandlerError, ServerStateError } from '../../errors.js';
import type { AsynqScheduler } from '../../scheduler/scheduler.js';
import { Server, type TaskHandlerEntry } from '../../server/index.js';
import { jsonCodec } from '../../task/codec.js';
import { ConnectionRegistry, type Connection } from '../connection/connection.registry.js';
import { TaskAggregatorFactory } from '../execution/task-aggregator.factory.js';
import { TaskHandlerFactory } from '../execution/task-handler.factory.js';
import { SetupChecks } from './setup-checks.js';
import { ThreadPool } from '../../threads/pool.js';
import { resolveThreads } from '../../threads/options.js';
import { codecInThread, noServer, noThreads } from '../names/nest.messages.js';
import { isPoolThread } from '../threads/thread-program.js';
import { SchedulerOrchestrator } from './scheduler.orchestrator.js';
import { AggregatorExplorer, type DiscoveredAggregator } from '../discovery/aggregator.explorer.js';
import { EventListeners } from './event.listeners.js';
import { HandlerExplorer, type DiscoveredHandler } from '../discovery/handler.explorer.js';

/** How long a shutdown waits for messages between linked tasks; what is left, other processes carry. */
const RELAY_TIMEOUT_MS = 2_000;

/**
 * Owns the servers of an application: one per connection, created when the handlers are known, started after everything else
 * and shut down before everything else (AsynqCoreModule ensures that order).
 */
@Injectable()
export class ServerOrchestrator implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly servers = new Map<Connection, Server>();
  private handlers: readonly DiscoveredHandler[] | undefined;
  private aggregators: readonly DiscoveredAggregator[] | undefined;
  private readonly pools: ThreadPool[] = [];
  private shutDown = false;
  private readonly onFailedBoot: (() => void)[] = [];

  constructor(
    private readonly registry: ConnectionRegistry,
    private readonly explorer: HandlerExplorer,
    private readonly factory: TaskHandlerFactory,
    private readonly schedulers: SchedulerOrchestrator,
    private readonly aggregatorExplorer: AggregatorExplorer,
    private readonly aggregatorFactory: TaskAggregatorFactory,
    private readonly listeners: EventListeners,
    private readonly checks: SetupChecks,
  ) {}

  /** The handlers of a connection. @throws InvalidHandlerError for a wrong declaration */
  handlersOf({ name }: Connection): readonly DiscoveredHandler[] {
    this.handlers ??= this.requireConnections(this.explorer.explore());
    return this.handlers.filter(({ metadata }) => metadata.connection === name);
  }

  /** The aggregators of a connection. @throws InvalidHandlerError for a wrong declaration */
  aggregatorsOf({ name }: Connection): readonly DiscoveredAggregator[] {
    this.aggregators ??= this.requireConnections(this.aggregatorExplorer.explore());
    return this.aggregators.filter(({ metadata }) => metadata.connection === name);
  }

  /** @throws ServerStateError when the connection has no server, InvalidOptionError, InvalidHandlerError */
  serverOf(connection: Connection): Server {
    let server = this.servers.get(connection);
    if (server) return server;
    this.servers.set(connection, (server = this.createServer(connection)));
    const made = server;
    connection.queueWatch.served = () => (made.status === 'active' ? made.queues : []);
    if (this.shutDown) void server.shutdown(); // the application shuts down during its boot
    return server;
  }

  /** Calls back if the boot fails because of a server: Nest calls no shutdown hooks then. */
  whenBootFails(then: () => void): void {
    this.onFailedBoot.push(then);
  }

  /** The scheduler with all entries that the application declares. */
  schedulerOf(connection: Connection): AsynqScheduler {
    if (connection.options.scheduler) this.schedulers.prepare(connection, this.handlersOf(connection));
    return connection.scheduler;
  }

  async onApplicationBootstrap(): Promise<void> {
    if (isPoolThread()) return; // the tasks come from the process
    try {
      const started: Connection[] = [];
      for (const connection of this.registry.all()) if (await this.boot(connection)) started.push(connection);
      for (const connection of this.registry.all()) this.schedulers.boot(connection, this.handlersOf(connection));
      this.checks.begin(started.map((connection) => [connection, this.handlersOf(connection)]));
    } catch (error) {
      // Nest calls no shutdown hooks if the boot fails.
      for (const then of this.onFailedBoot) then();
      await this.onModuleDestroy();
      await Promise.allSettled(this.registry.all().map(closeConnection));
      throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.shutDown = true;
    this.checks.close();
    const servers = [...this.servers.values()].map((server) => server.shutdown());
    await Promise.all([this.schedulers.shutdown(), ...servers]);
    await Promise.all(this.pools.map((pool) => pool.close()));
    await Promise.all(this.registry.all().map((connection) => this.listeners.close(connection)));
    await Promise.all(this.registry.all().map(({ eventWriter }) => eventWriter?.close()));
    for (const { taskEvents } of this.registry.all()) taskEvents.complete();
  }

  /** @returns whether its server has started */
  private async boot(connection: Connection): Promise<boolean> {
    const { options, broker, events } = connection;
    const handlers = this.handlersOf(connection).length + this.aggregatorsOf(connection).length;
    if (options.server === false) {
      if (handlers > 0) events.emit('handlersIdle', { handlers });
      return false;
    }
    const server = this.serverOf(connection); // validates the options, also of a server that is not started
    if (!options.autoStart || broker.manual || server.status !== 'new') return false;
    if (handlers === 0) {
      if (Object.keys(options.server).length > 0) events.emit('handlersMissing', { connection: connection.name });
      return false;
    }
    await server.start();
    return true;
  }

  private createServer(connection: Connection): Server {
    const { name, options, broker, relay, events, tracing } = connection;
    if (options.server === false) throw new ServerStateError(noServer(name));
    const { globalEnhancers } = options;
    const settings = {
      codec: options.codec ?? jsonCodec,
      invalidPayload: options.invalidPayload,
      events,
      globalEnhancers,
    };
    const made = this.handlersOf(connection).map((handler) => this.factory.create(handler, settings));
    const handlers = this.inThreads(connection, made);
    const aggregators = this.aggregatorsOf(connection).map((found) =>
      this.aggregatorFactory.create(found, broker, options),
    );
    // A mock of the client need not have them.
    const contexts = (connection.client as Partial<AsynqClient>).taskContexts;
    return new Server({ broker, relay, handlers, aggregators, options: options.server, events, tracing, contexts });
  }

  /** A test that drives the broker runs them itself. @throws InvalidHandlerError */
  private inThreads(connection: Connection, entries: TaskHandlerEntry[]): TaskHandlerEntry[] {
    const { options, broker, events } = connection;
    const threaded = this.handlersOf(connection).filter(({ metadata }) => metadata.thread);
    if (threaded.length === 0 || broker.manual || options.server === false) return entries;
    const { invalidPayload, codec, globalEnhancers } = options;
    const { threads } = options.server;
    for (const { metadata, label } of threaded) {
      if (!threads) throw new InvalidHandlerError(noThreads(label));
      if (codec && !metadata.codec) throw new InvalidHandlerError(codecInThread(label));
    }
    const pool = new ThreadPool({
      options: resolveThreads(threads),
      handlers: { invalidPayload, globalEnhancers },
      clock: broker.clock,
      events,
    });
    this.pools.push(pool);
    const patterns = new Set(threaded.map(({ metadata }) => metadata.pattern));
    return entries.map((entry) => (patterns.has(entry.pattern) ? inThread(entry, pool) : entry));
  }

  private requireConnections<D extends DiscoveredHandler | DiscoveredAggregator>(found: D[]): D[] {
    for (const one of found) this.registry.requireFor(one);
    return found;
  }
}

/** The server claims no more tasks of it than there are threads, unless its own limit says otherwise. */
function inThread(entry: TaskHandlerEntry, pool: ThreadPool): TaskHandlerEntry {
  const { batch: _, handle: __, pattern, ...settings } = entry;
  const limits = { concurrency: pool.size, ...settings.limits };
  return { ...settings, pattern, limits, handle: (task) => pool.run(pattern, task) };
}

/**
 * Closes the client first: its pending calls need the broker, and what they cause is carried yet. A mock of it need not have a
 * `close`. Idempotent.
 */
export async function closeConnection({ client, relay, broker, queueWatch }: Connection): Promise<void> {
  queueWatch.close();
  try {
    await (client as Partial<AsynqClient>).close?.();
    await finishesWithin(relay.close(), RELAY_TIMEOUT_MS, broker.manual ? new SystemClock() : broker.clock);
  } finally {
    await broker.close();
  }
}
