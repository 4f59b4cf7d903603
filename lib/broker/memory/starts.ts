/** A window has this many parts; the oldest counts whole. */
const PARTS = 16;

/** How many tasks were started lately, for a limit per window. */
export class Starts {
  private readonly part: number;
  private readonly counts = new Map<number, number>();

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

  private counting(now: number): [number, number][] {
    const first = this.partAt(now) - PARTS;
    return [...this.counts].filter(([part]) => part >= first);
  }

  private partAt(now: number): number {
    return Math.floor(Math.floor(now) / this.part);
  }
}
