import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import { Rate, type RateUser } from './rate.js';
import type { Arrival } from './ready-tasks.js';
import { SpareTokens, type SpareUser } from './spare-tokens.js';
import type { StartAllowance } from './start-allowance.js';
import { Successors } from './successors.js';
import { type LimiterDeps, type Room, Waitlist } from './waitlist.js';

/** For so long a refusal is taken to hold. */
const FULL_MS = 1_000;

/** A rate that has room again later than this defers tasks unasked. */
const SURELY_CLOSED_MS = 5;

/**
 * Keeps the limits of the handlers of one scope: decides which claimed tasks are admitted and which
 * are deferred.
 */
export class Limiter implements RateUser, Room, SpareUser {
  /** Tasks that count for this process: they run, or Redis is asked about them. */
  private readonly inside = new Set<ActiveTask>();
  private readonly waitlist: Waitlist;
  /** Of the fleet; `undefined` where only this process counts, or a rate. */
  private readonly tokens: SpareTokens | undefined;
  private readonly rate: Rate;
  private readonly successors: Successors;
  private arrivals: Arrival[] = [];
  private ended: ActiveTask[] = [];
  private deciding = false;
  /** When Redis last had no token, unless one may be free since; milliseconds since the epoch. */
  private refusedAt = -Infinity;
  private closed = false;

  constructor(
    /** Names the semaphore, the rate and the waitlist. */
    readonly scope: string,
    readonly limits: ResolvedLimits,
    private readonly deps: LimiterDeps,
    allowance: StartAllowance,
  ) {
    this.waitlist = new Waitlist(scope, this, deps);
    if (limits.globalConcurrency > 0) this.tokens = new SpareTokens(scope, limits, deps, this.waitlist, this);
    this.rate = new Rate(scope, limits, deps, allowance, this);
    this.successors = new Successors(scope, deps, this.waitlist);
  }

  /** Whether tasks of its handlers may cost something else than 1 of the rate. */
  get hasCosts(): boolean {
    return this.rate.hasCosts;
  }

  set hasCosts(hasCosts: boolean) {
    this.rate.hasCosts = hasCosts;
  }

  /** Whether a claimed task may run now. A promise only where Redis must be asked. */
  admit(task: ActiveTask): boolean | Promise<boolean> {
    const { tokens } = this;
    const isExpected = tokens?.meet() === true;
    const mayWait = isExpected && tokens!.hasPlace;
    if ((this.room <= 0 && !mayWait) || this.rate.isSaving(task)) return false;
    if (!this.hasCosts && this.opensIn > SURELY_CLOSED_MS) return false;
    const mustWait = this.room <= 0 || (mayWait && this.deps.listener.isOverfull);
    const hasToken = !mustWait && tokens?.give(task, isExpected) === true;
    this.inside.add(task);
    if (mayWait && !hasToken) return tokens!.keep(task);
    if (this.isShared && (!hasToken || this.limits.rate > 0)) return this.askRedis(task);
    this.waitlist.found();
    return true;
  }

  /** The task's handler has settled, or it was never called. */
  left(task: ActiveTask): void {
    if (!this.inside.delete(task) || this.closed) return;
    this.tokens?.handOn(task);
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
    await this.tokens?.renew();
    await this.tokens?.lookForRequests();
    this.waitlist.search(queues);
  }

  /** Extends the tokens, and wakes tasks as far as there may be room. */
  async findRoom(): Promise<void> {
    await this.tokens?.renew();
    await this.waitlist.probe(this.tokens ? [] : this.deps.queues.names());
  }

  /** When the rate has room again, in milliseconds since the epoch; `undefined` when it has, or no task is known to wait. */
  nextRoom(): number | undefined {
    const { opensIn } = this;
    return opensIn > 0 && this.waitlist.isUsed ? this.deps.clock.now() + opensIn : undefined;
  }

  refused(): void {
    this.refusedAt = this.deps.clock.now();
  }

  /** A task that waits is let try. */
  expectRoom(): void {
    this.refusedAt = -Infinity;
  }

