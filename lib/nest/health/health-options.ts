import { parseDuration, type Duration } from '../../duration.js';
import { InvalidOptionError } from '../../errors.js';
import { describe, rejectUnknownKeys, requireInteger, requireObject } from '../../validation.js';

/** The thresholds of a queue. They do not apply while it is paused. */
export interface QueueThresholds {
  /** The most tasks that are pending or held. Default: any number. */
  maxPending?: number;
  /** How long the next task to run may have been pending, and one may be held. Default: any time. */
  maxAge?: Duration;
}

/** The thresholds of the outbox in a database, if there is one. */
export interface OutboxThresholds {
  /** How long a committed row may wait for Redis. Default: any time. */
  maxAge?: Duration;
  /** The most rows that cannot become tasks. Default: any number. */
  maxPoisoned?: number;
}

export interface LivenessOptions {
  /** How late the next pass of a loop may be. Default 30 s. */
  maxLag?: Duration;
  /** How long one pass of a loop may take. Default 15 min: after an outage a pass may have much to do. */
  maxPass?: Duration;
}

export interface ReadinessOptions extends QueueThresholds, LivenessOptions {
  /** Thresholds by queue; `maxPending` and `maxAge` beside it apply to all other queues of the server. */
  queues?: Readonly<Record<string, QueueThresholds>>;
  /** Without it, only a database that does not answer is a problem. */
  outbox?: OutboxThresholds;
  /** How long Redis, and the database of an outbox, may take to reply. Default 2 s. */
  timeout?: Duration;
  /**
   * How long checks with the same options share the reply of Redis, so that strangers cannot load it with probes. The server is checked
   * every time. Default 1 s for the route and the indicator of Terminus, 0 for `AsynqHealth.ready`.
   */
  cacheFor?: Duration;
}

/** How long probes share the reply of Redis. */
export const DEFAULT_PROBE_CACHE_MS = 1_000;

export interface ResolvedThresholds {
  readonly maxPending: number;
  readonly maxAge: number;
}

export interface ResolvedOutboxThresholds {
  readonly maxAge: number;
  readonly maxPoisoned: number;
}

export interface ResolvedLiveness {
  readonly maxLag: number;
  readonly maxPass: number;
}

export interface ResolvedReadiness extends ResolvedLiveness {
  /** Thresholds of the served queues that are not in `queues`; `undefined`: these are not checked. */
  readonly others: ResolvedThresholds | undefined;
  readonly queues: ReadonlyMap<string, ResolvedThresholds>;
  readonly outbox: ResolvedOutboxThresholds;
  readonly timeout: number;
  readonly cacheFor: number;
}

const LIVENESS: readonly string[] = ['maxLag', 'maxPass'];
const THRESHOLDS: readonly string[] = ['maxPending', 'maxAge'];

/** @throws InvalidOptionError */
export function resolveLiveness(options: LivenessOptions = {}): ResolvedLiveness {
  requireObject(options, 'liveness options', InvalidOptionError);
  rejectUnknownKeys(options, LIVENESS, 'liveness option', InvalidOptionError);
  return times(options);
}

/** @throws InvalidOptionError */
export function resolveReadiness(options: ReadinessOptions = {}, defaultCacheFor = 0): ResolvedReadiness {
  requireObject(options, 'readiness options', InvalidOptionError);
  const known = [...LIVENESS, ...THRESHOLDS, 'queues', 'outbox', 'timeout', 'cacheFor'];
  rejectUnknownKeys(options, known, 'readiness option', InvalidOptionError);
  const { maxPending, maxAge, queues = {} } = options;
  const byName = Object.entries(requireObject(queues, 'readiness option queues', InvalidOptionError));
  return {
    ...times(options),
    others: maxPending === undefined && maxAge === undefined ? undefined : thresholds({ maxPending, maxAge }, ''),
    queues: new Map(byName.map(([queue, given]) => [queue, thresholds(given as QueueThresholds, ` of "${queue}"`)])),
    outbox: outboxThresholds(options.outbox),
    timeout: positive(options.timeout ?? 2_000, 'timeout'),
    cacheFor: notNegative(options.cacheFor ?? defaultCacheFor, 'cacheFor'),
  };
}

const times = ({ maxLag = 30_000, maxPass = 900_000 }: LivenessOptions): ResolvedLiveness => ({
  maxLag: positive(maxLag, 'maxLag'),
  maxPass: positive(maxPass, 'maxPass'),
});

function thresholds(given: QueueThresholds, of: string): ResolvedThresholds {
  requireObject(given, `thresholds${of}`, InvalidOptionError);
  rejectUnknownKeys(given, THRESHOLDS, `threshold${of}`, InvalidOptionError);
  const { maxPending, maxAge } = given;
  return {
    maxPending: atMost(maxPending, `maxPending${of}`),
    maxAge: maxAge === undefined ? Infinity : positive(maxAge, `maxAge${of}`),
  };
}

function outboxThresholds(given: OutboxThresholds = {}): ResolvedOutboxThresholds {
  requireObject(given, 'readiness option outbox', InvalidOptionError);
  rejectUnknownKeys(given, ['maxAge', 'maxPoisoned'], 'threshold of the outbox', InvalidOptionError);
  const { maxAge, maxPoisoned } = given;
  return {
    maxAge: maxAge === undefined ? Infinity : positive(maxAge, 'maxAge of the outbox'),
    maxPoisoned: atMost(maxPoisoned, 'maxPoisoned of the outbox'),
  };
}

/** By default any number. */
function atMost(value: number | undefined, name: string): number {
  if (value === undefined) return Infinity;
  const range = { least: 0, most: Number.MAX_SAFE_INTEGER };
  return requireInteger(value, `health option ${name}`, InvalidOptionError, range);
}

function positive(value: Duration, name: string): number {
  const milliseconds = parseDuration(value, `health option ${name}`);
  if (milliseconds > 0) return milliseconds;
  throw new InvalidOptionError(`health option ${name} must be more than zero, not ${describe(value)}`);
}

function notNegative(value: Duration, name: string): number {
  const milliseconds = parseDuration(value, `health option ${name}`);
  if (milliseconds >= 0) return milliseconds;
  throw new InvalidOptionError(`health option ${name} must be zero or more, not ${describe(value)}`);
}
