import { isUtf8 } from 'node:buffer';
import { plain } from '../output/text.js';

/** `1,234,567` */
export const formatCount = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ',');

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A duration in at most two units: `850ms`, `12s`, `3m07s`, `2h05m`, `4d3h`. @param milliseconds at least 0 */
export function formatSpan(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  if (whole === 0) return '0s';
  if (whole < SECOND_MS) return `${whole}ms`;
  if (whole < MINUTE_MS) return `${Math.floor(whole / SECOND_MS)}s`;
  if (whole < HOUR_MS) return `${Math.floor(whole / MINUTE_MS)}m${two((whole % MINUTE_MS) / SECOND_MS)}s`;
  if (whole < DAY_MS) return `${Math.floor(whole / HOUR_MS)}h${two((whole % HOUR_MS) / MINUTE_MS)}m`;
  return `${Math.floor(whole / DAY_MS)}d${Math.floor((whole % DAY_MS) / HOUR_MS)}h`;
}

const two = (number: number): string => String(Math.floor(number)).padStart(2, '0');

/** `in 3m07s`, `4s ago`, `now`; empty for no time. */
export function formatDistance(time: Date | undefined, now: number): string {
  if (time === undefined) return '';
  const seconds = Math.round((time.getTime() - now) / SECOND_MS);
  if (seconds === 0) return 'now';
  const span = formatSpan(Math.abs(seconds) * SECOND_MS);
  return seconds > 0 ? `in ${span}` : `${span} ago`;
}

/** How many bytes of a payload a cell of a table shows. */
const MAX_EXCERPT_BYTES = 400;

/** The start of a payload on one line, with unprintable characters escaped; for bytes that are not text, their number. */
export function excerpt(bytes: Buffer | undefined): string {
  if (bytes === undefined || bytes.length === 0) return '';
  const text = textOf(bytes, MAX_EXCERPT_BYTES);
  if (text === undefined) return `(${formatCount(bytes.length)} bytes)`;
  return plain(text.replace(/\s+/g, ' ').trim()) + (bytes.length > MAX_EXCERPT_BYTES ? '…' : '');
}

/** The first bytes as text, without an incomplete character at the end; `undefined` if they are not text. */
export function textOf(bytes: Buffer, most: number): string | undefined {
  let end = Math.min(bytes.length, most);
  // Removes the continuation bytes of an incomplete character, then its first byte.
  while (end < bytes.length && end > most - 4 && (bytes[end]! & 0xc0) === 0x80) end--;
  const first = bytes.subarray(0, end);
  return isUtf8(first) ? first.toString() : undefined;
}
