import { EverySchedule } from '../cron/every.js';
import type { Schedule } from '../cron/schedule.js';
import type { MissedPolicy } from './options.js';

/** Milliseconds after which a planned time counts as missed: a failover of Redis or a restart is over by then. */
export const MISSED_AFTER = 30_000;

const HOUR = 3_600_000;

/**
 * The planned times to make up for, oldest first: later than `mark`, not later than `now`, both in milliseconds. In ordinary
 * operation it is the one that has just come.
 */
export function dueTimes(schedule: Schedule, mark: number, now: number, missed: MissedPolicy): number[] {
  if (missed === 'one') return latest(schedule, mark, now, 1);
  if (missed === 'skip')
    return latest(schedule, Math.max(mark, alignedBefore(schedule, mark, now - MISSED_AFTER)), now, 1);
  return latest(schedule, mark, now, missed.all);
}

/** The last `most` planned times. Looks back no further than it must: a mark may be months old. */
function latest(schedule: Schedule, mark: number, now: number, most: number): number[] {
  for (let window = HOUR; ; window *= 4) {
    const from = Math.max(mark, alignedBefore(schedule, mark, now - window));
    const found = between(schedule, from, now);
    if (found.length >= most || from === mark) return found.slice(-most);
  }
}

function between(schedule: Schedule, from: number, to: number): number[] {
  const found: number[] = [];
  for (let at = schedule.next(from); at !== undefined && at <= to; at = schedule.next(at)) found.push(at);
  return found;
}

/** A time to begin the search at. That of `@every` must stay a number of delays from the mark. */
function alignedBefore(schedule: Schedule, mark: number, time: number): number {
  if (!(schedule instanceof EverySchedule)) return time;
  return mark + Math.floor((time - mark) / schedule.delay) * schedule.delay;
}
