import type { Clock, ClockTimer } from '../../clock.js';
import type { ActiveTask } from './active-task.js';

/** How long a task whose server has died waits for others to end here. */
const PATIENCE_MS = 30_000;
/** How long the server stays quiet for it once it runs. */
const QUIET_MS = 30_000;
/** After one crash it runs beside a tenth of what the server usually runs. */
const FEWER = 10;

export interface IsolationOptions {
  readonly clock: Clock;
  /** How many slots it has, and how many are taken. */
  readonly server: { readonly concurrency: number; readonly running: number };
  /** There may be room for further tasks. */
  readonly onRoom: () => void;
}

interface Isolated {
  /** How many others may run beside it. */
  readonly others: number;
  /** Of one that waits. */
  readonly begin?: () => void;
  readonly timer: ClockTimer;
}

/**
 * Tasks whose server has died while they ran: after one crash few others run beside such a task, after two none, so that a task that
 * kills servers takes no others with it, and those that died with it are not blamed. It waits for room, and while it waits and begins,
 * the server claims no more. Both are bounded in time.
 */
export class Isolation {
  private readonly isolated = new Map<ActiveTask, Isolated>();
  private waiting = 0;

  constructor(private readonly options: IsolationOptions) {}

  /** How many slots there are now, of so many. */
  slots(concurrency: number): number {
    return this.isolated.size === 0 ? concurrency : Math.min(concurrency, 1 + this.fewest(concurrency));
  }

  /** Calls `begin` at once, or when there are few others. @param crashes of the task so far */
  add(task: ActiveTask, crashes: number, begin: () => void): void {
    const { clock, server } = this.options;
    const others = crashes === 1 ? Math.max(1, Math.floor(server.concurrency / FEWER)) : 0;
    const timer = clock.after(PATIENCE_MS, () => this.begin(task));
    this.isolated.set(task, { others, begin, timer });
    this.waiting += 1;
    this.look();
  }

  get isIdle(): boolean {
    return this.isolated.size === 0;
  }

  /** Returns whether the task waited; now it does not begin. */
  cancel(task: ActiveTask): boolean {
    const waits = this.isolated.get(task)?.begin !== undefined;
    if (waits) this.remove(task);
    return waits;
  }

  /** The attempt is over. */
  remove(task: ActiveTask): void {
    const entry = this.isolated.get(task);
    if (!entry) return;
    entry.timer.cancel();
    if (entry.begin) this.waiting -= 1;
    this.isolated.delete(task);
  }

  /** Others may have ended. */
  look(): void {
    for (const [task, { begin, others }] of Array.from(this.isolated)) {
      if (!begin) continue;
      const { concurrency, running } = this.options.server;
      if (running - this.waiting <= Math.min(others, this.fewest(concurrency, true))) this.begin(task);
    }
  }

  close(): void {
    for (const task of this.isolated.keys()) this.remove(task);
  }

  /** @param begun only those that run */
  private fewest(concurrency: number, begun = false): number {
    let fewest = concurrency;
    for (const { others, begin } of this.isolated.values()) if (!begun || !begin) fewest = Math.min(fewest, others);
    return fewest;
  }

  private begin(task: ActiveTask): void {
    const { begin, others, timer } = this.isolated.get(task)!;
    timer.cancel();
    this.waiting -= 1;
    const quiet = this.options.clock.after(QUIET_MS, () => {
      this.remove(task);
      this.look();
      this.options.onRoom();
    });
    this.isolated.set(task, { others, timer: quiet });
    begin!();
  }
}
