import { MIN_COST_RETRY_MS, SAVED_ROOM_MS, type StartLimit, type TakenCosts } from '../limiting.js';

/** Up to so many starts have times of their own; of more, those of a 40th of the window share the last of its times. */
const PARTS = 40;

/** How many tasks were started lately, for a limit per window: by the time at which each starts at the latest. */
export class Starts {
  private readonly counts = new Map<number, number>();
  /** The cost for which room is saved, and when there is some, in milliseconds since the epoch. */
  private saving: { readonly cost: number; readonly opensAt: number } | undefined;

  /** @param window milliseconds */
  constructor(private readonly window: number) {}

  /** Returns the time at which they count. */
  add(amount: number, now: number, { max, allowance = 0 }: Omit<StartLimit, 'window'>): number {
    for (const at of this.counts.keys()) if (!this.isCounting(at, now)) this.counts.delete(at);
    const part = max > PARTS ? Math.ceil(this.window / PARTS) : 1;
    const at = Math.ceil((Math.floor(now) + allowance) / part) * part;
    if (amount > 0) this.counts.set(at, (this.counts.get(at) ?? 0) + amount);
    return at;
  }

  /** Starts that still count. */
  count(now: number): number {
    return this.counting(now).reduce((sum, [, amount]) => sum + amount, 0);
  }

  /** Milliseconds until fewer count. */
  untilFewer(now: number): number {
    const times = this.counting(now).flatMap(([at, amount]) => (amount > 0 ? [at] : []));
    return (times.length > 0 ? Math.min(...times) : Math.floor(now)) + this.window - Math.floor(now);
  }

  /** See LimitingRole.takeCosts. */
  take(costs: readonly number[], limit: StartLimit, now: number): TakenCosts {
    const time = Math.floor(now);
    const left = Math.max(0, limit.max - this.count(now));
    let saving = this.saving && time > this.saving.opensAt + SAVED_ROOM_MS ? undefined : this.saving;
    let granted = 0;
    let sum = 0;
    for (const cost of costs) {
      if (sum + cost > left || (saving && cost < saving.cost)) break;
      granted += 1;
      sum += cost;
      saving = undefined;
    }
    const countedAt = this.add(sum, now, limit);
    const refused = costs[granted];
    if (refused !== undefined && !(saving && refused < saving.cost)) {
      saving = { cost: refused, opensAt: this.openFor(limit.max - refused, now) };
    }
    this.saving = saving;
    if (refused === undefined) return { granted, retryIn: 0, countedAt, least: 0 };
    return { granted, retryIn: Math.max(saving!.opensAt - time, MIN_COST_RETRY_MS), countedAt, least: saving!.cost };
  }

  /** When at most so many count, in milliseconds since the epoch. */
  private openFor(most: number, now: number): number {
    const counting = this.counting(now).sort(([one], [other]) => one - other);
    let over = this.count(now) - most;
    let last = Math.floor(now) - this.window;
    for (const [at, amount] of counting) {
      if (over <= 0) break;
      last = at;
      over -= amount;
    }
    return last + this.window;
  }

  /** What counts at a time, if it still counts, no longer does. */
  takeBack(at: number, amount: number): void {
    const count = this.counts.get(at);
    if (count !== undefined) this.counts.set(at, Math.max(0, count - amount));
  }

  /**
   * A start that was counted for `from` at the earliest does not take place: the first one counted from then on no longer counts. Not
   * when half the window has passed: the count may be gone.
   */
  giveBack(from: number, now: number): void {
    if (Math.floor(now) >= from + this.window / 2) return;
    const times = this.counting(now).flatMap(([at, amount]) => (at >= from && amount > 0 ? [at] : []));
    if (times.length > 0) this.takeBack(Math.min(...times), 1);
  }

  private counting(now: number): [number, number][] {
    return [...this.counts].filter(([at]) => this.isCounting(at, now));
  }

  private isCounting(at: number, now: number): boolean {
    return at + this.window > Math.floor(now);
  }
}
