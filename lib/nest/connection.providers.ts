import { hostname } from 'node:os';
import type { Provider } from '@nestjs/common';
import type { Broker } from '../broker/broker.js';
import { MemoryBroker } from '../broker/memory/memory-broker.js';
import { RedisConnections } from '../broker/redis/connection/connections.js';
import { RedisBroker } from '../broker/redis/redis-broker.js';
import { SystemClock } from '../clock.js';
import { InvalidOptionError } from '../errors.js';
import { AsynqEvents } from '../events/events.js';
import { resolveModuleOptions, type ResolvedModuleOptions } from './connection/asynq-module.options.js';
import { EventWriter } from '../event-streams/event-writer.js';
import { resolveEventStream } from './events/event-stream.options.js';
import { AsynqClient } from './asynq-client.js';
import { AsynqServer } from './asynq-server.js';
import { AsynqTaskEvents } from './events/asynq-task-events.js';
import { ConnectionRegistry, type Connection } from './connection/connection.registry.js';
import {
  CONNECTION,
  HOOKS,
  QUEUE_WATCH,
  RAW_MODULE_OPTIONS,
  RELAY,
  RESOLVED_MODULE_OPTIONS,
} from './connection/connection.tokens.js';
import { QueueWatch } from './connection/queue-watch.js';
import { Relay } from '../links/relay.js';
import type { AsynqHealth } from './health/asynq-health.js';
import { AsynqHealthIndicator } from './health/asynq-health-indicator.js';
import { HealthFactory } from './health/health.factory.js';
import { missingConnection } from './names/nest.messages.js';
import {
  getAsynqBrokerToken,
  getAsynqClientToken,
  getAsynqHealthIndicatorToken,
  getAsynqHealthToken,
  getAsynqInspectorToken,
  getAsynqSchedulerToken,
  getAsynqSemaphoresToken,
  getAsynqServerToken,
  getAsynqTaskEventsToken,
} from './nest.tokens.js';
import { AsynqInspector } from '../inspector/inspector.js';
import { AsynqSemaphores } from '../limits/semaphores.js';
import { AsynqScheduler } from '../scheduler/scheduler.js';
import { Redactor } from '../redaction/redactor.js';
import { loadOpenTelemetry } from '../tracing/opentelemetry/load.js';
import type { Tracing } from '../tracing/tracing.js';
import type { EnqueueTransactions } from '../transactions/enqueue-transactions.js';
import type { ResolvedArchive } from '../task/queue-settings.js';
import { ServerOrchestrator } from './lifecycle/server.orchestrator.js';

/** The providers of one connection; the broker and the client can be overridden by their tokens. */
export function connectionProviders(name: string): Provider[] {
  return [...brokerProviders(name), connectionProvider(name), ...providersOfConnection(name)];
}

/** The options, the broker, and what needs nothing else. */
function brokerProviders(name: string): Provider[] {
  const broker = getAsynqBrokerToken(name);
  return [
    { provide: RESOLVED_MODULE_OPTIONS, useFactory: resolveModuleOptions, inject: [RAW_MODULE_OPTIONS] },
    {
      provide: broker,
      useFactory: (options: ResolvedModuleOptions) => createBroker(name, options),
      inject: [RESOLVED_MODULE_OPTIONS],
    },
    { provide: HOOKS, useFactory: makeHooks, inject: [RESOLVED_MODULE_OPTIONS] },
    {
      provide: QUEUE_WATCH,
      useFactory: (made: Broker, { events }: Hooks) => new QueueWatch(made, events),
      inject: [broker, HOOKS],
    },
    {
      provide: RELAY,
      useFactory: (made: Broker, { events }: Hooks) => new Relay(made.links, events),
      inject: [broker, HOOKS],
    },
    {
      provide: getAsynqClientToken(name),
      useFactory: (
        made: Broker,
        { codec, defaults, queues, acknowledge }: ResolvedModuleOptions,
        hooks: Hooks,
        relay: Relay,
        watch: QueueWatch,
      ) => {
        const onQueue = (queue: string): void => watch.add(queue);
        return new AsynqClient(made, { codec, defaults, queues, acknowledge }, { ...hooks, relay, onQueue });
      },
      inject: [broker, RESOLVED_MODULE_OPTIONS, HOOKS, RELAY, QUEUE_WATCH],
    },
    {
      provide: getAsynqInspectorToken(name),
      useFactory: (made: Broker, relay: Relay) => new AsynqInspector(made, relay),
      inject: [broker, RELAY],
    },
    {
      provide: getAsynqSemaphoresToken(name),
      useFactory: (made: Broker) => new AsynqSemaphores(made),
      inject: [broker],
    },
  ];
}

