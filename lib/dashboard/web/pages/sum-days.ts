import type { Daily } from '../api/types.js';

const DAY_MS = 86_400_000;
/** At least this many days are shown, also when nothing was done on the first of them. */
const MIN_DAYS = 10;

/** Sums the days of all queues; oldest first. @param most days */
export function sumDays(stats: Readonly<Record<string, readonly Daily[]>>, most = 30): Daily[] {
  const days = new Map<string, Daily>();
  for (const { date, processed, failed } of Object.values(stats).flat()) {
    const day = days.get(date) ?? { queue: '', date, processed: 0, failed: 0 };
    days.set(date, { ...day, processed: day.processed + processed, failed: day.failed + failed });
  }
  const all = [...days.values()].sort((a, b) => (a.date < b.date ? -1 : 1)).slice(-most);
  const first = all.findIndex(({ processed }) => processed > 0);
  return all.slice(Math.max(0, Math.min(first < 0 ? all.length : first, all.length - MIN_DAYS)));
}

/** Tasks per second today and yesterday; undefined when nothing was done on these days. @param now milliseconds */
export function meanRates(days: readonly Daily[], now: number): { processed: number; failed: number } | undefined {
  const dateOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
  const dates = [dateOf(now), dateOf(now - DAY_MS)];
  const counted = days.filter(({ date }) => dates.includes(date));
  const seconds = ((now % DAY_MS) + DAY_MS) / 1000;
  const sum = (of: 'processed' | 'failed'): number => counted.reduce((total, day) => total + day[of], 0);
  const processed = sum('processed');
  return processed === 0 ? undefined : { processed: processed / seconds, failed: sum('failed') / seconds };
}
