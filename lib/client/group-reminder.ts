import type { AggregationBroker } from '../broker/aggregation.js';
import type { Clock, ClockTimer } from '../clock.js';

/** Milliseconds a server has to move a task to its group before it is looked at: Go's look every 5 s. */
const PATIENCE = 6_000;
/** Milliseconds between two looks at a queue at least. */
const EVERY = 30_000;

/**
 * Has groups listed that delayed tasks of this process have joined. Servers of ours do it at once; where only Go's serve a queue,
 * nobody else does.
 */
export class GroupReminder {
  /** When to look at a queue, in milliseconds since the epoch. */
  private readonly looks = new Map<string, number>();
  private timer: ClockTimer | undefined;
  private closed = false;

  constructor(private readonly broker: Pick<AggregationBroker, 'listDelayedGroups'> & { readonly clock: Clock }) {}

  /** @param time when a task joins its group, in Unix seconds */
  note(queue: string, time: number): void {
    if (this.remember(queue, time * 1000 + PATIENCE)) this.arm();
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  /** Answers whether that is earlier than what was known. */
  private remember(queue: string, at: number): boolean {
    if (at >= (this.looks.get(queue) ?? Infinity)) return false;
    this.looks.set(queue, at);
    return true;
  }

  private arm(): void {
    this.timer?.cancel();
    if (this.closed || this.looks.size === 0) return;
    const next = Math.min(...this.looks.values());
    this.timer = this.broker.clock.after(next - this.broker.clock.now(), () => void this.lookAround());
  }

  private async lookAround(): Promise<void> {
    const now = this.broker.clock.now();
    const due = [...this.looks].filter(([, at]) => at <= now).map(([queue]) => queue);
    for (const queue of due) this.looks.delete(queue); // what is noted from here on may not be seen
    await Promise.all(due.map((queue) => this.look(queue, now + EVERY)));
    this.arm();
  }

  /** @param least when to look again at the earliest, also when Redis is away */
  private async look(queue: string, least: number): Promise<void> {
    const next = await this.broker.listDelayedGroups(queue).catch(() => 0);
    if (next !== undefined) this.remember(queue, Math.max(next * 1000 + PATIENCE, least));
  }
}
