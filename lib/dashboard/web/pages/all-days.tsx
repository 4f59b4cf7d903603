import { api } from '../api/endpoints.js';
import type { Resource } from '../state/resource.js';
import { useResource } from '../state/resource.js';
import type { Daily } from '../api/types.js';
import { Failure } from '../ui/placeholder.js';
import { DaysCard } from './days-card.js';

type AllStats = { stats: Record<string, Daily[]> };

/** The stored counters of all queues, day by day. */
export const useAllDays = (): Resource<AllStats> =>
  useResource('queue-stats', (signal) => api.queueStats(signal), { every: 60_000 });

export function AllDays({ days: { data, error, reload } }: { days: Resource<AllStats> }) {
  if (!data) return error ? <Failure error={error} retry={reload} /> : null;
  return <DaysCard stats={data.stats} />;
}