  /** Whether it counts tasks, or knows of some that wait; or has to remember when there is room. */
  get isUsed(): boolean {
    return this.isBusy || this.waitlist.isUsed || this.opensIn > 0;
  }

  /** Whether it knows of tasks that wait, and of no others. */
  get isIdle(): boolean {
    return this.isWaiting && !this.isBusy;
  }

  /** Whether it has looked for room, and will again later. */
  get hasLooked(): boolean {
    return this.waitlist.hasLooked;
  }

  private get isBusy(): boolean {
    return (
      this.inside.size > 0 ||
      this.ended.length > 0 ||
      this.deciding ||
      this.hasSuccessors ||
      this.successors.isUsed ||
      this.tokens?.isUsed === true
    );
  }

  close(): void {
    this.closed = true;
    this.tokens?.close();
    this.successors.close();
    this.waitlist.close();
  }

  /** Whether tasks will be woken by a start that ends to count. */
  get hasSuccessors(): boolean {
    return this.rate.hasSuccessors;
  }

  get hasSuccession(): boolean {
    return this.rate.hasSuccession;
  }

  /** Whether other processes count, too. */
  get isShared(): boolean {
    return this.limits.globalConcurrency > 0 || this.limits.rate > 0;
  }

  /** Tasks that may still run in this process. */
  get room(): number {
    return this.limits.concurrency - (this.inside.size - (this.tokens?.waiting ?? 0));
  }

  /** Milliseconds until the rate has room again. */
  get opensIn(): number {
    return this.rate.opensIn;
  }

  get isWaiting(): boolean {
    return this.waitlist.isUsed;
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
    if (deferred.length > 0 && this.tokens) this.refused();
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
      const withToken = this.tokens ? await this.tokens.take(tasks) : tasks;
      return new Set(await this.takeStarts(withToken));
    } catch (error) {
      this.report(error);
      return new Set();
    }
  }

  private async takeStarts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    if (this.limits.rate === 0 || tasks.length === 0) return tasks;
    const granted = await this.rate.take(tasks).catch((error: unknown) => {
      this.tokens?.release(tasks);
      throw error;
    });
    const starts = new Set(granted);
    this.tokens?.release(tasks.filter((task) => !starts.has(task)));
    return granted;
  }

  /** A task whose start was counted does not start. */
  giveBack(task: ActiveTask): Promise<void> {
    return this.rate.giveBack(task);
  }

  startsEnded(count: number): void {
    if (!this.closed) void this.fill(count, this.isWaiting ? [] : this.deps.queues.names());
  }

  /** There may be room for so many tasks that wait. @param queues where some may, unknown here */
  private async fill(count: number, queues: readonly string[]): Promise<void> {
    const most = this.opensIn > 0 ? 0 : Math.min(count, this.room);
    if (this.tokens || most <= 0 || !this.successors.want(most, queues)) await this.waitlist.wake(count, queues);
  }

  /** Its tokens are for tasks that wait, or for others. Without tokens a task is woken for each that has ended. */
  private async makeRoom(): Promise<void> {
    await undefined;
    const ended = this.ended.splice(0);
    if (this.hasCosts) await this.rate.correctCosts(ended);
    if (this.tokens) return this.tokens.release(ended);
    this.expectRoom();
    await this.fill(ended.length, []);
  }

  dropped(task: ActiveTask): void {
    this.inside.delete(task);
  }

  /** Nothing more is claimed here: who waits for a token goes back. */
  stop(): void {
    this.tokens?.stop();
  }

  /** @param queues where tasks may wait */
  findTokens(queues: readonly string[]): Promise<boolean> {
    return this.tokens!.find(queues);
  }

  startsLeft(): Promise<number> {
    return this.rate.startsLeft();
  }

  /** Milliseconds until the next look for a token, when another server is about to give one up. */
  get nextLook(): number | undefined {
    return this.tokens?.nextLook;
  }

  get hasTokens(): boolean {
    return this.tokens !== undefined;
  }

  report(error: unknown): void {
    this.deps.events.emit('loopFailed', { loop: 'limiter', error });
  }
}
