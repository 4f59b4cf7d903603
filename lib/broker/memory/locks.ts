export interface Lock {
  readonly owner: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** The locks of unique tasks by key (wire-protocol section 3.3). Times are milliseconds since the epoch. */
export class Locks {
  private readonly locks = new Map<string, Lock>();
  private sweepAt = 1024;

  /** How many are remembered, expired ones among them. */
  get size(): number {
    return this.locks.size;
  }

  isHeld(key: string, now: number): boolean {
    return this.living(key, now) !== undefined;
  }

  /** The task that holds it. */
  holder(key: string, now: number): string | undefined {
    return this.living(key, now)?.owner;
  }

  /** @param ttl seconds */
  take(key: string, owner: string, ttl: number, now: number): void {
    if (this.locks.size >= this.sweepAt) this.sweep(now);
    this.locks.set(key, { owner, expiresAt: now + ttl * 1000 });
  }

  /** Extends the lock by some seconds, if this task holds it. */
  extend(key: string, owner: string, seconds: number, now: number): void {
    const lock = this.living(key, now);
    if (lock?.owner === owner) this.locks.set(key, { owner, expiresAt: lock.expiresAt + seconds * 1000 });
  }

  /** Releases the lock, if this task still holds it. */
  release(key: string, owner: string, now: number): void {
    if (this.living(key, now)?.owner === owner) this.locks.delete(key);
  }

  /** The same, so that it can be undone by {@link restore}. */
  giveUp(key: string, owner: string, now: number): { key: string; lock: Lock } | undefined {
    const lock = this.living(key, now);
    if (lock?.owner !== owner) return undefined;
    this.locks.delete(key);
    return { key, lock };
  }

  restore(key: string, lock: Lock): void {
    this.locks.set(key, lock);
  }

  /** Every lock that is held, in the order of the keys; `expiresIn` in milliseconds. */
  held(now: number): Record<string, { owner: string; expiresIn: number }> {
    const keys = [...this.locks.keys()].sort().filter((key) => this.isHeld(key, now));
    return Object.fromEntries(
      keys.map((key) => {
        const { owner = '', expiresAt = now } = this.locks.get(key) ?? {};
        return [key, { owner, expiresIn: expiresAt - now }];
      }),
    );
  }

  private living(key: string, now: number): Lock | undefined {
    const lock = this.locks.get(key);
    return lock && lock.expiresAt > now ? lock : undefined;
  }

  /**
   * Expired locks that nobody requests again would pile up. The threshold doubles, so that the
   * sweep costs nothing on average.
   */
  private sweep(now: number): void {
    for (const [key, lock] of this.locks) if (lock.expiresAt <= now) this.locks.delete(key);
    this.sweepAt = Math.max(1024, this.locks.size * 2);
  }
}
