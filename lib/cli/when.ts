import { formatGoDuration, nanosecondsOf } from '../wire/go-duration.js';

/** Times as tables show them. Milliseconds are for machines: they are in `--json`. */
export const formatTime = (time: Date | undefined): string =>
  time === undefined ? '' : time.toISOString().replace(/\.\d+Z$/, 'Z');

/** `in 1h0m5s`, `3m2s ago`, `now`; empty for no time. */
export function formatDistance(time: Date | undefined, now: number): string {
  if (time === undefined) return '';
  const seconds = Math.round((time.getTime() - now) / 1000);
  if (seconds === 0) return 'now';
  return seconds > 0 ? `in ${formatSeconds(seconds)}` : `${formatSeconds(-seconds)} ago`;
}

/** The time and how far away it is. */
export const formatMoment = (time: Date | undefined, now: number): string =>
  time === undefined ? '' : `${formatTime(time)} (${formatDistance(time, now)})`;

const formatSeconds = (seconds: number): string => formatDuration(seconds * 1000);

/** As Go writes it. */
export const formatDuration = (milliseconds: number): string => formatGoDuration(nanosecondsOf(milliseconds));
