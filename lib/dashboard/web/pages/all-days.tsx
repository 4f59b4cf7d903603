import { api } from '../api/endpoints.js';
import { useResource } from '../state/resource.js';
import { Days } from '../ui/days.js';
import { Failure } from '../ui/placeholder.js';
import { sumDays } from './sum-days.js';

export function AllDays() {
  const { data, error, reload } = useResource('queue-stats', (signal) => api.queueStats(signal), { every: 60_000 });
  if (!data) return error ? <Failure error={error} retry={reload} /> : null;
  const days = sumDays(data.stats);
  return days.length > 0 ? <Days title={`Last ${days.length} days`} days={days} /> : null;
}
