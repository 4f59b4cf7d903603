import { register, type Registry } from 'prom-client';
import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import {
  describe,
  rejectUnknownKeys,
  requireGuards,
  requireInteger,
  requireNonBlank,
  requireObject,
} from '../validation.js';
import { DEFAULT_BUCKETS } from './buckets.js';
import type { MetricsRegistry } from './registration.js';

/** What `forRoot` takes besides AsynqMetricsExtras, and a factory returns. */
export interface AsynqMetricsOptions {
  /**
   * The registry of the metrics. Default: prom-client's global `register`, which
   * @willsoto/nestjs-prometheus exports, too.
   */
  registry?: MetricsRegistry;
  /** The prefix of our names; asynq's have none. Default `nestjs_asynq_`. */
  prefix?: string;
  /** Names of connections, `default` for the unnamed one. Default: all of the application. */
  connections?: readonly string[];
  /**
   * The queues that are read from Redis at each scrape: some by name, or `false` for none, when
   * another process reads them (they are the same for all). Default: all.
   */
  queues?: readonly string[] | false;
  /**
   * How many queues are exported without `queues`: a scrape of 50,000 takes 48 MB. First those with
   * servers, then those with waiting tasks, then others by name; `queues_left_out` is how many are
   * missing. Default 1,000.
   */
  maxQueues?: number;
  /**
   * Of each fair queue, how many keys are exported with their waiting tasks: those with the most, up to 100. Each reading of a queue
   * reads the names of all its keys. Default 0: none.
   */
  topKeys?: number;
  /** Whether asynq's seven names are exported, for existing boards. Default true. */
  asynqNames?: boolean;
  /**
   * Upper bounds of the buckets of `task_duration_seconds`, in seconds, ascending. Default: 17 from
   * 1 ms to an hour.
   */
  durationBuckets?: readonly number[];
  /** Those of `task_wait_seconds`. Default: the same 17. */
  waitBuckets?: readonly number[];
  /** How many queues are read at a time. Default 8. */
  concurrency?: number;
  /** How long scrapes share a reading. Default 1 s. */
  cacheFor?: Duration;
  /** After how long a scrape goes on without the queues that are not read by then. Default 3 s. */
  timeout?: Duration;
}

/**
 * Options that Nest needs before any factory runs. In `forRootAsync` these are beside `useFactory`.
 */
export interface AsynqMetricsExtras {
  /**
   * The HTTP path of the metrics, such as `metrics`. Default: none, for applications that have one.
   */
  path?: string;
  /** Guards of that path: classes or instances. Default: none, as Prometheus expects. */
  guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Modules that export what the guards, or `inject`, need. */
  imports?: ModuleMetadata['imports'];
}

export interface ResolvedMetricsOptions {
  readonly registry: MetricsRegistry;
  readonly prefix: string;
  readonly connections: readonly string[] | undefined;
  readonly queues: readonly string[] | false | undefined;
  readonly maxQueues: number;
  readonly topKeys: number;
  readonly asynqNames: boolean;
  readonly durationBuckets: readonly number[];
  readonly waitBuckets: readonly number[];
  readonly concurrency: number;
  readonly cacheFor: number;
  readonly timeout: number;
}

const KNOWN: readonly (keyof AsynqMetricsOptions)[] = [
  'registry',
  'prefix',
  'connections',
  'queues',
  'maxQueues',
  'topKeys',
  'asynqNames',
  'durationBuckets',
  'waitBuckets',
  'concurrency',
  'cacheFor',
  'timeout',
];

const EXTRAS: readonly (keyof AsynqMetricsExtras)[] = ['path', 'guards', 'imports'];
const SOURCES = ['useFactory', 'useClass', 'useExisting'];

const DEFAULT_PREFIX = 'nestjs_asynq_';

/** Checks the options of `forRoot`. @throws InvalidOptionError */
export function checkGiven(options: AsynqMetricsOptions & AsynqMetricsExtras): void {
  requireObject(options, 'AsynqMetricsModule options', InvalidOptionError);
  rejectUnknownKeys(options, [...EXTRAS, ...KNOWN], 'AsynqMetricsModule option', InvalidOptionError);
  checkExtras(options);
}

/** Checks the options of `forRootAsync`. @throws InvalidOptionError */
export function checkGivenAsync(options: AsynqMetricsExtras): void {
  requireObject(options, 'AsynqMetricsModule.forRootAsync options', InvalidOptionError);
  const known = [...EXTRAS, ...SOURCES, 'inject', 'provideInjectionTokensFrom'];
  rejectUnknownKeys(options, known, 'AsynqMetricsModule.forRootAsync option', InvalidOptionError);
  if (!SOURCES.some((source) => source in options)) {
    throw new InvalidOptionError(
      `AsynqMetricsModule.forRootAsync needs one of ${SOURCES.join(', ')} to get the options from`,
    );
  }
  checkExtras(options);
}

