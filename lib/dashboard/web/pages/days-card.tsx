import type { Daily } from '../api/types.js';
import { replaceQuery, useRoute } from '../state/router.js';
import { Days } from '../ui/days.js';
import { sumDays } from './sum-days.js';

/** asynq keeps the counters of 90 days. */
const RANGES = [7, 30, 90] as const;

/** How many days the address asks for. */
export function useDays(): number {
  const { query } = useRoute();
  return RANGES.find((days) => query['days'] === String(days)) ?? 30;
}

function Choice({ chosen }: { chosen: number }) {
  const { query } = useRoute();
  return (
    <div class="segments" role="group" aria-label="Days">
      {RANGES.map((days) => (
        <button
          key={days}
          type="button"
          aria-pressed={days === chosen}
          aria-label={`${days} days`}
          onClick={() => replaceQuery({ ...query, days: String(days) })}
        >
          {days}
        </button>
      ))}
    </div>
  );
}

/** The stored counters of days, of one queue or of several together. */
export function DaysCard({ stats }: { stats: Readonly<Record<string, readonly Daily[]>> }) {
  const chosen = useDays();
  const days = sumDays(stats, chosen);
  if (days.length === 0) return null;
  return <Days title={`Last ${days.length} days`} days={days} choice={<Choice chosen={chosen} />} />;
}
