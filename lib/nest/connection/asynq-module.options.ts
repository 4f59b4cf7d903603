import type { Provider } from '@nestjs/common';
import type { ConnectionInput } from '../../broker/redis/connection/connection-options.js';
import { InvalidOptionError } from '../../errors.js';
import { FOREIGN } from '../../foreign-names.js';
import { checkRedaction, type Redaction } from '../../redaction/rules.js';
import type { ServerOptions } from '../../server/index.js';
import type { PayloadCodec } from '../../task/codec.js';
import type { TaskOptions } from '../../task/options.js';
import type { Acknowledged } from '../../task/acknowledge.js';
import { checkMaxPayloadSize } from '../../task/payload-size.js';
import { DEFAULT_KEY_PREFIX } from '../../wire/keys.js';
import { type QueueSettings, type ResolvedQueueSettings, resolveQueueSettings } from '../../task/queue-settings.js';
import type { Transactions } from '../../transactions/transactions.js';
import { describe, rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';
import type { InvalidPayloadPolicy } from '../execution/invalid-payload.js';
import { resolveEventStream, type EventStreamOptions } from '../events/event-stream.options.js';
import { misplacedExtra } from '../names/nest.messages.js';

export interface AsynqModuleOptions extends Acknowledged {
  /**
   * Where Redis is: ioredis options, a URL, a cluster, a sentinel group, or an ioredis client; `'memory'` keeps everything in
   * this process. No connection is opened before it is needed.
   */
  connection: ConnectionInput | 'memory';
  /** Options of the server that runs this application's handlers; `false`: this process only enqueues. Default `{}`. */
  server?: ServerOptions | false;
  /** Whether the server starts with the application, if there are handlers; else call `AsynqServer.start()`. Default true. */
  autoStart?: boolean;
  /**
   * Whether this process schedules periodic tasks (`@PeriodicTask`, `@PeriodicTaskSource`, `AsynqScheduler`), also without a server.
   * Each planned time is enqueued once, however many processes schedule it. Default true.
   */
  scheduler?: boolean;
  /**
   * What happens to a task whose payload cannot be decoded or is refused by a pipe: `'archive'` at once, since the same bytes
   * would fail again, or `'retry'` like any failure. Default `'archive'`.
   */
  invalidPayload?: InvalidPayloadPolicy;
  /**
   * Whether the guards, pipes, interceptors and filters of the whole application (`APP_GUARD`, `useGlobalPipes` …) run for tasks, too.
   * `false`: only those of the class, the method and the parameters. Default true.
   */
  globalEnhancers?: boolean;
  /** How payloads are encoded and decoded, unless a definition has a codec. Default JSON, and bytes as they are. */
  codec?: PayloadCodec;
  /** Options of every task enqueued here; those of its definition and of the call take precedence. Default: none. */
  defaults?: TaskOptions;
  /** Settings of queues by name, for whoever puts tasks into them or archives them. Default: none. */
  queues?: Readonly<Record<string, QueueSettings>>;
  /**
   * The prefix of every key in Redis, for several tenants on one Redis. Default `asynq`. Go servers and tools see only the
   * default: a task under another prefix is invisible to them.
   */
  keyPrefix?: string;
  /**
   * The most bytes of a payload or a result that this process stores: enqueuing or updating with more fails, and a larger result is
   * not stored. Default 5 MiB (5242880), at most 512 MiB. A large value blocks Redis for everybody, in every step of its task:
   * raise this for few tasks only.
   */
  maxPayloadSize?: number;
  /**
   * Whether tasks are traced with OpenTelemetry and carry the context of their trace. Default: if `@opentelemetry/api` is installed;
   * with `true` the boot fails without it. Without a registered SDK nothing is traced.
   */
  tracing?: boolean;
  /**
   * Rules for what is hidden: the errors of such tasks have no text in logs and spans, and the console of this connection hides
   * fields and headers. Stored data do not change. Default: nothing is hidden.
   */
  redact?: Redaction;
  /**
   * Writes the task events of this process to a stream in Redis that every process can read (`AsynqTaskEvents.fleet`), in batches, a
   * few times a second. `true`: the newest 10,000 finished attempts. Default false.
   */
  eventStream?: boolean | EventStreamOptions;
  /**
   * Finds the transaction around a call: `clsTransactions()`, `typeormTransactions()`, `sequelizeTransactions(…)`, or an object of your own. Tasks that are
   * enqueued in one are held until its commit, and dropped by its rollback. Default: tasks are enqueued at once.
   */
  transactions?: Transactions;
}

/** Options that Nest needs before any factory runs. In `forRootAsync` they stand beside `useFactory`. */
export interface AsynqModuleExtras {
  /** The name of this connection if the application has several. Default: the unnamed connection. */
  name?: string;
  /** Whether other modules can inject the client without importing this one. Default false. Handlers are found in every module. */
  isGlobal?: boolean;
  /** More providers that the options factory can inject. Default: none. */
  extraProviders?: Provider[];
}

/** The interface of a class for `useClass` or `useExisting`. */
export interface AsynqOptionsFactory {
  createAsynqOptions(): Promise<AsynqModuleOptions> | AsynqModuleOptions;
}

/** Validated options. The connection is validated when the broker is created, and so not at all if a test overrides the broker. */
export interface ResolvedModuleOptions extends AsynqModuleOptions {
  readonly server: ServerOptions | false;
  readonly autoStart: boolean;
  readonly scheduler: boolean;
  readonly invalidPayload: InvalidPayloadPolicy;
  readonly globalEnhancers: boolean;
  /** By the name of the queue. */
  readonly queueSettings: ReadonlyMap<string, ResolvedQueueSettings>;
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
}

const KNOWN_OPTIONS: readonly (keyof AsynqModuleOptions)[] = [
  'connection',
  'server',
  'autoStart',
  'scheduler',
  'invalidPayload',
  'globalEnhancers',
  'codec',
  'defaults',
  'queues',
  'acknowledge',
  'keyPrefix',
  'maxPayloadSize',
  'tracing',
  'redact',
  'eventStream',
  'transactions',
];

export const EXTRAS: readonly (keyof AsynqModuleExtras)[] = ['name', 'isGlobal', 'extraProviders'];

const POLICIES: readonly InvalidPayloadPolicy[] = ['archive', 'retry'];

/** @throws InvalidOptionError naming the option, its value and the remedy */
export function resolveModuleOptions(options: AsynqModuleOptions): ResolvedModuleOptions {
  requireObject(options, 'AsynqModule options', InvalidOptionError);
  const extra = EXTRAS.find((key) => key in options);
  if (extra) throw new InvalidOptionError(misplacedExtra(extra));
  rejectUnknownKeys(options, [...KNOWN_OPTIONS, ...EXTRAS], 'AsynqModule option', InvalidOptionError, FOREIGN.module);
  const {
    server = {},
    autoStart = true,
    scheduler = true,
    globalEnhancers = true,
    invalidPayload = 'archive',
    keyPrefix = DEFAULT_KEY_PREFIX,
  } = options;
  if (server !== false) requireObject(server, 'AsynqModule option server (options, or false)', InvalidOptionError);
  if (typeof autoStart !== 'boolean') throw wrongOption('autoStart', autoStart, 'true or false');
  if (typeof scheduler !== 'boolean') throw wrongOption('scheduler', scheduler, 'true or false');
  if (typeof globalEnhancers !== 'boolean') throw wrongOption('globalEnhancers', globalEnhancers, 'true or false');
  const { tracing } = options;
  if (tracing !== undefined && typeof tracing !== 'boolean') throw wrongOption('tracing', tracing, 'true or false');
  if (options.redact !== undefined) checkRedaction(options.redact, 'AsynqModule option redact');
  resolveEventStream(options.eventStream);
  checkTransactions(options.transactions);
  const queueSettings = resolveQueueSettings(options.queues);
  if (!POLICIES.includes(invalidPayload)) throw wrongOption('invalidPayload', invalidPayload, '"archive" or "retry"');
  return {
    ...readOptions(options),
    server,
    autoStart,
    scheduler,
    globalEnhancers,
    invalidPayload,
    queueSettings,
    keyPrefix: checkKeyPrefix(keyPrefix),
    maxPayloadSize: checkMaxPayloadSize(options.maxPayloadSize, 'AsynqModule option maxPayloadSize'),
  };
}

/** One by one, as those of an instance may be getters of its class, which a spread leaves out. */
const readOptions = (options: AsynqModuleOptions): AsynqModuleOptions =>
  Object.fromEntries(KNOWN_OPTIONS.map((name) => [name, options[name]])) as unknown as AsynqModuleOptions;

function checkTransactions(transactions: unknown): void {
  if (transactions === undefined) return;
  if (typeof (transactions as Partial<Transactions> | null)?.current === 'function') return;
  throw wrongOption(
    'transactions',
    transactions,
    'clsTransactions(), typeormTransactions(), sequelizeTransactions({ token }), or an object with current()',
  );
}

/** Braces would become the hash tag of a Redis Cluster, and put the keys of a queue into different slots. */
function checkKeyPrefix(prefix: unknown): string {
  const text = requireNonBlank(prefix, 'AsynqModule option keyPrefix', InvalidOptionError);
  if (/[{}]/.test(text)) throw wrongOption('keyPrefix', text, 'without braces, which are special in a Redis Cluster');
  return text;
}

export const wrongOption = (name: string, value: unknown, expected: string): InvalidOptionError =>
  new InvalidOptionError(`AsynqModule option ${name} must be ${expected}, not ${describe(value)}`);
