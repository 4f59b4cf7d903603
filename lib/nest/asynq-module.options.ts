import type { Provider } from '@nestjs/common';
import type { ConnectionInput } from '../broker/redis/connection/connection-options.js';
import { InvalidOptionError } from '../errors.js';
import { checkRedaction, type Redaction } from '../redaction/rules.js';
import type { ServerOptions } from '../server/options.js';
import type { PayloadCodec } from '../task/codec.js';
import type { TaskOptions } from '../task/options.js';
import { checkMaxPayloadSize } from '../task/payload-size.js';
import { DEFAULT_KEY_PREFIX } from '../wire/keys.js';
import { describe, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import type { InvalidPayloadPolicy } from './execution/invalid-payload.js';
import { resolveEventStream, type EventStreamOptions } from './events/event-stream.options.js';
import { misplacedExtra } from './nest.messages.js';

export interface AsynqModuleOptions {
  /**
   * Where Redis is: ioredis options, a URL, a cluster, a sentinel group, or an ioredis client; `'memory'` keeps everything in
   * this process. Nothing connects before it is needed.
   */
  connection: ConnectionInput | 'memory';
  /** Options of the server that runs this application's handlers; `false`: this process only produces. Default `{}`. */
  server?: ServerOptions | false;
  /** Whether the server starts with the application, when there are handlers; else call `AsynqServer.start()`. Default true. */
  autoStart?: boolean;
  /**
   * Whether this process schedules periodic tasks (`@PeriodicTask`, `@PeriodicTaskSource`, `AsynqScheduler`). Also a process without
   * server does: each planned time is enqueued once, however many do. Default true.
   */
  scheduler?: boolean;
  /**
   * What becomes of a task whose payload cannot be decoded or is refused by a pipe: `'archive'` at once, since the same bytes will
   * fail again, or `'retry'` like any failure. Default `'archive'`.
   */
  invalidPayload?: InvalidPayloadPolicy;
  /** How payloads become bytes and back, unless a definition says. Default JSON, and bytes as they are. */
  codec?: PayloadCodec;
  /** Options of every task enqueued here, under those of its definition and of the call. */
  defaults?: TaskOptions;
  /**
   * Begin of every key in Redis, for several tenants on one. Default `asynq`. Go servers and tools see only the default: a
   * task under another prefix is invisible to them.
   */
  keyPrefix?: string;
  /**
   * The most bytes of a payload or a result that this process stores: whatever enqueues, updates or returns more fails, or loses the
   * result, and nothing is written. Default 5 MiB (5242880), at most 512 MiB. Redis holds up everybody for a large value, in every step
   * of its task: raise it for few tasks only.
   */
  maxPayloadSize?: number;
  /**
   * Whether tasks are traced with OpenTelemetry and carry the context of their trace: when `@opentelemetry/api` is installed, unless
   * this is false; `true` has the boot fail where it is not. Without a registered SDK nothing is done either way.
   */
  tracing?: boolean;
  /**
   * What nobody gets to see of tasks: the errors of such tasks have no text in logs and spans, and the console of this connection hides
   * fields and headers. What is stored stays as it is. Default: nothing is hidden.
   */
  redact?: Redaction;
  /**
   * Adds what happens to tasks here to a stream in Redis that every process can follow (`AsynqTaskEvents.fleet`), in batches, a few times a
   * second. `true`: every attempt that is over, the newest 10,000. Default false.
   */
  eventStream?: boolean | EventStreamOptions;
}

/** What Nest must know before any factory runs. In `forRootAsync` these stand beside `useFactory`. */
export interface AsynqModuleExtras {
  /** The name of this connection when an application has several. Default: it has none. */
  name?: string;
  /** Whether modules need not import this one to inject the client. Default false. Handlers are found in every module anyway. */
  isGlobal?: boolean;
  /** Further providers that the options factory can inject. */
  extraProviders?: Provider[];
}

/** What a class given to `useClass` or `useExisting` implements. */
export interface AsynqOptionsFactory {
  createAsynqOptions(): Promise<AsynqModuleOptions> | AsynqModuleOptions;
}

/** Module options after validation. The connection is judged when the broker is made, so not at all when it is overridden. */
export interface ResolvedModuleOptions extends AsynqModuleOptions {
  readonly server: ServerOptions | false;
  readonly autoStart: boolean;
  readonly scheduler: boolean;
  readonly invalidPayload: InvalidPayloadPolicy;
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
}

const KNOWN_OPTIONS: readonly (keyof AsynqModuleOptions)[] = [
  'connection',
  'server',
  'autoStart',
  'scheduler',
  'invalidPayload',
  'codec',
  'defaults',
  'keyPrefix',
  'maxPayloadSize',
  'tracing',
  'redact',
  'eventStream',
];

export const EXTRAS: readonly (keyof AsynqModuleExtras)[] = ['name', 'isGlobal', 'extraProviders'];

const POLICIES: readonly InvalidPayloadPolicy[] = ['archive', 'retry'];

/** @throws InvalidOptionError naming the option, its value and the remedy */
export function resolveModuleOptions(options: AsynqModuleOptions): ResolvedModuleOptions {
  requireObject(options, 'AsynqModule options', InvalidOptionError);
  const extra = EXTRAS.find((key) => key in options);
  if (extra) throw new InvalidOptionError(misplacedExtra(extra));
  rejectUnknownKeys(options, [...KNOWN_OPTIONS, ...EXTRAS], 'AsynqModule option', InvalidOptionError);
  const {
    server = {},
    autoStart = true,
    scheduler = true,
    invalidPayload = 'archive',
    keyPrefix = DEFAULT_KEY_PREFIX,
  } = options;
  if (server !== false) requireObject(server, 'AsynqModule option server (options, or false)', InvalidOptionError);
  if (typeof autoStart !== 'boolean') throw wrongOption('autoStart', autoStart, 'true or false');
  if (typeof scheduler !== 'boolean') throw wrongOption('scheduler', scheduler, 'true or false');
  const { tracing } = options;
  if (tracing !== undefined && typeof tracing !== 'boolean') throw wrongOption('tracing', tracing, 'true or false');
  if (options.redact !== undefined) checkRedaction(options.redact, 'AsynqModule option redact');
  resolveEventStream(options.eventStream);
  if (!POLICIES.includes(invalidPayload)) throw wrongOption('invalidPayload', invalidPayload, '"archive" or "retry"');
  return {
    ...{ ...options, server, autoStart, scheduler, invalidPayload },
    keyPrefix: checkKeyPrefix(keyPrefix),
    maxPayloadSize: checkMaxPayloadSize(options.maxPayloadSize, 'AsynqModule option maxPayloadSize'),
  };
}

/** Braces would become the hash tag of a Redis Cluster, and tear a queue's keys apart. */
function checkKeyPrefix(prefix: unknown): string {
  const text = requireNonBlank(prefix, 'AsynqModule option keyPrefix', InvalidOptionError);
  if (/[{}]/.test(text)) throw wrongOption('keyPrefix', text, 'without braces, which are special in a Redis Cluster');
  return text;
}

export const wrongOption = (name: string, value: unknown, expected: string): InvalidOptionError =>
  new InvalidOptionError(`AsynqModule option ${name} must be ${expected}, not ${describe(value)}`);
