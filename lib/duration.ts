import { nearestDuration } from './duration-hint.js';
import { InvalidOptionError, type ErrorClass } from './errors.js';

/**
 * A length of time: a number of milliseconds, or text as Go writes durations (`'90s'`, `'1h30m'`,
 * `'500ms'`, `'1.5h'`). Units: `ns`, `us` (`µs`), `ms`, `s`, `m`, `h`, and `d` for 24 hours, which
 * Go does not have.
 */
export type Duration = number | DurationText;

type Unit = 'ns' | 'us' | '\u00b5s' | '\u03bcs' | 'ms' | 's' | 'm' | 'h' | 'd';

/**
 * A duration as text: one number with its unit, or up to four, from the larger to the smaller: `'90s'`, `'1h30m'`, `'1d2h3m4s'`. The
 * program also reads others that Go reads; see {@link duration}.
 */
export type DurationText =
  | '0'
  | `${number}${Unit}`
  | `${number}d${number}${'h' | 'm' | 's'}`
  | `${number}h${number}${'m' | 's'}`
  | `${number}m${number}${'s' | 'ms'}`
  | `${number}s${number}ms`
  | `${number}d${number}h${number}${'m' | 's'}`
  | `${number}h${number}m${number}s`
  | `${number}d${number}h${number}m${number}s`;

const NANOSECONDS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  '\u00b5s': 1e3, // micro sign
  '\u03bcs': 1e3, // Greek mu
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
  d: 86_400e9,
};

/** Go's durations are an int64 of nanoseconds: a longer one overflows. About 292 years. */
const MAX_DURATION_MS = 9_223_372_036_854;

const WHOLE = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)[a-z\u00b5\u03bc]+)+$/i;
const PART = /(\d+(?:\.\d*)?|\.\d+)([a-z\u00b5\u03bc]+)/gi;
const NUMBER_ALONE = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

const REMEDY = "give milliseconds as a number, or text such as '90s', '1h30m' or '500ms'";

/**
 * Returns the milliseconds of a duration, with a fraction if it has one. May be negative: the
 * caller decides whether that is valid.
 *
 * @param name what the duration is for, named in the error
 * @throws `Failure` (default InvalidOptionError) when the value is no duration, or longer than 292
 * years
 */
export function parseDuration(value: unknown, name: string, Failure: ErrorClass = InvalidOptionError): number {
  if (typeof value !== 'number' && typeof value !== 'string') {
    throw new Failure(`${name}: ${value === null ? 'null' : typeof value} is not a duration; ${REMEDY}`);
  }
  const milliseconds = typeof value === 'number' ? value : parseText(value, name, Failure);
  if (!Number.isFinite(milliseconds)) throw new Failure(`${name}: ${value} is not a duration; ${REMEDY}`);
  if (Math.abs(milliseconds) > MAX_DURATION_MS) {
    throw new Failure(`${name}: ${value} is too long; the longest duration is 292 years (106751d)`);
  }
  return milliseconds;
}

/**
 * The milliseconds of a text that is known when the program runs, such as a setting.
 *
 * @example defineTask('report', { timeout: duration(process.env.REPORT_TIMEOUT ?? '5m') })
 *
 * @throws InvalidOptionError when the text is no duration
 */
export const duration = (text: string): number => parseDuration(text, 'duration');

/**
 * A cache: programs use a few texts again and again, and parsing one costs more than preparing a
 * task.
 */
const cache = new Map<string, number>();
const MAX_CACHED = 1000;

function parseText(text: string, name: string, Failure: ErrorClass): number {
  let milliseconds = cache.get(text);
  if (milliseconds === undefined) {
    milliseconds = readText(text, name, Failure);
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(text, milliseconds);
  }
  return milliseconds;
}

function readText(text: string, name: string, Failure: ErrorClass): number {
  if (/^[+-]?0$/.test(text)) return 0;
  if (NUMBER_ALONE.test(text)) {
    throw new Failure(
      `${name}: duration "${text}" has no unit; give '${text}s' for seconds, or a number for milliseconds`,
    );
  }
  if (!WHOLE.test(text)) throw new Failure(`${name}: "${text}" is not a duration; ${remedyFor(text)}`);
  let nanoseconds = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    const scale = NANOSECONDS[unit!];
    if (scale === undefined) {
      const units = 'the units are ns, us, ms, s, m, h and d';
      throw new Failure(`${name}: unknown unit "${unit}" in duration "${text}"; ${remedyFor(text, units)}`);
    }
    // Rounded part by part, or 1.005s would be a hair below 1005 ms.
    nanoseconds += Math.round(Number(amount) * scale);
  }
  return (text.startsWith('-') ? -nanoseconds : nanoseconds) / 1e6;
}

function remedyFor(text: string, otherwise = REMEDY): string {
  const near = nearestDuration(text);
  return near === undefined ? otherwise : `did you mean '${near}'?`;
}