type Made = [ResolvedModuleOptions, Broker, AsynqClient, Hooks, Relay, QueueWatch];

function connectionProvider(name: string): Provider {
  return {
    provide: CONNECTION,
    useFactory: (registry: ConnectionRegistry, ...made: Made) => register(registry, name, ...made),
    inject: [
      ConnectionRegistry,
      RESOLVED_MODULE_OPTIONS,
      getAsynqBrokerToken(name),
      getAsynqClientToken(name),
      HOOKS,
      RELAY,
      QUEUE_WATCH,
    ],
  };
}

/** What applications inject besides client and broker. */
function providersOfConnection(name: string): Provider[] {
  return [
    {
      provide: getAsynqTaskEventsToken(name),
      useFactory: ({ taskEvents }: Connection) => taskEvents,
      inject: [CONNECTION],
    },
    {
      provide: getAsynqSchedulerToken(name),
      useFactory: ({ scheduler }: Connection) => scheduler,
      inject: [CONNECTION],
    },
    {
      provide: getAsynqHealthToken(name),
      useFactory: (factory: HealthFactory, connection: Connection) => factory.of(connection),
      inject: [HealthFactory, CONNECTION],
    },
    {
      provide: getAsynqHealthIndicatorToken(name),
      useFactory: (health: AsynqHealth) => new AsynqHealthIndicator(health),
      inject: [getAsynqHealthToken(name)],
    },
    {
      provide: getAsynqServerToken(name),
      useFactory: (orchestrator: ServerOrchestrator, connection: Connection) =>
        new AsynqServer(() => orchestrator.serverOf(connection), connection.events, connection.broker.manual),
      inject: [ServerOrchestrator, CONNECTION],
    },
  ];
}

function createBroker(name: string, { connection, keyPrefix, maxPayloadSize }: ResolvedModuleOptions): Broker {
  if (connection === undefined || connection === null) throw new InvalidOptionError(missingConnection(name));
  const clock = new SystemClock();
  if (connection === 'memory') return new MemoryBroker(clock, { keyPrefix, maxPayloadSize });
  return new RedisBroker(new RedisConnections(connection), { clock, keyPrefix, maxPayloadSize });
}

interface Hooks {
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  readonly redactor: Redactor | undefined;
  readonly transactions: EnqueueTransactions;
}

async function makeHooks({ tracing, redact = [], transactions: source }: ResolvedModuleOptions): Promise<Hooks> {
  const events = new AsynqEvents();
  await source?.load?.();
  const transactions: EnqueueTransactions = source ? { current: () => source.current() } : {};
  const redactor = redact.length === 0 && typeof redact !== 'function' ? undefined : new Redactor([redact]);
  if (tracing === false) return { events, tracing: undefined, redactor, transactions };
  const onActive = (): void => void events.measureWaits(); // for the span that shows the wait
  return { events, tracing: await loadOpenTelemetry(tracing === true, onActive, redactor), redactor, transactions };
}

function register(
  registry: ConnectionRegistry,
  name: string,
  options: ResolvedModuleOptions,
  broker: Broker,
  client: AsynqClient,
  { events, tracing, redactor, transactions }: Hooks,
  relay: Relay,
  queueWatch: QueueWatch,
): Connection {
  const { codec, defaults, queueSettings } = options;
  for (const [queue, { archive }] of queueSettings) if (archive) limitArchive(broker, queue, archive);
  const scheduler = new AsynqScheduler(broker, events, { codec, defaults, tracing, relay });
  const taskEvents = new AsynqTaskEvents(events, name, broker);
  const eventWriter = makeEventWriter(broker, events, options);
  const parts = { broker, client, events, relay, tracing, redactor, scheduler, taskEvents, eventWriter, transactions };
  const connection = { name, options, ...parts, queueWatch };
  registry.add(connection);
  return connection;
}

function limitArchive({ archives }: Broker, queue: string, { maxTasks, maxAge }: ResolvedArchive): void {
  const known = archives.of(queue);
  archives.set(queue, { maxTasks: maxTasks ?? known.maxTasks, maxAge: maxAge ?? known.maxAge });
}

function makeEventWriter(broker: Broker, events: AsynqEvents, options: ResolvedModuleOptions): EventWriter | undefined {
  const stream = resolveEventStream(options.eventStream);
  if (!stream) return undefined;
  const { events: names, maxLength } = stream;
  return new EventWriter({ broker, events, names, maxLength, process: `${hostname()}:${process.pid}` });
}
