import { FOREIGN } from '../foreign-names.js';
import { BAD_ZONE, parseSpec } from '../cron/parse.js';
import type { Schedule } from '../cron/schedule.js';
import { InvalidOptionError, InvalidScheduleError } from '../errors.js';
import { TASK_OPTION_NAMES, type TaskOptions } from '../task/options.js';
import {
  describe,
  refuseBraces,
  rejectUnknownKeys,
  requireInteger,
  requireNonBlank,
  requireObject,
} from '../validation.js';

/**
 * What happens to planned times that passed while no process ran (or Redis was away for more than
 * 30 s): `'skip'`: they are skipped; `'one'`: the last of them is enqueued; `{ all: n }`: the last
 * `n` are, oldest first.
 */
export type MissedPolicy = 'skip' | 'one' | { readonly all: number };

/**
 * Whether a planned time is skipped while the last task is unfinished: waiting, running or to be
 * retried.
 */
export type OverlapPolicy = 'allow' | 'skip';

/** When a periodic task is enqueued. */
export interface PlanOptions {
  /**
   * IANA name of the spec's time zone, unless the spec names one (`TZ=…`). Default `UTC`, as in
   * asynq.
   */
  tz?: string;
  /** Default `'skip'`. */
  missed?: MissedPolicy;
  /** Default `'allow'`. */
  overlap?: OverlapPolicy;
  /**
   * The name of the entry in all processes: each planned time is enqueued once per name. Default:
   * derived from spec, zone, type, payload and task options, so that equal entries are one and
   * changed ones are new. Set a name, without braces, for an entry that stays the same although
   * these change.
   */
  id?: string;
}

/** Options of a periodic task: when it is enqueued, and those of the tasks it enqueues. */
export interface PeriodicTaskOptions extends TaskOptions, PlanOptions {}

export interface Plan {
  readonly tz: string;
  readonly missed: MissedPolicy;
  readonly overlap: OverlapPolicy;
  readonly id: string | undefined;
}

const PLAN_NAMES = ['tz', 'missed', 'overlap', 'id'] as const satisfies readonly (keyof PlanOptions)[];
export const PERIODIC_OPTION_NAMES: readonly string[] = [...PLAN_NAMES, ...TASK_OPTION_NAMES];

/**
 * Separates the two kinds of options, and checks those of the plan.
 *
 * @param what the owner of the options, for the message
 * @throws InvalidOptionError
 */
export function readPeriodicOptions(
  options: PeriodicTaskOptions,
  what = 'periodic task',
): { plan: Plan; task: TaskOptions } {
  requireObject(options, 'options of a periodic task', InvalidOptionError);
  const known = PERIODIC_OPTION_NAMES;
  rejectUnknownKeys(options, known, 'option of a periodic task:', InvalidOptionError, FOREIGN.periodic);
  const { tz = 'UTC', missed = 'skip', overlap = 'allow', id, ...task } = options;
  requireNonBlank(tz, `${what}: tz`, InvalidOptionError);
  if (id !== undefined) {
    refuseBraces(requireNonBlank(id, `${what}: id`, InvalidOptionError), `${what}: id`, InvalidOptionError);
  }
  if (overlap !== 'allow' && overlap !== 'skip') {
    throw new InvalidOptionError(`${what}: overlap must be "allow" or "skip", not ${describe(overlap)}`);
  }
  return { plan: { tz, missed: checkMissed(missed, what), overlap, id }, task };
}

const SPEC_FORMS =
  'write five fields (minute, hour, day of month, month, day of week) as in "0 9 * * 1-5", a descriptor as "@daily", or ' +
  '"@every 90s"';
const ZONE_FORM = 'write an IANA name as "Europe/Berlin"';

/** `<seconds> <five fields>`, as other libraries write it. */
const SIX_FIELDS = /^(?:(\d+)|\*(?:\/(\d+))?) +(\S+(?: +\S+){4})$/;
const EVERY_MINUTE = /^\*(?: +\*){4}$/;

/** What a spec with seconds is here; `undefined` when it is none, or has no other form. */
function withoutSeconds(spec: string): string | undefined {
  const [, second, step = '1', rest = ''] = SIX_FIELDS.exec(spec.trim()) ?? [];
  if (second !== undefined) return `there is no field of seconds: write "${rest}"`;
  return EVERY_MINUTE.test(rest) ? `there is no field of seconds: write "@every ${step}s"` : undefined;
}

/** What the cron syntax of other libraries has, and this one has not. */
const FOREIGN_SYNTAX: readonly (readonly [form: RegExp, remedy: string])[] = [
  [/^@every\s.*\d[dw]/, 'the longest unit is the hour: write "@every 24h" for a day'],
  [/^\S+ \S+ \S+ \S+ (?:\S*[,-])?7\b/, 'Sunday is 0, or SUN'],
  [
    /(?:^|[\s,])(?:LW?|L-\d+|\d+[LW])(?:$|[\s,])|#/,
    'there is no L, W and #: give all days that it may be, as "0 2 28-31 * *", and let the handler look at the date',
  ],
];

/** What to write instead of a spec that cannot be read. */
function remedyOf(spec: string): string {
  const seconds = withoutSeconds(spec);
  if (seconds !== undefined) return seconds;
  return FOREIGN_SYNTAX.find(([form]) => form.test(spec.trim()))?.[1] ?? SPEC_FORMS;
}

/** What to write instead of something that is no text. */
function textOf(spec: unknown): string {
  if (spec instanceof Date) return 'for one time enqueue a task with processAt';
  if (typeof spec !== 'number') return SPEC_FORMS;
  return `write "@every ${Math.max(1, Math.round(spec / 1000))}s", in whole seconds`;
}

/** The schedule of a spec. @throws InvalidScheduleError */
export function readSpec(spec: unknown, tz: string, what = 'periodic task'): Schedule {
  if (typeof spec !== 'string')
    throw new InvalidScheduleError(`${what}: a spec must be a string, not ${describe(spec)}; ${textOf(spec)}`);
  try {
    return parseSpec(spec, { location: tz });
  } catch (cause) {
    if (!(cause instanceof InvalidScheduleError)) throw cause;
    const remedy = cause.message.startsWith(BAD_ZONE) ? ZONE_FORM : remedyOf(spec);
    throw new InvalidScheduleError(`${what}: spec ${describe(spec)}: ${cause.message}; ${remedy}`, { cause });
  }
}

/**
 * @param what the owner of the options, for the message
 * @throws InvalidScheduleError, InvalidOptionError when spec or options are wrong
 */
export function checkPlan(spec: unknown, options: PeriodicTaskOptions, what: string): void {
  readSpec(spec, readPeriodicOptions(options, what).plan.tz, what);
}

function checkMissed(missed: unknown, what: string): MissedPolicy {
  if (missed === 'skip' || missed === 'one') return missed;
  if (typeof missed === 'object' && missed !== null && Object.keys(missed).join() === 'all') {
    const most = (missed as { all: unknown }).all;
    return { all: requireInteger(most, `${what}: missed.all`, InvalidOptionError, { least: 1, most: 10_000 }) };
  }
  throw new InvalidOptionError(
    `${what}: missed must be "skip", "one" or { all: <at most this many> }, not ${describe(missed)}`,
  );
}
