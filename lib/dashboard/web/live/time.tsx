import { clockDuration, dateTime, instant, relative } from '../text/format.js';
import { useNow } from './clock.js';

interface TimeProps {
  /** RFC 3339, or one of the forms in which asynq writes "none". */
  at: string | null | undefined;
  /** Shown for none. */
  none?: string;
}

/** `3m 20s ago`, with the date as title; updates itself. */
export function Ago({ at, none = '–' }: TimeProps) {
  const now = useNow();
  const time = instant(at);
  if (time === undefined) return <span class="faint">{none}</span>;
  return (
    <time dateTime={new Date(time).toISOString()} title={dateTime(time)}>
      {relative(time, now)}
    </time>
  );
}

/** `2026-11-21 11:05:41 · 3m 20s ago` */
export function When({ at, none = '–' }: TimeProps) {
  const now = useNow();
  const time = instant(at);
  if (time === undefined) return <span class="faint">{none}</span>;
  return (
    <time dateTime={new Date(time).toISOString()}>
      {dateTime(time)} <span class="faint">{relative(time, now)}</span>
    </time>
  );
}

/** How long something has been running. */
export function Elapsed({ since }: { since: string | null | undefined }) {
  const now = useNow();
  const time = instant(since);
  return <span class="number">{time === undefined ? '–' : clockDuration(Math.max(0, now - time) / 1000)}</span>;
}
