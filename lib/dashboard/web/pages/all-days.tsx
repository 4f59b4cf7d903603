import { api } from '../api/endpoints.js';
import { useResource } from '../app/resource.js';
import { Days } from '../ui/days.js';
import { sumDays } from './sum-days.js';

export function AllDays() {
  const { data } = useResource('queue-stats', (signal) => api.queueStats(signal), { every: 60_000 });
  const days = data ? sumDays(data.stats) : [];
  return days.length > 0 ? <Days title={`Last ${days.length} days`} days={days} /> : null;
}
