import { InvalidScheduleError } from '../errors.js';
import { goQuote } from '../wire/go-quote.js';

/** The values one field of a spec allows. */
export interface Field {
  /** By value. */
  readonly allows: readonly boolean[];
  /**
   * Whether a part is `*` or `?` without a step above 1: this decides how the two fields of days
   * combine.
   */
  readonly star: boolean;
}

/** The bounds of a field. */
export interface FieldBounds {
  readonly least: number;
  readonly most: number;
  /** Names for the values from `least` on, in lower case. */
  readonly names: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

export const BOUNDS = {
  minute: { least: 0, most: 59, names: [] },
  hour: { least: 0, most: 23, names: [] },
  dayOfMonth: { least: 1, most: 31, names: [] },
  month: { least: 1, most: 12, names: MONTHS },
  dayOfWeek: { least: 0, most: 6, names: DAYS },
} as const satisfies Record<string, FieldBounds>;

/**
 * Reads a comma-separated list of ranges. Empty parts are ignored, so a field of commas allows
 * nothing.
 *
 * @throws InvalidScheduleError
 */
export function parseField(text: string, bounds: FieldBounds): Field {
  const allows = new Array<boolean>(bounds.most + 1).fill(false);
  let star = false;
  for (const part of text.split(',')) {
    if (part === '') continue;
    const range = parseRange(part, bounds);
    for (let value = range.first; value <= range.last; value += range.step) allows[value] = true;
    star ||= range.star;
  }
  return { allows, star };
}

interface Range {
  readonly first: number;
  readonly last: number;
  readonly step: number;
  readonly star: boolean;
}

/**
 * Reads `*`, `?`, `n` or `n-m`, each with an optional `/step`; `n/step` goes up to the largest
 * value.
 */
function parseRange(text: string, bounds: FieldBounds): Range {
  const [span, ...steps] = text.split('/') as [string, ...string[]];
  const [low, ...highs] = span.split('-') as [string, ...string[]];
  const any = low === '*' || low === '?';
  const first = any ? BigInt(bounds.least) : parseValue(low, bounds);
  let last = any ? BigInt(bounds.most) : first;
  if (!any && highs.length > 1) throw new InvalidScheduleError(`too many hyphens: ${text}`);
  if (!any && highs.length === 1) last = parseValue(highs[0]!, bounds);
  if (steps.length > 1) throw new InvalidScheduleError(`too many slashes: ${text}`);
  const step = steps.length === 1 ? parseNumber(steps[0]!) : 1n;
  if (steps.length === 1 && highs.length === 0) last = BigInt(bounds.most);
  checkRange(text, first, last, step, bounds);
  return { first: Number(first), last: Number(last), step: Number(step), star: any && step === 1n };
}

function checkRange(text: string, first: bigint, last: bigint, step: bigint, { least, most }: FieldBounds): void {
  const begin = `beginning of range (${first})`;
  if (first < least) throw new InvalidScheduleError(`${begin} below minimum (${least}): ${text}`);
  if (last > most) throw new InvalidScheduleError(`end of range (${last}) above maximum (${most}): ${text}`);
  if (first > last) throw new InvalidScheduleError(`${begin} beyond end of range (${last}): ${text}`);
  if (step === 0n) throw new InvalidScheduleError(`step of range should be a positive number: ${text}`);
}

function parseValue(text: string, { names, least }: FieldBounds): bigint {
  const named = names.indexOf(text.toLowerCase());
  return named < 0 ? parseNumber(text) : BigInt(named + least);
}

const MAX_INT64 = 2n ** 63n - 1n;

/**
 * Reads a number like Go's Atoi: a sign is allowed, spaces and underscores are not. Any size, as
 * messages repeat it.
 */
function parseNumber(text: string): bigint {
  if (!/^[+-]?\d+$/.test(text)) throw notAnInteger(text, 'invalid syntax');
  const value = text.startsWith('+') ? BigInt(text.slice(1)) : BigInt(text);
  if (value > MAX_INT64 || value < -MAX_INT64 - 1n) throw notAnInteger(text, 'value out of range');
  if (value < 0n) throw new InvalidScheduleError(`negative number (${value}) not allowed: ${text}`);
  return value;
}

const notAnInteger = (text: string, reason: string): InvalidScheduleError =>
  new InvalidScheduleError(`failed to parse int from ${text}: strconv.Atoi: parsing ${goQuote(text)}: ${reason}`);
