import { parseSpec } from '../cron/parse.js';
import type { Schedule } from '../cron/schedule.js';
import { InvalidOptionError, InvalidScheduleError } from '../errors.js';
import { TASK_OPTION_NAMES, type TaskOptions } from '../task/options.js';
import { describe, rejectUnknownKeys, requireInteger, requireNonBlank, requireObject } from '../validation.js';

/**
 * What becomes of planned times that passed while no process was there to fire them (or Redis was away for more than 30 s):
 * `'skip'`: nothing; `'one'`: the last of them is made up for; `{ all: n }`: the last `n` are, oldest first.
 */
export type MissedPolicy = 'skip' | 'one' | { readonly all: number };

/** Whether a planned time is passed over while the task of the one before is unfinished: waiting, running or to be retried. */
export type OverlapPolicy = 'allow' | 'skip';

/** How a periodic task is planned. */
export interface PlanOptions {
  /** IANA name of the time zone the spec is meant in, unless it names one (`TZ=…`). Default `UTC`, as in asynq. */
  tz?: string;
  /** Default `'skip'`. */
  missed?: MissedPolicy;
  /** Default `'allow'`. */
  overlap?: OverlapPolicy;
  /**
   * What the entry is called in all processes that have it: planned times are enqueued once per name. Default: derived from spec,
   * zone, type, payload and task options, so that equal entries are one and changed ones are new. Give a name where an entry is to
   * stay the same although these change.
   */
  id?: string;
}

/** Options of a periodic task: how it is planned, and those of the tasks it enqueues. */
export interface PeriodicTaskOptions extends TaskOptions, PlanOptions {}

export interface Plan {
  readonly tz: string;
  readonly missed: MissedPolicy;
  readonly overlap: OverlapPolicy;
  readonly id: string | undefined;
}

const PLAN_NAMES = ['tz', 'missed', 'overlap', 'id'] as const satisfies readonly (keyof PlanOptions)[];
export const PERIODIC_OPTION_NAMES: readonly string[] = [...PLAN_NAMES, ...TASK_OPTION_NAMES];

/** Separates the two kinds of options, and checks those of the plan. @throws InvalidOptionError */
export function readPeriodicOptions(options: PeriodicTaskOptions): { plan: Plan; task: TaskOptions } {
  requireObject(options, 'options of a periodic task', InvalidOptionError);
  rejectUnknownKeys(options, PERIODIC_OPTION_NAMES, 'option of a periodic task', InvalidOptionError);
  const { tz = 'UTC', missed = 'skip', overlap = 'allow', id, ...task } = options;
  requireNonBlank(tz, 'periodic task: tz', InvalidOptionError);
  if (id !== undefined) requireNonBlank(id, 'periodic task: id', InvalidOptionError);
  if (overlap !== 'allow' && overlap !== 'skip') {
    throw new InvalidOptionError(`periodic task: overlap must be "allow" or "skip", not ${describe(overlap)}`);
  }
  return { plan: { tz, missed: checkMissed(missed), overlap, id }, task };
}

/** The schedule of a spec. @throws InvalidScheduleError */
export function readSpec(spec: unknown, tz: string): Schedule {
  if (typeof spec === 'string') return parseSpec(spec, { location: tz });
  throw new InvalidScheduleError(`a spec must be a string, not ${describe(spec)}`);
}

/** @throws InvalidScheduleError, InvalidOptionError when spec or options are wrong */
export function checkPlan(spec: unknown, options: PeriodicTaskOptions): void {
  readSpec(spec, readPeriodicOptions(options).plan.tz);
}

function checkMissed(missed: unknown): MissedPolicy {
  if (missed === 'skip' || missed === 'one') return missed;
  if (typeof missed === 'object' && missed !== null && Object.keys(missed).join() === 'all') {
    const most = (missed as { all: unknown }).all;
    return { all: requireInteger(most, 'periodic task: missed.all', InvalidOptionError, { least: 1, most: 10_000 }) };
  }
  throw new InvalidOptionError(
    `periodic task: missed must be "skip", "one" or { all: <at most so many> }, not ${describe(missed)}`,
  );
}
