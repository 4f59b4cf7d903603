import { LEASE_SECONDS } from '../../broker/broker.js';
import { floorSeconds } from '../../clock.js';
import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import { correctionsOf } from './charge.js';
import { type LimiterDeps, Waitlist } from './waitlist.js';

/** Tokens are extended when they are this old; they end LEASE_SECONDS after that. */
const TOKEN_RENEWAL_MS = 10_000;

/** For so long a refusal is taken to hold. */
const FULL_MS = 1_000;

/** A claimed task that waits for the decision. */
interface Arrival {
  readonly task: ActiveTask;
  readonly decide: (admitted: boolean) => void;
}

/**
 * Keeps the limits of the handlers of one scope: decides which claimed tasks are admitted and which
 * are deferred.
 */
export class Limiter {
  /** Whether tasks of its handlers may cost something else than 1 of the rate. */
  hasCosts = false;
  /** Tasks that count for this process: they run, or Redis is asked about them. */
  private readonly inside = new Set<ActiveTask>();
  private readonly waitlist: Waitlist;
  private arrivals: Arrival[] = [];
  private ended: ActiveTask[] = [];
  private deciding = false;
  private opensAt = 0;
  /** When Redis last had no token, unless one may be free since; milliseconds since the epoch. */
  private refusedAt = -Infinity;
  /** Until then no task that costs less of the rate has a chance. */
  private leastCost = 0;
  private renewedAt = -Infinity;
  private closed = false;

  constructor(
    /** Names the semaphore, the rate and the waitlist. */
    readonly scope: string,
    readonly limits: ResolvedLimits,
    private readonly deps: LimiterDeps,
  ) {
    this.waitlist = new Waitlist(scope, this, deps);
  }

  /** Whether a claimed task may run now. A promise only where Redis must be asked. */
  admit(task: ActiveTask): boolean | Promise<boolean> {
    if (this.room <= 0 || this.isSaving(task)) return false;
    this.inside.add(task);
    if (this.isShared) return this.askRedis(task);
    this.waitlist.found();
    return true;
  }

  /** Room is saved for a task that costs more. */
  private isSaving({ charge }: ActiveTask): boolean {
    return charge !== undefined && charge.cost > 0 && charge.cost < this.leastCost && this.opensIn > 0;
  }

  /** The task's handler has settled, or it was never called. */
  left(task: ActiveTask): void {
    if (!this.inside.delete(task) || this.closed) return;
    if (this.ended.push(task) === 1) void this.makeRoom();
  }

  /** A deferred task is now on the waitlist of its queue. */
  queued(queue: string, count = 1): void {
    this.waitlist.joined(queue, count);
  }

  /** Whether the next task would be deferred, as far as is known: a slot or token may be free elsewhere, but not for long unnoticed. */
  get isFull(): boolean {
    if (this.hasCosts || this.closed) return false;
    return this.room <= 0 || this.opensIn > 0 || this.deps.clock.now() - this.refusedAt < FULL_MS;
  }

  /** One pass: extends the tokens, and wakes waiting tasks that nobody here knows of. @param queues where tasks wait for it */
  async runOnce(queues: readonly string[]): Promise<void> {
    await this.renewTokens();
    await this.waitlist.search(queues);
  }

  /** Extends the tokens, and wakes tasks as far as there may be room. */
  async findRoom(): Promise<void> {
    await this.renewTokens();
    await this.waitlist.probe(this.deps.queues.names());
  }

  /** When the rate has room again, in milliseconds since the epoch; `undefined` when it has, or no task is known to wait. */
  nextRoom(): number | undefined {
    const { opensIn } = this;
    return opensIn > 0 && this.waitlist.isUsed ? this.deps.clock.now() + opensIn : undefined;
  }

  /** A task that waits is let try. */
  expectRoom(): void {
    this.refusedAt = -Infinity;
  }

  /** Whether it counts tasks, or knows of some that wait; or has to remember when there is room. */
  get isUsed(): boolean {
    return this.inside.size > 0 || this.ended.length > 0 || this.deciding || this.waitlist.isUsed || this.opensIn > 0;
  }

  close(): void {
    this.closed = true;
    this.waitlist.close();
  }

  /** Whether other processes count, too. */
  get isShared(): boolean {
    return this.limits.globalConcurrency > 0 || this.limits.rate > 0;
  }

  /** Tasks that may still run in this process. */
  get room(): number {
    return this.limits.concurrency - this.inside.size;
  }

  /**
   * Milliseconds until the rate has room again. Never as long as two windows: then the clock was
   * set back.
   */
  get opensIn(): number {
    const left = this.opensAt - this.deps.clock.now();
    return left > 2 * this.limits.window ? 0 : Math.max(0, left);
  }

  /** One call for all that arrive together. */
  private askRedis(task: ActiveTask): Promise<boolean> {
    const decision = new Promise<boolean>((decide) => this.arrivals.push({ task, decide }));
    if (!this.deciding) void this.decideAll();
    return decision;
  }

  private async decideAll(): Promise<void> {
    this.deciding = true;
    await undefined;
    while (this.arrivals.length > 0) await this.decide(this.arrivals.splice(0));
    this.deciding = false;
  }

