import type { Daily } from '../api/types.js';

const MAX_DAYS = 30;
/** At least this many days are shown, also when nothing was done on the first of them. */
const MIN_DAYS = 10;

/** Sums the days of all queues; oldest first. */
export function sumDays(stats: Readonly<Record<string, readonly Daily[]>>): Daily[] {
  const days = new Map<string, Daily>();
  for (const { date, processed, failed } of Object.values(stats).flat()) {
    const day = days.get(date) ?? { queue: '', date, processed: 0, failed: 0 };
    days.set(date, { ...day, processed: day.processed + processed, failed: day.failed + failed });
  }
  const all = [...days.values()].sort((a, b) => (a.date < b.date ? -1 : 1)).slice(-MAX_DAYS);
  const first = all.findIndex(({ processed }) => processed > 0);
  return all.slice(Math.max(0, Math.min(first < 0 ? all.length : first, all.length - MIN_DAYS)));
}
