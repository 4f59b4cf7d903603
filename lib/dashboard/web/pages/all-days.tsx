import { api } from '../api/endpoints.js';
import type { Daily } from '../api/types.js';
import { useResource } from '../app/resource.js';
import { Days } from '../ui/days.js';

const SHOWN = 30;

/** Sums the days of all queues; oldest first. */
export function sumDays(stats: Readonly<Record<string, readonly Daily[]>>): Daily[] {
  const days = new Map<string, Daily>();
  for (const { date, processed, failed } of Object.values(stats).flat()) {
    const day = days.get(date) ?? { queue: '', date, processed: 0, failed: 0 };
    days.set(date, { ...day, processed: day.processed + processed, failed: day.failed + failed });
  }
  return [...days.values()].sort((a, b) => (a.date < b.date ? -1 : 1)).slice(-SHOWN);
}

export function AllDays() {
  const { data } = useResource('queue-stats', (signal) => api.queueStats(signal), { every: 60_000 });
  const days = data ? sumDays(data.stats) : [];
  return days.length > 0 ? <Days title={`Last ${days.length} days`} days={days} /> : null;
}
