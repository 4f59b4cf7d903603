import { MIN_COST_RETRY_MS, SAVED_ROOM_MS, type TakenCosts } from '../limiting.js';

/** A window has this many parts; the oldest counts whole. */
const PARTS = 40;

/** How many tasks were started lately, for a limit per window. */
export class Starts {
  private readonly part: number;
  private readonly counts = new Map<number, number>();
  /** The cost for which room is saved, and when there is some, in milliseconds since the epoch. */
  private saving: { readonly cost: number; readonly opensAt: number } | undefined;

  /** @param window milliseconds */
  constructor(window: number) {
    this.part = Math.ceil(window / PARTS);
  }

  add(amount: number, now: number): void {
    if (amount === 0) return;
    const at = this.partAt(now);
    for (const part of this.counts.keys()) if (part < at - PARTS) this.counts.delete(part);
    this.counts.set(at, (this.counts.get(at) ?? 0) + amount);
  }

  /** Starts that still count. */
  count(now: number): number {
    return this.counting(now).reduce((sum, [, amount]) => sum + amount, 0);
  }

  /** Milliseconds until fewer count. */
  untilFewer(now: number): number {
    const oldest = Math.min(this.partAt(now), ...this.counting(now).map(([part]) => part));
    return (oldest + PARTS + 1) * this.part - Math.floor(now);
  }

  /** See LimitingRole.takeCosts. */
  take(costs: readonly number[], max: number, now: number): TakenCosts {
    const time = Math.floor(now);
    const left = Math.max(0, max - this.count(now));
    let saving = this.saving && time > this.saving.opensAt + SAVED_ROOM_MS ? undefined : this.saving;
    let granted = 0;
    let sum = 0;
    for (const cost of costs) {
      if (sum + cost > left || (saving && cost < saving.cost)) break;
      granted += 1;
      sum += cost;
      saving = undefined;
    }
    this.add(sum, now);
    const refused = costs[granted];
    if (refused !== undefined && !(saving && refused < saving.cost)) {
      saving = { cost: refused, opensAt: this.openFor(max - refused, now) };
    }
    this.saving = saving;
    const part = this.partAt(now);
    if (refused === undefined) return { granted, retryIn: 0, part, least: 0 };
    return { granted, retryIn: Math.max(saving!.opensAt - time, MIN_COST_RETRY_MS), part, least: saving!.cost };
  }

  /** When at most so many count, in milliseconds since the epoch. */
  private openFor(most: number, now: number): number {
    const counting = this.counting(now).sort(([one], [other]) => one - other);
    let over = this.count(now) - most;
    let opens = this.partAt(now);
    for (const [part, amount] of counting) {
      if (over <= 0) break;
      opens = part;
      over -= amount;
    }
    return (opens + PARTS + 1) * this.part;
  }

  /** What counts in a part, if it still counts, no longer does. */
  takeBack(part: number, amount: number): void {
    const count = this.counts.get(part);
    if (count !== undefined) this.counts.set(part, Math.max(0, count - amount));
  }

  private counting(now: number): [number, number][] {
    const first = this.partAt(now) - PARTS;
    return [...this.counts].filter(([part]) => part >= first);
  }

  private partAt(now: number): number {
    return Math.floor(Math.floor(now) / this.part);
  }
}
