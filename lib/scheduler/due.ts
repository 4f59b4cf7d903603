import { EverySchedule } from '../cron/every.js';
import type { Schedule } from '../cron/schedule.js';
import type { MissedPolicy } from './options.js';

/**
 * After this long a planned time counts as missed: a failover of Redis or a restart is over by
 * then.
 */
const MISSED_AFTER_MS = 30_000;

const HOUR_MS = 3_600_000;

/**
 * The planned times to fire, oldest first: after `handledUntil` and up to `now`, both in
 * milliseconds. In normal operation it is the one that is just due.
 */
export function dueTimes(schedule: Schedule, handledUntil: number, now: number, missed: MissedPolicy): number[] {
  if (missed === 'one') return latest(schedule, handledUntil, now, 1);
  if (missed !== 'skip') return latest(schedule, handledUntil, now, missed.all);
  const from = alignedBefore(schedule, handledUntil, now - MISSED_AFTER_MS);
  return latest(schedule, Math.max(handledUntil, from), now, 1);
}

/**
 * The last `limit` planned times. The search begins near `now`: `handledUntil` may be months ago.
 */
function latest(schedule: Schedule, handledUntil: number, now: number, limit: number): number[] {
  for (let window = HOUR_MS; ; window *= 4) {
    const from = Math.max(handledUntil, alignedBefore(schedule, handledUntil, now - window));
    const found = between(schedule, from, now);
    if (found.length >= limit || from === handledUntil) return found.slice(-limit);
  }
}

function between(schedule: Schedule, from: number, to: number): number[] {
  const found: number[] = [];
  for (let at = schedule.next(from); at !== undefined && at <= to; at = schedule.next(at)) found.push(at);
  return found;
}

/**
 * A time to begin the search at. For `@every` it is a whole number of delays after `handledUntil`.
 */
function alignedBefore(schedule: Schedule, handledUntil: number, time: number): number {
  if (!(schedule instanceof EverySchedule)) return time;
  return handledUntil + Math.floor((time - handledUntil) / schedule.delay) * schedule.delay;
}