  private async decide(arrivals: readonly Arrival[]): Promise<void> {
    const granted = await this.grant(arrivals.map(({ task }) => task));
    const admitted = arrivals.filter(({ task }) => granted.has(task));
    const deferred = arrivals.filter(({ task }) => !granted.has(task));
    if (deferred.length > 0 && this.limits.globalConcurrency > 0) this.refusedAt = this.deps.clock.now();
    for (const { task, decide } of deferred) {
      this.inside.delete(task);
      decide(false);
    }
    for (const { decide } of admitted) decide(true);
    await undefined; // they begin, and those that end at once make room
    await this.waitlist.decided(admitted.length, deferred.length);
  }

  private async grant(tasks: readonly ActiveTask[]): Promise<ReadonlySet<ActiveTask>> {
    try {
      return new Set(await this.takeStarts(await this.takeTokens(tasks)));
    } catch (error) {
      this.report(error);
      return new Set();
    }
  }

  private async takeTokens(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { globalConcurrency } = this.limits;
    if (globalConcurrency === 0) return tasks;
    const holders = tasks.map(holderOf);
    const got = await this.deps.broker.limiting.acquireTokens(this.scope, globalConcurrency, this.tokenEnd(), holders);
    return tasks.filter((_, index) => got[index]);
  }

  private async takeStarts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { rate: max, window } = this.limits;
    if (max === 0 || tasks.length === 0) return tasks;
    if (this.hasCosts) return this.takeCosts(tasks);
    const counted = await this.deps.broker.limiting
      .takeStarts(this.scope, { max, window }, tasks.length)
      .catch((error: unknown) => {
        void this.release(tasks);
        throw error;
      });
    if (counted.retryIn > 0) this.opensAt = this.deps.clock.now() + counted.retryIn;
    void this.release(tasks.slice(counted.granted));
    return tasks.slice(0, counted.granted);
  }

  private async takeCosts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { rate: max, window } = this.limits;
    const paying = tasks.filter(({ charge }) => charge!.cost > 0);
    for (const { charge } of tasks) charge!.part = 0;
    if (paying.length === 0) return tasks;
    const costs = paying.map(({ charge }) => charge!.cost);
    const taken = await this.deps.broker.limiting
      .takeCosts(this.scope, { max, window }, costs)
      .catch((error: unknown) => {
        void this.release(tasks);
        throw error;
      });
    if (taken.retryIn > 0) this.opensAt = this.deps.clock.now() + taken.retryIn;
    this.leastCost = taken.least;
    const refused = new Set(paying.slice(taken.granted));
    void this.release([...refused]);
    for (const { charge } of paying) charge!.part = taken.part;
    return tasks.filter((task) => !refused.has(task));
  }

  /** What is given back may be room for a task that waits. */
  private async correctCosts(ended: readonly ActiveTask[]): Promise<void> {
    const corrections = correctionsOf(ended);
    if (corrections.length === 0) return;
    try {
      await this.deps.broker.limiting.correctCosts(this.scope, this.limits.window, corrections);
      if (corrections.some(({ by }) => by < 0)) this.opensAt = 0;
    } catch (error) {
      this.report(error);
    }
  }

  /**
   * Wakes a task for each that has ended. Wakes first and gives the tokens back right after: so the
   * next task claimed is the one that waited, not a new one.
   */
  private async makeRoom(): Promise<void> {
    await undefined;
    const ended = this.ended.splice(0);
    this.expectRoom();
    if (this.hasCosts) await this.correctCosts(ended);
    // Other servers' tasks may wait in queues where we know of none.
    const queues = this.limits.globalConcurrency > 0 ? ended.map(({ queue }) => queue) : [];
    const woken = this.waitlist.wake(ended.length, queues);
    await this.release(ended);
    await woken;
  }

  /**
   * Tokens that cannot be given back expire. The token of a task whose lease was lost may belong to
   * its new holder.
   */
  private async release(tasks: readonly ActiveTask[]): Promise<void> {
    const holders = tasks.filter(({ lost }) => !lost).map(holderOf);
    if (this.limits.globalConcurrency === 0 || holders.length === 0) return;
    await this.deps.broker.limiting.releaseTokens(this.scope, holders).catch((error: unknown) => this.report(error));
  }

  private async renewTokens(): Promise<void> {
    const { clock, broker } = this.deps;
    const now = clock.now();
    // The clock may have been set back.
    const isFresh = now >= this.renewedAt && now < this.renewedAt + TOKEN_RENEWAL_MS;
    if (this.limits.globalConcurrency === 0 || this.inside.size === 0 || isFresh) return;
    const holders = [...this.inside].map(holderOf);
    await broker.limiting.acquireTokens(this.scope, this.limits.globalConcurrency, this.tokenEnd(), holders);
    this.renewedAt = now;
  }

  private tokenEnd(): number {
    return floorSeconds(this.deps.clock.now()) + LEASE_SECONDS;
  }

  private report(error: unknown): void {
    this.deps.events.emit('loopFailed', { loop: 'limiter', error });
  }
}

/** Names the holder of a token. Two queues may have a task of the same id. */
const holderOf = ({ queue, id }: ActiveTask): string => `{${queue}}:${id}`;
