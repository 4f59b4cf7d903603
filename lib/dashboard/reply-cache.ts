import type { Clock } from '../clock.js';

/** More would only be many different pages of lists, each asked for once. */
const MOST_KEPT = 200;

interface Entry {
  readonly period: number;
  readonly answer: Promise<unknown>;
  /** Whether it is still on its way. */
  awaited: boolean;
}

/**
 * Answers that are used again. Time is divided into periods of `refresh`, and an answer lasts for the period it was asked for in: who asks
 * once in every period gets news each time, and ten who do cost as much as one. Whoever asks while the answer is on its way waits for it, however
 * long that takes: when Redis is slow, those who look must not make it slower.
 */
export class ReplyCache {
  private readonly kept = new Map<string, Entry>();

  /** @param refresh milliseconds */
  constructor(
    private readonly clock: Clock,
    private readonly refresh: number,
  ) {}

  get<T>(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.fresh<T>(key);
    if (known) return known;
    const period = this.period();
    const answer = make();
    const entry: Entry = { period, answer, awaited: true };
    this.kept.delete(key);
    this.kept.set(key, entry);
    this.trim(period);
    answer.then(
      () => (entry.awaited = false),
      // A failure is nothing to keep.
      () => this.kept.get(key) === entry && this.kept.delete(key),
    );
    return answer;
  }

  /** The answer of this period, or the one on its way; `undefined` when nobody has asked. */
  fresh<T>(key: string): Promise<T> | undefined {
    const known = this.kept.get(key);
    return known && (known.awaited || known.period === this.period()) ? (known.answer as Promise<T>) : undefined;
  }

  /** Something was changed: whoever changed it is to see it. */
  clear(): void {
    this.kept.clear();
  }

  private period(): number {
    return Math.floor(this.clock.now() / this.refresh);
  }

  private trim(period: number): void {
    for (const [key, entry] of this.kept) {
      const over = this.kept.size > MOST_KEPT;
      if (over || (entry.period !== period && !entry.awaited)) this.kept.delete(key);
      else if (entry.period === period) break;
    }
  }
}
