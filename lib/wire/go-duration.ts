import { InvalidOptionError } from '../errors.js';

/*
 * Durations as Go writes and reads them (wire-protocol A.5). Go counts nanoseconds in an int64, so
 * these are bigints. Durations in options of applications are in lib/duration.ts.
 */

const MILLISECOND_NS = 1_000_000;
const SECOND_NS = 1_000_000_000;

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1_000,
  '\u00b5s': 1_000, // micro sign
  '\u03bcs': 1_000, // Greek mu
  ms: MILLISECOND_NS,
  s: SECOND_NS,
  m: 60 * SECOND_NS,
  h: 3600 * SECOND_NS,
};

const INT64_LIMIT = 2n ** 63n;
const MAX_INTEGER_DIGITS = String(INT64_LIMIT).length;

/** @param milliseconds may have a fraction; it is rounded to nanoseconds */
export function nanosecondsOf(milliseconds: number): bigint {
  const whole = Math.trunc(milliseconds);
  return BigInt(whole) * BigInt(MILLISECOND_NS) + BigInt(Math.round((milliseconds - whole) * MILLISECOND_NS));
}

/** With a fraction if there is one. */
export function millisecondsOf(nanoseconds: bigint): number {
  const unit = BigInt(MILLISECOND_NS);
  return Number(nanoseconds / unit) + Number(nanoseconds % unit) / MILLISECOND_NS;
}

/** For example `1m30s`, `1.5ms`, `0s`. */
export function formatGoDuration(nanoseconds: bigint): string {
  const sign = nanoseconds < 0n ? '-' : '';
  const length = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  if (length < SECOND_NS) return sign + formatShort(Number(length));
  const minutes = length / BigInt(UNITS.m!);
  const seconds = formatSeconds(length % BigInt(UNITS.m!));
  const hours = minutes / 60n;
  if (hours > 0n) return `${sign}${hours}h${minutes % 60n}m${seconds}`;
  return minutes > 0n ? `${sign}${minutes}m${seconds}` : sign + seconds;
}

function formatSeconds(nanoseconds: bigint): string {
  const fraction = String(nanoseconds % BigInt(SECOND_NS))
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${nanoseconds / BigInt(SECOND_NS)}${fraction && `.${fraction}`}s`;
}

function formatShort(nanoseconds: number): string {
  if (nanoseconds === 0) return '0s';
  if (nanoseconds < 1_000) return `${nanoseconds}ns`;
  if (nanoseconds < MILLISECOND_NS) return `${nanoseconds / 1_000}\u00b5s`;
  return `${nanoseconds / MILLISECOND_NS}ms`;
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
    if (total > INT64_LIMIT) throw invalid(text);
  }
  const negative = text.startsWith('-');
  if (total === INT64_LIMIT && !negative) throw invalid(text);
  return negative ? -total : total;
}

function parsePart(text: string, whole: string, fraction: string, unit: string): bigint {
  if (unit === '') throw new InvalidOptionError(`time: missing unit in duration ${quote(text)}`);
  const scale = Object.hasOwn(UNITS, unit) ? UNITS[unit]! : undefined;
  if (scale === undefined) {
    throw new InvalidOptionError(`time: unknown unit ${quote(unit)} in duration ${quote(text)}`);
  }
  const digits = whole.replace(/^0+/, '');
  if (digits.length > MAX_INTEGER_DIGITS) throw invalid(text);
  return BigInt(digits) * BigInt(scale) + BigInt(fractionOf(scale, fraction));
}

/** In floating point and with as many digits as Go uses, so that the last nanosecond is equal. */
function fractionOf(scale: number, fraction: string): number {
  const significant = fraction.replace(/^0+/, '');
  const fitting =
    BigInt(significant.slice(0, MAX_INTEGER_DIGITS)) <= INT64_LIMIT ? MAX_INTEGER_DIGITS : MAX_INTEGER_DIGITS - 1;
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
