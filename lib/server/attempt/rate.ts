import type { TakenStarts } from '../../broker/limiting.js';
import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import { correctionsOf } from './charge.js';
import type { StartAllowance } from './start-allowance.js';
import type { LimiterDeps } from './waitlist.js';

/** Who counts starts. */
export interface RateUser {
  /** Whether tasks are known to wait for the rate. */
  readonly isWaiting: boolean;
  /** So many starts of this process no longer count. */
  startsEnded(count: number): void;
  report(error: unknown): void;
}

/** The rate of one scope: counts starts, or what tasks cost, and knows when there is room again. */
export class Rate {
  /** Whether tasks may cost something else than 1. */
  hasCosts = false;
  private opensAt = 0;
  /** Until then no task that costs less has a chance. */
  private leastCost = 0;
  /** Starts of this process that are over at some time, and then let as many tasks that wait start. */
  private counting = 0;

  constructor(
    private readonly scope: string,
    private readonly limits: ResolvedLimits,
    private readonly deps: Pick<LimiterDeps, 'broker' | 'clock'>,
    private readonly allowance: StartAllowance,
    private readonly user: RateUser,
  ) {}

  /**
   * Milliseconds until there is room again. Never as long as two windows: then the clock was
   * set back.
   */
  get opensIn(): number {
    const left = this.opensAt - this.deps.clock.now();
    return left > 2 * this.limits.window ? 0 : Math.max(0, left);
  }

  /** Whether tasks will be woken by a start that ends to count. */
  get hasSuccessors(): boolean {
    return this.counting > 0;
  }

  get hasSuccession(): boolean {
    return this.limits.rate > 0 && !this.hasCosts;
  }

  /** Room is saved for a task that costs more. */
  isSaving({ charge }: ActiveTask): boolean {
    return charge !== undefined && charge.cost > 0 && charge.cost < this.leastCost && this.opensIn > 0;
  }

  /** Counts the tasks that may start; returns them. */
  take(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    return this.hasCosts ? this.takeCosts(tasks) : this.takeStarts(tasks);
  }

  /** How many tasks may start, as far as is known: `Infinity` where nobody can tell. */
  async startsLeft(): Promise<number> {
    const { rate: max, window } = this.limits;
    if (!this.hasSuccession) return Infinity;
    const asked = this.deps.clock.now();
    try {
      const { left, retryIn } = await this.deps.broker.limiting.takeStarts(this.scope, { max, window }, 0);
      if (left === 0) this.opensAt = asked + retryIn;
      return left;
    } catch (error) {
      this.user.report(error);
      return 0;
    }
  }

  /** A task whose start was counted does not start. */
  async giveBack({ countedAt }: ActiveTask): Promise<void> {
    if (countedAt === 0 || this.hasCosts) return;
    const { broker } = this.deps;
    try {
      await broker.limiting.correctCosts(this.scope, this.limits.window, [{ countedAt, by: -1 }]);
      this.opensAt = 0;
    } catch (error) {
      this.user.report(error);
    }
  }

  /** What is given back may be room for a task that waits. */
  async correctCosts(ended: readonly ActiveTask[]): Promise<void> {
    const corrections = correctionsOf(ended);
    if (corrections.length === 0) return;
    try {
      await this.deps.broker.limiting.correctCosts(this.scope, this.limits.window, corrections);
      if (corrections.some(({ by }) => by < 0)) this.opensAt = 0;
    } catch (error) {
      this.user.report(error);
    }
  }

  private async takeStarts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { rate: max, window } = this.limits;
    const asked = this.deps.clock.now();
    const call = this.allowance.begin();
    const limit = { max, window, allowance: call.allowance };
    const counted = await this.deps.broker.limiting.takeStarts(this.scope, limit, tasks.length);
    this.allowance.observe(call);
    const granted = tasks.slice(0, counted.granted);
    for (const task of granted) {
      task.startBy = Math.min(task.startBy, call.startBy);
      task.countedAt = counted.countedAt;
    }
    if (counted.retryIn > 0) this.opensAt = asked + counted.retryIn; // at least: Redis may have been late, too
    if (counted.left === 0 || this.user.isWaiting) this.awaitEnd(counted);
    return granted;
  }

  /** Whoever has counted starts wakes as many when these no longer count: so each gets one successor, however many servers there are. */
  private awaitEnd({ granted, countsFor }: TakenStarts): void {
    if (granted === 0) return;
    this.counting += granted;
    this.deps.clock.after(countsFor + 1, () => {
      this.counting -= granted;
      this.user.startsEnded(granted);
    });
  }

  private async takeCosts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { rate: max, window } = this.limits;
    const paying = tasks.filter(({ charge }) => charge!.cost > 0);
    for (const { charge } of tasks) charge!.countedAt = 0;
    if (paying.length === 0) return tasks;
    const costs = paying.map(({ charge }) => charge!.cost);
    const call = this.allowance.begin();
    const limit = { max, window, allowance: call.allowance };
    const taken = await this.deps.broker.limiting.takeCosts(this.scope, limit, costs);
    if (taken.retryIn > 0) this.opensAt = this.deps.clock.now() + taken.retryIn;
    this.leastCost = taken.least;
    this.allowance.observe(call);
    for (const task of paying) task.startBy = Math.min(task.startBy, call.startBy);
    for (const { charge } of paying) charge!.countedAt = taken.countedAt;
    const refused = new Set(paying.slice(taken.granted));
    return tasks.filter((task) => !refused.has(task));
  }
}
