import { InvalidOptionError, type ErrorClass } from './errors.js';

/**
 * A length of time: a number of milliseconds, or text as Go writes durations (`'90s'`, `'1h30m'`,
 * `'500ms'`, `'1.5h'`). Units: `ns`, `us` (`µs`), `ms`, `s`, `m`, `h`, and `d` for 24 hours, which
 * Go does not have.
 */
export type Duration = number | string;

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

/**
 * Go holds durations in an int64 of nanoseconds; a longer one would overflow in a Go server. About
 * 292 years.
 */
const LONGEST_MILLISECONDS = 9_223_372_036_854;

const WHOLE = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)[a-z\u00b5\u03bc]+)+$/i;
const PART = /(\d+(?:\.\d*)?|\.\d+)([a-z\u00b5\u03bc]+)/gi;
const NUMBER_ALONE = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

const REMEDY = "give milliseconds as a number, or text such as '90s', '1h30m' or '500ms'";

/**
 * Milliseconds of a duration, with a fraction when it has one below a millisecond. May be negative:
 * the caller knows whether that makes sense.
 *
 * @param name what the duration is for, named in the error
 * @throws `Failure` (default InvalidOptionError) when the value is no duration, or longer than the
 * 292 years of Go
 */
export function parseDuration(value: unknown, name: string, Failure: ErrorClass = InvalidOptionError): number {
  if (typeof value !== 'number' && typeof value !== 'string') {
    throw new Failure(`${name}: ${value === null ? 'null' : typeof value} is not a duration; ${REMEDY}`);
  }
  const milliseconds = typeof value === 'number' ? value : parseText(value, name, Failure);
  if (!Number.isFinite(milliseconds)) throw new Failure(`${name}: ${value} is not a duration; ${REMEDY}`);
  if (Math.abs(milliseconds) > LONGEST_MILLISECONDS) {
    throw new Failure(`${name}: ${value} is too long; the longest duration is 292 years (106751d)`);
  }
  return milliseconds;
}

/**
 * Texts read so far: programs write the same few again and again, and reading one takes longer than
 * preparing a task.
 */
const known = new Map<string, number>();
const MOST_KNOWN = 1000;

function parseText(text: string, name: string, Failure: ErrorClass): number {
  let milliseconds = known.get(text);
  if (milliseconds === undefined) {
    milliseconds = readText(text, name, Failure);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(text, milliseconds);
  }
  return milliseconds;
}

function readText(text: string, name: string, Failure: ErrorClass): number {
  if (/^[+-]?0$/.test(text)) return 0;
  if (NUMBER_ALONE.test(text)) throw new Failure(`${name}: duration "${text}" has no unit; ${REMEDY}`);
  if (!WHOLE.test(text)) throw new Failure(`${name}: "${text}" is not a duration; ${REMEDY}`);
  let nanoseconds = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    const scale = NANOSECONDS[unit!];
    if (scale === undefined) {
      throw new Failure(
        `${name}: unknown unit "${unit}" in duration "${text}"; the units are ns, us, ms, s, m, h and d`,
      );
    }
    // Rounded part by part, or 1.005s would be a hair below 1005 ms.
    nanoseconds += Math.round(Number(amount) * scale);
  }
  return (text.startsWith('-') ? -nanoseconds : nanoseconds) / 1e6;
}
