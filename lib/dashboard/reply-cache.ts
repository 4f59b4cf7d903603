import type { Clock } from '../clock.js';

interface Entry {
  readonly period: number;
  readonly reply: Promise<unknown>;
  /** Whether the reply has not arrived yet. */
  pending: boolean;
  size: number;
}

/** @typeParam Kept the type of all replies */
export interface CacheLimits<Kept> {
  readonly maxEntries: number;
  /** Limits the sum of `sizeOf` over all replies. */
  readonly maxSize: number;
  readonly sizeOf: (reply: Kept) => number;
}

/**
 * Reuses replies. Time is divided into periods of `refresh`, and a reply is valid in the period of
 * its request: who polls once per period gets new data each time, and ten clients cost as much as
 * one. Requests during a pending reply share it, however long it takes: clients must not slow down
 * a slow Redis.
 */
export class ReplyCache<Kept> {
  private readonly kept = new Map<string, Entry>();
  private size = 0;

  /** @param refresh milliseconds */
  constructor(
    private readonly clock: Clock,
    private readonly refresh: number,
    private readonly limits: CacheLimits<Kept>,
  ) {}

  /** @param keep `false`: the reply is only shared while it is pending */
  get<T extends Kept>(key: string, make: () => Promise<T>, keep = true): Promise<T> {
    const known = this.fresh<T>(key);
    if (known) return known;
    const period = this.period();
    const reply = make();
    const entry: Entry = { period, reply, pending: true, size: 0 };
    this.drop(key);
    this.kept.set(key, entry);
    this.trim(period);
    reply.then(
      (value) => this.settle(key, entry, keep ? this.limits.sizeOf(value) : undefined),
      // Failures are not kept.
      () => this.settle(key, entry, undefined),
    );
    return reply;
  }

  /** The reply of this period, or the pending one; `undefined` if there is none. */
  fresh<T extends Kept>(key: string): Promise<T> | undefined {
    const known = this.kept.get(key);
    return known && (known.pending || known.period === this.period()) ? (known.reply as Promise<T>) : undefined;
  }

  /** Forgets all replies, so that a change is visible at once. */
  clear(): void {
    this.kept.clear();
    this.size = 0;
  }

  private period(): number {
    return Math.floor(this.clock.now() / this.refresh);
  }

  /** @param size `undefined`: do not keep the reply */
  private settle(key: string, entry: Entry, size: number | undefined): void {
    entry.pending = false;
    if (this.kept.get(key) !== entry) return;
    if (size === undefined || size > this.limits.maxSize) return this.drop(key);
    entry.size = size;
    this.size += size;
    this.trim(this.period());
  }

  private drop(key: string): void {
    this.size -= this.kept.get(key)?.size ?? 0;
    this.kept.delete(key);
  }

  /** The oldest first. Pending replies count for `maxEntries` only. */
  private trim(period: number): void {
    const { maxEntries, maxSize } = this.limits;
    for (const [key, entry] of this.kept) {
      const over = this.kept.size > maxEntries || (this.size > maxSize && !entry.pending);
      if (over || (entry.period !== period && !entry.pending)) this.drop(key);
      else if (entry.period === period && this.size <= maxSize) break;
    }
  }
}
