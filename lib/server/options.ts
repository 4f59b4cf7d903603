import { MAX_ATTEMPTS } from '../broker/attempts.js';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import type { IsFailure, RetryDelay, TaskContext } from '../task/context.js';
import { describe, isBlank, refuseBraces, rejectUnknownKeys, requireInteger, requireObject } from '../validation.js';
import { type ResolvedThreadOptions, resolveThreads, type ThreadOptions } from '../threads/options.js';
import { checkDrainSignal } from './drain-signal.js';
import { GROUP_OPTION_NAMES, resolveGroupOptions } from './groups/group-options.js';
import type { GroupOptions, GroupOverride, ResolvedGroupOptions } from './groups/group-options.js';
import type { HealthCheckHook } from './loops/health-check.js';
import { resolveQueue, type QueueOptions, type ResolvedQueueOptions } from './fetching/queue-options.js';

/**
 * Options of a server. Names and meanings are asynq's Config (wire-protocol 5.1) unless said
 * otherwise.
 */
export interface ServerOptions extends GroupOptions {
  /**
   * Handlers that run at the same time. Default 10 (asynq: the number of CPUs; handlers here mostly
   * wait).
   */
  concurrency?: number;
  /**
   * Queue names and their priorities (positive whole numbers) or options, or names of equal
   * priority. Default `{ default: 1 }`.
   */
  queues?: Readonly<Record<string, number | QueueOptions>> | readonly string[];
  /** Always the highest priority first, instead of shares by priority. Default false. */
  strictPriority?: boolean;
  /**
   * Average time between two polls of an idle server. A notice wakes it at once; this is the safety
   * net. Default 1 s.
   */
  taskCheckInterval?: Duration;
  /**
   * Longest time until due scheduled and retried tasks are searched for. A timer does that when the
   * next one is due; this is the safety net. Default 5 s.
   */
  delayedTaskCheckInterval?: Duration;
  /** How long running tasks may go on at shutdown before they are asked to stop. Default 8 s. */
  shutdownTimeout?: Duration;
  /**
   * A signal that drains this server: it claims nothing any more, and what runs goes on (asynq's
   * TSTP). The process stays until another signal ends it. Default: none. @example 'SIGTSTP'
   */
  drainSignal?: NodeJS.Signals;
  /** Milliseconds until the next attempt. Default: asynq's `n⁴ + 15 + rand(30)·(n+1)` seconds. */
  retryDelay?: RetryDelay;
  /** Whether an error counts against the retries. Default: every error does. */
  isFailure?: IsFailure;
  /**
   * Called for every failed attempt, before its outcome is stored (asynq's ErrorHandler). Must not
   * throw. Default: none.
   */
  onError?: (error: unknown, task: TaskContext) => void;
  /** Where handlers with `thread: true` run. Default: nowhere; such a handler fails at boot. */
  threads?: ThreadOptions;
  /**
   * Keeps leases from a thread while a handler keeps the event loop busy, until the deadline of each task. The thread starts with the first
   * task. Default true; without Redis there is none.
   */
  leaseThread?: boolean;
  /**
   * How often the servers of a task may die while it runs. Whoever recovers it then archives it as a suspect. Before that it is retried as any
   * other, and runs beside few others. Default 3.
   */
  maxCrashes?: number;
  /**
   * How many of its last attempts a task keeps that has failed: when and where each ran, how long, its error and stack (`AsynqInspector.attempts`);
   * some 3 kB each at most. A task that succeeds at once stores none. 1 to 100, or `false`: none. Default 10.
   */
  attemptHistory?: number | false;
  /** Called regularly with the result of a ping to Redis (asynq's HealthCheckFunc). Default: none. */
  healthCheck?: HealthCheckHook;
  /** Time between two calls of `healthCheck`. Default 15 s. */
  healthCheckInterval?: Duration;
  /** Time between two clean-ups of completed and archived tasks. Default 8 s. */
  janitorInterval?: Duration;
  /** Tasks deleted in one step of a clean-up. Default 100, at most 1,000. */
  janitorBatchSize?: number;
  /**
   * Other grace periods, delays and sizes for some queues and groups. Of two that set the same
   * option, the later one wins. Default: none.
   */
  groupOverrides?: readonly GroupOverride[];
}

/** Options with every default applied; times in milliseconds. */
export interface ResolvedServerOptions {
  readonly concurrency: number;
  readonly queues: Readonly<Record<string, ResolvedQueueOptions>>;
  readonly strictPriority: boolean;
  readonly taskCheckInterval: number;
  readonly delayedTaskCheckInterval: number;
  readonly shutdownTimeout: number;
  readonly drainSignal: NodeJS.Signals | undefined;
  readonly retryDelay: RetryDelay | undefined;
  readonly isFailure: IsFailure | undefined;
  readonly onError: ((error: unknown, task: TaskContext) => void) | undefined;
  readonly threads: ResolvedThreadOptions | undefined;
  readonly leaseThread: boolean;
  readonly maxCrashes: number;
  /** 0: none. */
  readonly attemptHistory: number;
  readonly healthCheck: HealthCheckHook | undefined;
  readonly healthCheckInterval: number;
  readonly janitorInterval: number;
  readonly janitorBatchSize: number;
  readonly groups: ResolvedGroupOptions;
}

const DEFAULTS = {
  concurrency: 10,
  queues: { default: 1 } as Readonly<Record<string, number>>,
  taskCheckInterval: 1_000,
  delayedTaskCheckInterval: 5_000,
  shutdownTimeout: 8_000,
  maxCrashes: 3,
  attemptHistory: 10,
  healthCheckInterval: 15_000,
  janitorInterval: 8_000,
  janitorBatchSize: 100,
} as const;

