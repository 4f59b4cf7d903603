/** Values that expire. Times are milliseconds since the epoch. */
export class Expiring<T> {
  private readonly entries = new Map<string, { readonly value: T; readonly expiresAt: number }>();
  private sweepAt = 1024;

  get(key: string, now: number): T | undefined {
    const entry = this.entries.get(key);
    return entry && entry.expiresAt > now ? entry.value : undefined;
  }

  /** Until when the value is kept; 0 when there is none. */
  expiresAt(key: string): number {
    return this.entries.get(key)?.expiresAt ?? 0;
  }

  set(key: string, value: T, expiresAt: number, now: number): void {
    if (this.entries.size >= this.sweepAt) this.sweep(now);
    this.entries.set(key, { value, expiresAt });
  }

  delete(key: string): void {
    this.entries.delete(key);
  }

  /** The threshold doubles, so that the sweep costs nothing on average. */
  private sweep(now: number): void {
    for (const [key, { expiresAt }] of this.entries) if (expiresAt <= now) this.entries.delete(key);
    this.sweepAt = Math.max(1024, this.entries.size * 2);
  }
}
