import type { ClaimedHeld } from '../../broker/broker.js';
import type { ClockTimer } from '../../clock.js';
import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import type { Claimant, HeldCount } from './held-claims.js';
import { Rate, type RateUser } from './rate.js';
import { type Arrival, ReadyTasks, type ReadyUser } from './ready-tasks.js';
import type { StartAllowance } from './start-allowance.js';
import { TokenRequests } from './token-requests.js';
import { Tokens, WEIGHT } from './tokens.js';
import { type LimiterDeps, Waitlist } from './waitlist.js';

/** For so long a refusal is taken to hold. */
const FULL_MS = 1_000;

/** A rate that has room again later than this defers tasks unasked. */
const SURELY_CLOSED_MS = 5;

/** Tasks are claimed ahead of their token when claiming one takes more than a 40th of the time that tasks have theirs: this many at most. */
const MOST_SHARE = 40;
const MAX_AHEAD = 32;

/** For so long a token is kept for a task that no exchange claims, as the server has no free slot; and when it has one. */
const KEPT_MS = 100;
const MAX_KEPT_MS = 2_000;

/**
 * Keeps the limits of the handlers of one scope: decides which claimed tasks are admitted and which
 * are deferred.
 */
export class Limiter implements Claimant, RateUser, ReadyUser {
  /** Tasks that count for this process: they run, or Redis is asked about them. */
  private readonly inside = new Set<ActiveTask>();
  private readonly waitlist: Waitlist;
  /** Of the fleet's; `undefined` where only this process counts, or a rate. */
  private readonly tokens: Tokens | undefined;
  private readonly requests: TokenRequests | undefined;
  private readonly ready: ReadyTasks;
  private readonly rate: Rate;
  /** Spare tokens for which tasks are wanted, and are being claimed. */
  private wanted = 0;
  private claims = 0;
  /** The same of tokens that will be spare. */
  private wantedAhead = 0;
  private claimsAhead = 0;
  /** Tasks that were claimed for spare tokens, and come next. */
  private arrived = 0;
  /** How long it takes until wanted tasks are here, in milliseconds: an average of the last. */
  private claimTime = 0;
  private wantedSince = 0;
  private askedAt = 0;
  /** Tokens were acquired for tasks that wait. */
  private sought = false;
  private keepTimer: ClockTimer | undefined;
  private wantedAt = 0;
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
    if (limits.globalConcurrency > 0) {
      this.tokens = new Tokens(scope, limits.globalConcurrency, deps);
      this.requests = new TokenRequests(scope, this.tokens, deps);
    }
    this.rate = new Rate(scope, limits, deps, allowance, this);
    this.ready = new ReadyTasks(this.tokens, deps, this);
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
    const isExpected = this.arrived > 0;
    if (isExpected) this.arrived -= 1;
    const mayWait = isExpected && this.limits.rate === 0 && this.ready.size < MAX_AHEAD;
    if ((this.room <= 0 && !mayWait) || this.rate.isSaving(task)) return false;
    if (!this.hasCosts && this.opensIn > SURELY_CLOSED_MS) return false;
    const hasToken =
      this.room > 0 &&
      !(mayWait && this.deps.listener.isOverfull) &&
      (isExpected || this.unused > 0) &&
      this.tokens?.give(task) === true;
    this.inside.add(task);
    if (mayWait && !hasToken) return this.ready.keep(task);
    if (this.isShared && (!hasToken || this.limits.rate > 0)) return this.askRedis(task);
    this.waitlist.found();
    return true;
  }

  /** The task's handler has settled, or it was never called. */
  left(task: ActiveTask): void {
    if (!this.inside.delete(task) || this.closed) return;
    if (this.ready.size > 0 && !this.requests!.isAsked) {
      this.tokens!.free(task);
      this.ready.handOn();
    }
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
    await this.requests?.look(this.isWaiting);
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
      this.tokens?.isUsed === true
    );
  }

  close(): void {
    this.closed = true;
    this.keepTimer?.cancel();
    this.ready.close();
    this.stop();
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
    return this.limits.concurrency - (this.inside.size - this.ready.size);
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
    if (deferred.length > 0 && this.tokens) this.refusedAt = this.deps.clock.now();
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
    const { tokens } = this;
    if (!tokens) return tasks;
    const without = tasks.filter((task) => !tokens.has(task));
    if (without.length > 0) {
      await tokens.acquire(without).catch((error: unknown) => {
        this.release(tasks);
        throw error;
      });
    }
    return tasks.filter((task) => tokens.has(task));
  }

  private async takeStarts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    if (this.limits.rate === 0 || tasks.length === 0) return tasks;
    const granted = await this.rate.take(tasks).catch((error: unknown) => {
      this.release(tasks);
      throw error;
    });
    const starts = new Set(granted);
    this.release(tasks.filter((task) => !starts.has(task)));
    return granted;
  }

  /** A task whose start was counted does not start. */
  giveBack(task: ActiveTask): Promise<void> {
    return this.rate.giveBack(task);
  }

  startsEnded(count: number): void {
    if (!this.closed) void this.waitlist.wake(count, this.isWaiting ? [] : this.deps.queues.names());
  }

  /** Its tokens are for tasks that wait, or for others. Without tokens a task is woken for each that has ended. */
  private async makeRoom(): Promise<void> {
    await undefined;
    const ended = this.ended.splice(0);
    if (this.hasCosts) await this.rate.correctCosts(ended);
    if (this.tokens) return this.release(ended);
    this.expectRoom();
    await this.waitlist.wake(ended.length);
  }

  /** They run no longer, or do not run at all. Other servers' tasks may wait in their queues where we know of none. */
  private release(tasks: readonly ActiveTask[]): void {
    if (!this.tokens) return;
    for (const task of tasks) this.tokens.free(task);
    this.useSpare(tasks.map(({ queue }) => queue));
  }

  dropped(task: ActiveTask): void {
    this.inside.delete(task);
  }

  waitedLong(): void {
    this.tokens!.heldFor = Math.max(this.tokens!.heldFor, MOST_SHARE * this.claimTime + 1);
  }

  /** How many tasks are claimed ahead: as many as end while others are claimed, and some more as they do not end evenly. */
  private get ahead(): number {
    const { tokens, claimTime } = this;
    const { heldFor, count } = tokens!;
    if (claimTime === 0 || heldFor === 0 || this.limits.rate > 0 || heldFor > MOST_SHARE * claimTime) return 0;
    const ending = (count * claimTime) / heldFor;
    return Math.min(MAX_AHEAD, Math.ceil(ending + 2 * Math.sqrt(ending)));
  }

  /** Spare tokens for which nothing is wanted yet. */
  private get unused(): number {
    return this.tokens ? this.tokens.spare - this.wanted - this.claims - this.arrived : 0;
  }

  /** The next exchange claims tasks for spare tokens. Without such tasks others get the tokens. @param queues where some may wait */
  private useSpare(queues: readonly string[]): void {
    const { listener } = this.deps;
    if (this.requests!.gives()) {
      this.refusedAt = this.deps.clock.now();
      this.returnTokens(1);
    }
    this.ready.handOn();
    const { unused } = this;
    const isOpen = !this.closed && listener.takesTasks && this.opensIn === 0;
    const ahead = isOpen ? Math.max(0, this.ahead - this.ready.size - this.wantedAhead - this.claimsAhead) : 0;
    if (unused <= 0 && ahead === 0) return;
    const queue = isOpen ? this.waitlist.nextQueue(queues) : undefined;
    if (queue === undefined) {
      this.expectRoom();
      return this.returnTokens(unused);
    }
    if (this.deps.broker.fairQueues.has(queue)) {
      if (unused > 0) void this.waitlist.wake(unused, [queue]); // it has its turn there
      return this.returnTokens(unused);
    }
    if (this.wanted + this.wantedAhead === 0) this.wantedSince = this.deps.clock.elapsed();
    const count = { now: Math.max(0, unused), ahead };
    this.wanted += count.now;
    this.wantedAhead += ahead;
    this.wantedAt = this.deps.clock.now();
    this.keepTimer ??= this.deps.clock.after(KEPT_MS, () => this.endKeeping());
    this.deps.held.want(queue, this, count);
  }

  private endKeeping(): void {
    this.keepTimer = undefined;
    if (this.wanted + this.wantedAhead === 0) return;
    const most = this.deps.listener.freeSlots > 0 ? MAX_KEPT_MS : KEPT_MS;
    const left = this.wantedAt + most - this.deps.clock.now();
    const again = Math.min(left, KEPT_MS);
    if (left > 0 && left <= most) this.keepTimer = this.deps.clock.after(again, () => this.endKeeping());
    else this.giveUp();
  }

  /** Nothing more is claimed here: who waits for a token goes back. */
  stop(): void {
    this.ready.drop();
    if (this.tokens) this.giveUp();
  }

  /** What no exchange has asked for yet is wanted no longer. */
  private giveUp(): void {
    this.deps.held.drop(this);
    this.wanted = this.wantedAhead = 0;
    this.returnTokens(this.unused);
    this.waitlist.lookLater();
  }

  claiming({ now, ahead }: HeldCount): void {
    this.askedAt = this.wantedSince;
    this.wanted -= now;
    this.wantedAhead -= ahead;
    this.claims += now;
    this.claimsAhead += ahead;
  }

  arriving(queue: string, { now, ahead }: HeldCount, reply: ClaimedHeld | undefined): void {
    this.claimTime += (this.deps.clock.elapsed() - this.askedAt - this.claimTime) * WEIGHT;
    this.claims -= now;
    this.claimsAhead -= ahead;
    this.arrived = reply?.claimed ?? 0;
    if (reply) this.waitlist.learned(queue, reply.left);
    else this.waitlist.pass(queue);
  }

  claimed(reply: ClaimedHeld | undefined): void {
    this.arrived = 0;
    const { waitlist } = this;
    if (reply) {
      if (reply.left > 0) this.refusedAt = this.deps.clock.now();
      if (this.sought && reply.claimed > 0) waitlist.found();
      this.useSpare([]);
    } else {
      this.returnTokens(this.unused);
    }
    this.sought = false;
    waitlist.lookLater();
  }

  /** Tokens that cannot be given back expire. */
  private returnTokens(count: number): void {
    if (count > 0) void this.tokens!.release(count).catch((error: unknown) => this.report(error));
    if (this.tokens!.count === 0) this.ready.drop();
  }

  /** Acquires tokens for tasks that wait, as far as some are free and there are slots. @param queues where tasks may wait */
  async findTokens(queues: readonly string[]): Promise<boolean> {
    const tokens = this.tokens!;
    const { limits, waitlist, deps } = this;
    const most = Math.min(limits.globalConcurrency, this.room - tokens.spare, deps.looks.room);
    const count = waitlist.isUsed ? Math.min(most, Math.max(1, waitlist.size)) : 0;
    const asks = count > 0 && !this.requests!.yields && this.opensIn === 0;
    if (asks) return deps.looks.whileReserved(count, () => this.seekTokens(count, queues));
    this.useSpare(queues);
    waitlist.lookLater();
    return true;
  }

  /** Returns whether there were any. */
  private async seekTokens(most: number, queues: readonly string[]): Promise<boolean> {
    const got = await this.seekUpTo(most);
    this.useSpare(queues);
    this.waitlist.lookLater();
    return got > 0;
  }

  /** Returns how many it got. */
  private async seekUpTo(most: number): Promise<number> {
    const { tokens, deps } = this;
    try {
      const count = Math.min(most, await this.startsLeft());
      if (count === 0) return 0;
      const got = await tokens!.seek(count);
      if (got > 0) this.sought = true;
      if (got < count) this.refusedAt = deps.clock.now();
      await this.requests!.note(this.isWaiting);
      return got;
    } catch (error) {
      this.report(error);
      return 0;
    }
  }

  startsLeft(): Promise<number> {
    return this.rate.startsLeft();
  }

  /** Milliseconds until the next look for a token, when another server is about to give one up. */
  get nextLook(): number | undefined {
    return this.requests?.nextLook;
  }

  get hasTokens(): boolean {
    return this.tokens !== undefined;
  }

  report(error: unknown): void {
    this.deps.events.emit('loopFailed', { loop: 'limiter', error });
  }
}