function checkExtras({ path, guards = [] }: AsynqMetricsExtras): void {
  if (path !== undefined) requireNonBlank(path, 'AsynqMetricsModule option path', InvalidOptionError);
  requireGuards(guards, 'AsynqMetricsModule option guards', InvalidOptionError);
  if (path !== undefined || guards.length === 0) return;
  throw new InvalidOptionError(
    'AsynqMetricsModule option guards is for the route at `path`, which is not set; set it, such as "metrics"',
  );
}

const misplacedExtra = (key: string): string =>
  `AsynqMetricsModule option ${key} cannot come from a factory: Nest needs it before the factory runs; ` +
  'put it beside useFactory (or useClass, useExisting) in AsynqMetricsModule.forRootAsync';

/**
 * Checks and completes the options.
 *
 * @throws InvalidOptionError with the option, its value and the remedy
 */
export function resolveMetricsOptions(options: AsynqMetricsOptions = {}): ResolvedMetricsOptions {
  requireObject(options, 'AsynqMetricsModule options', InvalidOptionError);
  const misplaced = EXTRAS.find((key) => key in options);
  if (misplaced) throw new InvalidOptionError(misplacedExtra(misplaced));
  rejectUnknownKeys(options, KNOWN, 'AsynqMetricsModule option', InvalidOptionError);
  const { connections, queues, asynqNames = true, prefix = DEFAULT_PREFIX } = options;
  if (connections !== undefined) checkNames(connections, 'connections');
  if (queues !== undefined && queues !== false) checkNames(queues, 'queues');
  if (typeof asynqNames !== 'boolean') throw wrong('asynqNames', asynqNames, 'true or false');
  if (typeof prefix !== 'string' || !/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(prefix) || prefix === 'asynq_') {
    throw wrong('prefix', prefix, 'a prefix of metric names, such as "nestjs_asynq_", and not asynq\'s own');
  }
  return {
    connections,
    queues,
    asynqNames,
    prefix,
    registry: checkRegistry(options.registry ?? register),
    durationBuckets: checkBuckets(options.durationBuckets ?? DEFAULT_BUCKETS, 'durationBuckets'),
    waitBuckets: checkBuckets(options.waitBuckets ?? DEFAULT_BUCKETS, 'waitBuckets'),
    maxQueues: requireInteger(options.maxQueues ?? 1_000, 'maxQueues', InvalidOptionError, { least: 1, most: 100_000 }),
    topKeys: requireInteger(options.topKeys ?? 0, 'topKeys', InvalidOptionError, { least: 0, most: 100 }),
    concurrency: requireInteger(options.concurrency ?? 8, 'concurrency', InvalidOptionError, { least: 1, most: 100 }),
    cacheFor: checkTime(options.cacheFor ?? 1_000, 'cacheFor'),
    timeout: checkTime(options.timeout ?? 3_000, 'timeout', 1),
  };
}

function checkRegistry(registry: unknown): MetricsRegistry {
  const { registerMetric, metrics } = Object(registry) as Partial<Registry>;
  if (typeof registerMetric === 'function' && typeof metrics === 'function') return registry as MetricsRegistry;
  throw wrong('registry', registry, 'a Registry of prom-client');
}

function checkNames(names: unknown, option: string): void {
  if (!Array.isArray(names)) throw wrong(option, names, 'a list of names');
  for (const name of names) requireNonBlank(name, `a name in AsynqMetricsModule option ${option}`, InvalidOptionError);
}

function checkBuckets(bounds: unknown, option: string): readonly number[] {
  const ascending = (bound: unknown, index: number, all: unknown[]): boolean =>
    Number.isFinite(bound) && (index === 0 || (bound as number) > (all[index - 1] as number));
  if (Array.isArray(bounds) && bounds.length > 0 && bounds.every(ascending)) return [...(bounds as number[])];
  throw wrong(option, bounds, 'a list of ascending numbers of seconds');
}

function checkTime(value: Duration, option: string, least = 0): number {
  const milliseconds = parseDuration(value, `AsynqMetricsModule option ${option}`);
  if (milliseconds >= least) return milliseconds;
  throw wrong(option, value, least === 0 ? 'zero or more' : 'more than zero');
}

const wrong = (option: string, value: unknown, expected: string): InvalidOptionError =>
  new InvalidOptionError(`AsynqMetricsModule option ${option} must be ${expected}, not ${describe(value)}`);
