import type { Clock } from '../clock.js';

interface Entry {
  readonly period: number;
  readonly reply: Promise<unknown>;
  /** Whether it is still on its way. */
  pending: boolean;
  size: number;
}

/** @typeParam Kept what all replies are */
export interface CacheLimits<Kept> {
  readonly maxEntries: number;
  /** Of all replies together, in what `sizeOf` counts. */
  readonly maxSize: number;
  readonly sizeOf: (reply: Kept) => number;
}

/**
 * Replies that are used again. Time is divided into periods of `refresh`, and a reply lasts for the period it was asked for in: who asks
 * once in every period gets news each time, and ten who do cost as much as one. Whoever asks while the reply is on its way waits for it, however
 * long that takes: when Redis is slow, those who look must not make it slower.
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

  /** @param keep `false`: the reply is for those only who ask while it is on its way */
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
      // A failure is nothing to keep.
      () => this.settle(key, entry, undefined),
    );
    return reply;
  }

  /** The reply of this period, or the one on its way; `undefined` when nobody has asked. */
  fresh<T extends Kept>(key: string): Promise<T> | undefined {
    const known = this.kept.get(key);
    return known && (known.pending || known.period === this.period()) ? (known.reply as Promise<T>) : undefined;
  }

  /** Something was changed: whoever changed it is to see it. */
  clear(): void {
    this.kept.clear();
    this.size = 0;
  }

  private period(): number {
    return Math.floor(this.clock.now() / this.refresh);
  }

  /** @param size `undefined`: not to be kept */
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

  /** The oldest first. What is on its way stays within the number of entries only. */
  private trim(period: number): void {
    const { maxEntries, maxSize } = this.limits;
    for (const [key, entry] of this.kept) {
      const over = this.kept.size > maxEntries || (this.size > maxSize && !entry.pending);
      if (over || (entry.period !== period && !entry.pending)) this.drop(key);
      else if (entry.period === period && this.size <= maxSize) break;
    }
  }
}
