import { floorSeconds } from '../../clock.js';
import { utcDay } from '../../wire/keys.js';

const COUNTER_DAYS = 90;
const DAY_SECONDS = 86_400;

interface Daily {
  count: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** One of the two statistics of a queue: in all, and by UTC day for 90 days (wire-protocol section 1.4). */
export class Counter {
  total = 0;
  private readonly days = new Map<string, Daily>();

  /** @param now milliseconds since the epoch */
  add(count: number, now: number): void {
    if (count === 0) return;
    this.total += count;
    const day = utcDay(now);
    const daily = this.living(day, now);
    if (daily) daily.count += count;
    else this.days.set(day, { count, expiresAt: floorSeconds(now) + COUNTER_DAYS * DAY_SECONDS });
  }

  /** The counts that have not expired, by day. */
  byDay(now: number): Record<string, number> {
    const days = [...this.days.keys()].sort().filter((day) => this.living(day, now));
    return Object.fromEntries(days.map((day) => [day, this.days.get(day)?.count ?? 0]));
  }

  private living(day: string, now: number): Daily | undefined {
    const daily = this.days.get(day);
    return daily && daily.expiresAt * 1000 > now ? daily : undefined;
  }
}
