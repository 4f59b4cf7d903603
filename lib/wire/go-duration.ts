import { InvalidOptionError } from '../errors.js';

/*
 * Durations as Go writes and reads them (wire-protocol A.5). Go counts nanoseconds in an int64, so
 * these are bigints. Durations in options of applications are in lib/duration.ts.
 */

const MILLISECOND = 1_000_000;
const SECOND = 1_000_000_000;

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1_000,
  '\u00b5s': 1_000, // micro sign
  '\u03bcs': 1_000, // Greek mu
  ms: MILLISECOND,
  s: SECOND,
  m: 60 * SECOND,
  h: 3600 * SECOND,
};

const LIMIT = 2n ** 63n;
const LONGEST_INTEGER = String(LIMIT).length;

/** @param milliseconds may have a fraction; it is rounded to nanoseconds */
export function nanosecondsOf(milliseconds: number): bigint {
  const whole = Math.trunc(milliseconds);
  return BigInt(whole) * BigInt(MILLISECOND) + BigInt(Math.round((milliseconds - whole) * MILLISECOND));
}

/** With a fraction if there is one. */
export function millisecondsOf(nanoseconds: bigint): number {
  const unit = BigInt(MILLISECOND);
  return Number(nanoseconds / unit) + Number(nanoseconds % unit) / MILLISECOND;
}

/** For example `1m30s`, `1.5ms`, `0s`. */
export function formatGoDuration(nanoseconds: bigint): string {
  const sign = nanoseconds < 0n ? '-' : '';
  const length = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  if (length < SECOND) return sign + formatShort(Number(length));
  const minutes = length / BigInt(UNITS.m!);
  const seconds = formatSeconds(length % BigInt(UNITS.m!));
  const hours = minutes / 60n;
  if (hours > 0n) return `${sign}${hours}h${minutes % 60n}m${seconds}`;
  return minutes > 0n ? `${sign}${minutes}m${seconds}` : sign + seconds;
}

function formatSeconds(nanoseconds: bigint): string {
  const fraction = String(nanoseconds % BigInt(SECOND))
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${nanoseconds / BigInt(SECOND)}${fraction && `.${fraction}`}s`;
}

function formatShort(nanoseconds: number): string {
  if (nanoseconds === 0) return '0s';
  if (nanoseconds < 1_000) return `${nanoseconds}ns`;
  if (nanoseconds < MILLISECOND) return `${nanoseconds / 1_000}\u00b5s`;
  return `${nanoseconds / MILLISECOND}ms`;
}

/** Splits any text completely; whether the parts are valid is checked later. */
const PART = /(\d*)(\.\d*)?([^.\d]*)/g;

/**
 * Reads the nanoseconds of a text such as `1h30m`, `-1.5s`, `300ms`, `0`.
 *
 * @throws InvalidOptionError with Go's text
 */
export function parseGoDuration(text: string): bigint {
  const unsigned = text.replace(/^[+-]/, '');
  if (unsigned === '0') return 0n;
  if (unsigned === '') throw invalid(text);
  let total = 0n;
  for (const [part, whole, fraction, unit] of unsigned.matchAll(PART)) {
    if (part === '') break;
    if (!whole && !/\d/.test(fraction ?? '')) throw invalid(text);
    total += parsePart(text, whole!, (fraction ?? '').slice(1), unit!);
    if (total > LIMIT) throw invalid(text);
  }
  const negative = text.startsWith('-');
  if (total === LIMIT && !negative) throw invalid(text);
  return negative ? -total : total;
}

function parsePart(text: string, whole: string, fraction: string, unit: string): bigint {
  if (unit === '') throw new InvalidOptionError(`time: missing unit in duration ${quote(text)}`);
  const scale = Object.hasOwn(UNITS, unit) ? UNITS[unit]! : undefined;
  if (scale === undefined) {
    throw new InvalidOptionError(`time: unknown unit ${quote(unit)} in duration ${quote(text)}`);
  }
  const digits = whole.replace(/^0+/, '');
  if (digits.length > LONGEST_INTEGER) throw invalid(text);
  return BigInt(digits) * BigInt(scale) + BigInt(fractionOf(scale, fraction));
}

/** In floating point and with as many digits as Go uses, so that the last nanosecond is equal. */
function fractionOf(scale: number, fraction: string): number {
  const significant = fraction.replace(/^0+/, '');
  const fitting = BigInt(significant.slice(0, LONGEST_INTEGER)) <= LIMIT ? LONGEST_INTEGER : LONGEST_INTEGER - 1;
  const digits = significant.slice(0, fitting);
  const places = fraction.length - significant.length + digits.length;
  return Math.trunc(Number(digits) * (scale / 10 ** places));
}

const invalid = (text: string): InvalidOptionError => new InvalidOptionError(`time: invalid duration ${quote(text)}`);

/** Quotes like Go's package time: bytes that are not plain ASCII as hexadecimal. */
function quote(text: string): string {
  let quoted = '"';
  for (const byte of Buffer.from(text)) {
    const char = String.fromCharCode(byte);
    if (byte < 0x20 || byte > 0x7f) quoted += `\\x${byte.toString(16).padStart(2, '0')}`;
    else quoted += char === '"' || char === '\\' ? `\\${char}` : char;
  }
  return quoted + '"';
}
