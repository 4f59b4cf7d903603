import { isUtf8 } from 'node:buffer';
import { plain } from '../text.js';

/** `1,234,567` */
export const formatCount = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ',');

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Short, two units at most: `850ms`, `12s`, `3m07s`, `2h05m`, `4d3h`. @param milliseconds at least 0 */
export function formatSpan(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  if (whole === 0) return '0s';
  if (whole < SECOND) return `${whole}ms`;
  if (whole < MINUTE) return `${Math.floor(whole / SECOND)}s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)}m${two((whole % MINUTE) / SECOND)}s`;
  if (whole < DAY) return `${Math.floor(whole / HOUR)}h${two((whole % HOUR) / MINUTE)}m`;
  return `${Math.floor(whole / DAY)}d${Math.floor((whole % DAY) / HOUR)}h`;
}

const two = (number: number): string => String(Math.floor(number)).padStart(2, '0');

/** `in 3m07s`, `4s ago`, `now`; empty for no time. */
export function formatDistance(time: Date | undefined, now: number): string {
  if (time === undefined) return '';
  const seconds = Math.round((time.getTime() - now) / SECOND);
  if (seconds === 0) return 'now';
  const span = formatSpan(Math.abs(seconds) * SECOND);
  return seconds > 0 ? `in ${span}` : `${span} ago`;
}

/** Bytes that are looked at for one cell of a table. */
const MAX_EXCERPT_BYTES = 400;

/** The beginning of a payload on one line: text with what cannot be printed escaped, or how many other bytes there are. */
export function excerpt(bytes: Buffer | undefined): string {
  if (bytes === undefined || bytes.length === 0) return '';
  const text = textOf(bytes, MAX_EXCERPT_BYTES);
  if (text === undefined) return `(${formatCount(bytes.length)} bytes)`;
  return plain(text.replace(/\s+/g, ' ').trim()) + (bytes.length > MAX_EXCERPT_BYTES ? '…' : '');
}

/** The first bytes as text, without half a character at the end; `undefined` when they are none. */
export function textOf(bytes: Buffer, most: number): string | undefined {
  let end = Math.min(bytes.length, most);
  // The continuation bytes of a character that is cut off, and then its first.
  while (end < bytes.length && end > most - 4 && (bytes[end]! & 0xc0) === 0x80) end--;
  const first = bytes.subarray(0, end);
  return isUtf8(first) ? first.toString() : undefined;
}
