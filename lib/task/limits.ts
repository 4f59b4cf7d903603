import { parseDuration, type Duration } from '../duration.js';
import type { ErrorClass } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import {
  describe,
  rejectUnknownKeys,
  requireFunction,
  requireInteger,
  requireNonBlank,
  requireObject,
} from '../validation.js';

/** How many tasks may run, and start. */
export interface Limits {
  /** How many tasks run at a time in this process. Default: as many as the server runs. */
  concurrency?: number;
  /**
   * How many tasks run at a time in the whole fleet. Slots of a dead server become free. Default:
   * no limit.
   */
  globalConcurrency?: number;
  /**
   * How many tasks start per time in the whole fleet: at most `max` in any period of `per` (1 ms to
   * a day). Default: no limit.
   */
  rateLimit?: RateLimit;
}

export interface RateLimit {
  readonly max: number;
  readonly per: Duration;
}

/** A rate of something else than starts, such as the tokens of a language model. */
export interface CostLimit<P = unknown> extends RateLimit {
  /**
   * What a task costs of `max`: 0 or more, a fraction is rounded up. Called with the payload before the pipes; not asynchronous. A task that
   * costs more than `max` is archived. `TaskContext.spent` corrects it. Default: 1 for each task.
   */
  cost?(payload: P): number;
}

/** The limits with all defaults. */
export interface ResolvedLimits {
  /** `Infinity` is no limit. */
  readonly concurrency: number;
  /** 0 is no limit. */
  readonly globalConcurrency: number;
  /** 0 is no limit. */
  readonly rate: number;
  /** Milliseconds. */
  readonly window: number;
}

/** Limits of the tasks of one handler. */
export interface TaskLimits<P = unknown> extends Omit<Limits, 'rateLimit'> {
  /**
   * How many tasks start per time in the whole fleet, or with `cost`, how much these cost: at most `max` in any period of `per` (1 ms to a
   * day). Default: no limit.
   */
  rateLimit?: CostLimit<P>;
  /**
   * The scope in which `globalConcurrency` and `rateLimit` count in the fleet: a semaphore of
   * asynq's x/rate of this name, which Go workers and AsynqSemaphores share. Handlers of one scope
   * share all their limits. Default: the type, or prefix, of the handler.
   */
  limitScope?: string;
  /**
   * Whose limits they are, such as a partner: all limits hold for each key. A text or number, at most 256 bytes, without braces; not
   * asynchronous. Called with the payload before the pipes. Each key counts in a scope of its own, `<limitScope>:<key>`. A definition's
   * is also called where its tasks are enqueued: a wrong key fails there with InvalidTaskError. Elsewhere the task is archived with
   * InvalidLimitKeyError. Default: one limit for all.
   */
  limitBy?(payload: P): string | number;
}

const COUNT = { least: 1, most: 1_000_000_000 };
const MAX_WINDOW_MS = 86_400_000;
/** Of a queue and of a handler. */
export const LIMIT_NAMES = [
  'concurrency',
  'globalConcurrency',
  'rateLimit',
] as const satisfies readonly (keyof Limits)[];
export const TASK_LIMIT_NAMES = [
  ...LIMIT_NAMES,
  'limitScope',
  'limitBy',
] as const satisfies readonly (keyof TaskLimits)[];

/** @param what the owner of the limits, for messages */
export function resolveLimits(limits: Limits, what: string, Failure: ErrorClass): ResolvedLimits {
  const { concurrency, globalConcurrency, rateLimit } = limits;
  const count = (value: unknown, name: string): number => requireInteger(value, `${name} of ${what}`, Failure, COUNT);
  const rate = rateLimit === undefined ? undefined : checkRate(rateLimit, what, Failure);
  return {
    concurrency: concurrency === undefined ? Infinity : count(concurrency, 'concurrency'),
    globalConcurrency: globalConcurrency === undefined ? 0 : count(globalConcurrency, 'globalConcurrency'),
    rate: rate?.max ?? 0,
    window: rate?.per ?? 1,
  };
}

/** The limits among the options of a definition or a handler, `undefined` if it has none. */
export function pickLimits(options: TaskLimits, what: string, Failure: ErrorClass): TaskLimits | undefined {
  const { concurrency, globalConcurrency, rateLimit, limitScope, limitBy } = options;
  resolveLimits(options, what, Failure);
  if (limitScope !== undefined) requireNonBlank(limitScope, `limitScope of ${what}`, Failure);
  if (limitBy !== undefined) requireFunction(limitBy, `limitBy of ${what}`, Failure);
  if (concurrency === undefined && globalConcurrency === undefined && rateLimit === undefined) {
    if (limitScope === undefined && limitBy === undefined) return undefined;
    const name = limitScope === undefined ? 'limitBy' : 'limitScope';
    throw new Failure(`${name} of ${what} limits nothing without ${LIMIT_NAMES.join(' or ')}; give one of them`);
  }
  return { concurrency, globalConcurrency, rateLimit, limitScope, limitBy };
}

function checkRate(given: unknown, what: string, Failure: ErrorClass): { max: number; per: number } {
  const name = `rateLimit of ${what}`;
  const rate = requireObject(given, `${name} ({ max, per }, as in { max: 100, per: '1m' })`, Failure);
  rejectUnknownKeys(rate, ['max', 'per', 'cost'], `option of ${name}:`, Failure, FOREIGN.rate);
  const { max, per, cost } = rate as { max?: unknown; per?: unknown; cost?: unknown };
  if (cost !== undefined) requireFunction(cost, `cost of ${name}`, Failure);
  if (per === undefined) throw new Failure(`${name} has no per; give { max, per }, as in { max: 100, per: '1m' }`);
  const window = parseDuration(per, `per of ${name}`, Failure);
  if (window < 1 || window > MAX_WINDOW_MS) {
    throw new Failure(`per of ${name} must be from 1 millisecond to 24 hours, not ${describe(per)}`);
  }
  return { max: requireInteger(max, `max of ${name}`, Failure, COUNT), per: Math.ceil(window) };
}