const KNOWN: readonly (keyof ServerOptions)[] = [
  'concurrency',
  'queues',
  'strictPriority',
  'taskCheckInterval',
  'delayedTaskCheckInterval',
  'shutdownTimeout',
  'drainSignal',
  'retryDelay',
  'isFailure',
  'onError',
  'threads',
  'leaseThread',
  'maxCrashes',
  'attemptHistory',
  'healthCheck',
  'healthCheckInterval',
  'janitorInterval',
  'janitorBatchSize',
  ...GROUP_OPTION_NAMES,
  'groupOverrides',
];

const MAX_CONCURRENCY = 100_000;
const MAX_CRASHES = 1_000_000;

/**
 * Applies the defaults.
 *
 * @throws InvalidOptionError that names the option, its value and the remedy
 */
export function resolveServerOptions(options: ServerOptions = {}): ResolvedServerOptions {
  requireObject(options, 'server options', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN, 'server option', InvalidOptionError, FOREIGN.server);
  return {
    concurrency: checkConcurrency(options.concurrency ?? DEFAULTS.concurrency),
    queues: checkQueues(options.queues ?? DEFAULTS.queues),
    strictPriority: checkBoolean(options.strictPriority ?? false, 'strictPriority'),
    taskCheckInterval: checkInterval(options, 'taskCheckInterval'),
    delayedTaskCheckInterval: checkInterval(options, 'delayedTaskCheckInterval'),
    shutdownTimeout: checkShutdownTimeout(options),
    drainSignal: checkDrainSignal(options.drainSignal),
    retryDelay: checkFunction(options.retryDelay, 'retryDelay'),
    isFailure: checkFunction(options.isFailure, 'isFailure'),
    onError: checkFunction(options.onError, 'onError'),
    threads: options.threads && resolveThreads(options.threads),
    leaseThread: checkBoolean(options.leaseThread ?? true, 'leaseThread'),
    maxCrashes: checkCount(options.maxCrashes ?? DEFAULTS.maxCrashes, 'maxCrashes', MAX_CRASHES),
    attemptHistory: checkHistory(options.attemptHistory ?? DEFAULTS.attemptHistory),
    healthCheck: checkFunction(options.healthCheck, 'healthCheck'),
    healthCheckInterval: checkInterval(options, 'healthCheckInterval'),
    janitorInterval: checkInterval(options, 'janitorInterval'),
    janitorBatchSize: checkCount(options.janitorBatchSize ?? DEFAULTS.janitorBatchSize, 'janitorBatchSize', 1_000),
    groups: resolveGroupOptions(options, options.groupOverrides),
  };
}

function checkHistory(value: unknown): number {
  if (value === false) return 0;
  if (typeof value === 'number') return checkCount(value, 'attemptHistory', MAX_ATTEMPTS);
  throw new InvalidOptionError(
    `attemptHistory must be a number from 1 to ${MAX_ATTEMPTS}, or false, not ${describe(value)}`,
  );
}

const checkCount = (value: unknown, name: string, most: number): number =>
  requireInteger(value, name, InvalidOptionError, { least: 1, most });

export const checkConcurrency = (value: unknown): number => checkCount(value, 'concurrency', MAX_CONCURRENCY);

/** One queue, as it is added to a running server. @throws InvalidOptionError */
export function checkQueue(queue: string, given: unknown): ResolvedQueueOptions {
  checkQueueName(queue);
  return resolveQueue(queue, given);
}

function checkQueues(queues: unknown): Readonly<Record<string, ResolvedQueueOptions>> {
  const entries = Array.isArray(queues)
    ? queues.map((name: unknown): [string, unknown] => [name as string, 1])
    : Object.entries(
        requireObject(
          queues,
          'queues (a list of names, or priorities or options by name)',
          InvalidOptionError,
        ) as Record<string, unknown>,
      );
  if (entries.length === 0) {
    throw new InvalidOptionError('queues is empty; name at least one queue, or leave it out for "default"');
  }
  return Object.fromEntries(entries.map(([name, given]) => [name, checkQueue(name, given)]));
}

function checkQueueName(name: unknown): void {
  if (typeof name === 'string' && !isBlank(name)) return void refuseBraces(name, 'queue name', InvalidOptionError);
  throw new InvalidOptionError(`queue name must contain one or more characters, not ${describe(name)}`);
}

function checkBoolean(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidOptionError(`${name} must be true or false, not ${describe(value)}`);
}

type IntervalName =
  | 'taskCheckInterval'
  | 'delayedTaskCheckInterval'
  | 'shutdownTimeout'
  | 'healthCheckInterval'
  | 'janitorInterval';

function checkInterval(options: ServerOptions, name: IntervalName, orZero = false): number {
  const milliseconds = parseDuration(options[name] ?? DEFAULTS[name], name);
  if (milliseconds > 0 || (orZero && milliseconds === 0)) return milliseconds;
  throw new InvalidOptionError(`${name} must be ${orZero ? 'zero or more' : 'more than zero'}, not ${options[name]}`);
}

/** A small number most likely counts seconds. */
function checkShutdownTimeout(options: ServerOptions): number {
  const { shutdownTimeout: given } = options;
  if (typeof given !== 'number' || given <= 0 || given >= 1000) return checkInterval(options, 'shutdownTimeout', true);
  throw new InvalidOptionError(
    `shutdownTimeout: ${given} is ${given} milliseconds; give '${given}s' for seconds, or '${given}ms'`,
  );
}

function checkFunction<F>(value: F | undefined, name: string): F | undefined {
  if (value === undefined || typeof value === 'function') return value;
  throw new InvalidOptionError(`${name} must be a function, not ${describe(value)}`);
}
