import { formatGoDuration, nanosecondsOf } from '../wire/go-duration.js';

/** A time in tables, without milliseconds; `--json` has them. */
export const formatTime = (time: Date | undefined): string =>
  time === undefined ? '' : time.toISOString().replace(/\.\d+Z$/, 'Z');

/** `in 1h0m5s`, `3m2s ago`, `now`; empty for no time. */
export function formatDistance(time: Date | undefined, now: number): string {
  if (time === undefined) return '';
  const seconds = Math.round((time.getTime() - now) / 1000);
  if (seconds === 0) return 'now';
  return seconds > 0 ? `in ${formatSeconds(seconds)}` : `${formatSeconds(-seconds)} ago`;
}

/** The time and its distance from now. */
export const formatMoment = (time: Date | undefined, now: number): string =>
  time === undefined ? '' : `${formatTime(time)} (${formatDistance(time, now)})`;

const formatSeconds = (seconds: number): string => formatDuration(seconds * 1000);

/** A duration in Go's notation. */
export const formatDuration = (milliseconds: number): string => formatGoDuration(nanosecondsOf(milliseconds));
