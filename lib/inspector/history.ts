import type { Broker } from '../broker/broker.js';
import { InvalidOptionError } from '../errors.js';
import { requireInteger } from '../validation.js';
import { utcDay } from '../wire/keys.js';
import { requireQueue } from './known-queue.js';
import { type DailyStats, viewDay } from './views.js';

const DAY_MS = 86_400_000;
/** Daily counters are kept for 90 days, which can span 91 dates. */
const MAX_HISTORY_DAYS = 91;

/** The figures of today and the days before, newest first. @throws InvalidOptionError; QueueNotFoundError */
export async function readHistory(
  broker: Pick<Broker, 'inspection' | 'clock'>,
  queue: string,
  days: number,
): Promise<DailyStats[]> {
  requireInteger(days, 'days', InvalidOptionError, { least: 1, most: MAX_HISTORY_DAYS });
  await requireQueue(broker.inspection, queue);
  const now = broker.clock.now();
  const names = Array.from({ length: days }, (_, back) => utcDay(now - back * DAY_MS));
  return (await broker.inspection.countsOfDays(queue, names)).map((day) => viewDay(queue, day));
}
