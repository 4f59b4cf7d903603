import type { QueueLimits } from '../broker/broker.js';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { describe, rejectUnknownKeys, requireObject } from '../validation.js';

/** One queue of a server. */
export interface QueueOptions {
  /** Its share, as in asynq. Default 1. */
  priority?: number;
  /** Tasks of this queue that run at a time in this process. Default: as many as the server runs. */
  concurrency?: number;
  /**
   * Tasks of this queue that run at a time in the whole fleet. What runs on Go servers counts, too, but they do not keep to the
   * limit. Slots of a server that died come back with its tasks. Default: no limit.
   */
  globalConcurrency?: number;
  /**
   * Tasks of this queue that start per time in the whole fleet: never more than `max` in any stretch of `per` (1 ms to a
   * day). Go servers neither count nor keep to it. Default: no limit.
   */
  rateLimit?: { readonly max: number; readonly per: Duration };
}

/** With every default applied. */
export interface ResolvedQueueOptions {
  readonly priority: number;
  readonly concurrency: number;
  readonly limits: QueueLimits | undefined;
}

const KNOWN: readonly (keyof QueueOptions)[] = ['priority', 'concurrency', 'globalConcurrency', 'rateLimit'];
const LARGEST_PRIORITY = 2 ** 31 - 1;
const LARGEST_LIMIT = 1_000_000_000;
const LONGEST_WINDOW = 86_400_000;

/** @param given a priority, or options. @throws InvalidOptionError */
export function resolveQueue(queue: string, given: unknown): ResolvedQueueOptions {
  if (typeof given === 'number') {
    return { priority: checkPriority(queue, given), concurrency: Infinity, limits: undefined };
  }
  const name = `queue "${queue}"`;
  const options = requireObject(given, `${name} (a priority, or options)`, InvalidOptionError) as QueueOptions;
  rejectUnknownKeys(options, KNOWN, `option of ${name}`, InvalidOptionError);
  const limit = (value: unknown, what: string): number => checkCount(value, `${what} of ${name}`, LARGEST_LIMIT);
  const { priority = 1, concurrency, globalConcurrency, rateLimit } = options;
  const active = globalConcurrency === undefined ? 0 : limit(globalConcurrency, 'globalConcurrency');
  const rate = rateLimit === undefined ? undefined : checkRate(rateLimit, name);
  return {
    priority: checkPriority(queue, priority),
    concurrency: concurrency === undefined ? Infinity : limit(concurrency, 'concurrency'),
    limits: active === 0 && !rate ? undefined : { active, rate: rate?.max ?? 0, window: rate?.per ?? 1 },
  };
}

export const checkPriority = (queue: string, value: unknown): number =>
  checkCount(value, `priority of queue "${queue}"`, LARGEST_PRIORITY);

export function checkCount(value: unknown, name: string, largest: number): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= largest) return value as number;
  throw new InvalidOptionError(`${name} must be a whole number from 1 to ${largest}, not ${describe(value)}`);
}

function checkRate(given: unknown, queue: string): { max: number; per: number } {
  const name = `rateLimit of ${queue}`;
  const rate = requireObject(given, `${name}, as in { max: 100, per: '1m' }`, InvalidOptionError) as object;
  rejectUnknownKeys(rate, ['max', 'per'], `option of ${name}`, InvalidOptionError);
  const { max, per } = rate as { max?: unknown; per?: unknown };
  const window = parseDuration(per, `per of ${name}`);
  if (window < 1 || window > LONGEST_WINDOW) {
    throw new InvalidOptionError(`per of ${name} must be from 1 millisecond to 24 hours, not ${describe(per)}`);
  }
  return { max: checkCount(max, `max of ${name}`, LARGEST_LIMIT), per: Math.ceil(window) };
}
