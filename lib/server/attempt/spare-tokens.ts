import type { ClaimedHeld } from '../../broker/broker.js';
import type { ClockTimer } from '../../clock.js';
import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import type { Claimant, HeldCount } from './held-claims.js';
import { ReadyTasks, type ReadyUser } from './ready-tasks.js';
import { TokenRequests } from './token-requests.js';
import { Tokens, WEIGHT } from './tokens.js';
import type { LimiterDeps, Waitlist } from './waitlist.js';

/** Tasks are claimed ahead of their token when claiming one takes more than a 40th of the time that tasks have theirs: this many at most. */
const MOST_SHARE = 40;
const MAX_AHEAD = 32;

/** For so long a token is kept for a task that no exchange claims, as the server has no free slot; and when it has one. */
const KEPT_MS = 100;
const MAX_KEPT_MS = 2_000;

/** Who admits the tasks. */
export interface SpareUser {
  /** Tasks that may still run in this process. */
  readonly room: number;
  /** Milliseconds until the rate has room again. */
  readonly opensIn: number;
  /** How many tasks the rate lets start, as far as is known. */
  startsLeft(): Promise<number>;
  /** There is no token, as far as is known. */
  refused(): void;
  /** A task that waits is let try. */
  expectRoom(): void;
  /** It waits here no longer, and does not run. */
  dropped(task: ActiveTask): void;
  report(error: unknown): void;
}

/** The tokens of one scope, and what is done with the spare ones: tasks of the waitlist are claimed for them, or other servers get them. */
export class SpareTokens implements Claimant, ReadyUser {
  private readonly tokens: Tokens;
  private readonly requests: TokenRequests;
  private readonly ready: ReadyTasks;
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
  private closed = false;

  constructor(
    readonly scope: string,
    private readonly limits: ResolvedLimits,
    private readonly deps: LimiterDeps,
    private readonly waitlist: Waitlist,
    private readonly user: SpareUser,
  ) {
    this.tokens = new Tokens(scope, limits.globalConcurrency, deps);
    this.requests = new TokenRequests(scope, this.tokens, deps);
    this.ready = new ReadyTasks(this.tokens, deps, this);
  }

  get room(): number {
    return this.user.room;
  }

  /** Tasks that wait here for the next token. */
  get waiting(): number {
    return this.ready.size;
  }

  /** Whether a task that was claimed for a token may wait here for one. */
  get hasPlace(): boolean {
    return this.limits.rate === 0 && this.ready.size < MAX_AHEAD;
  }

  /** Milliseconds until the next look for a token, when another server is about to give one up. */
  get nextLook(): number | undefined {
    return this.requests.nextLook;
  }

  /** A claimed task is here. Returns whether it was claimed for a token. */
  meet(): boolean {
    const isExpected = this.arrived > 0;
    if (isExpected) this.arrived -= 1;
    return isExpected;
  }

  /** Gives the task a spare token, if there is one. @param isExpected `false`: it takes none for which others are claimed */
  give(task: ActiveTask, isExpected: boolean): boolean {
    return (isExpected || this.unused > 0) && this.tokens.give(task);
  }

  /** It begins when a task ends here. */
  keep(task: ActiveTask): Promise<boolean> {
    return this.ready.keep(task);
  }

  /** A task has ended: one that is ready begins at once. */
  handOn(task: ActiveTask): void {
    if (this.ready.size === 0 || this.requests.isAsked) return;
    this.tokens.free(task);
    this.ready.handOn();
  }

  /** They run no longer, or do not run at all. Other servers' tasks may wait in their queues where we know of none. */
  release(tasks: readonly ActiveTask[]): void {
    for (const task of tasks) this.tokens.free(task);
    this.useSpare(tasks.map(({ queue }) => queue));
  }

  /** Gives those that have none a token, as far as there are some; returns those that have one. */
  async take(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { tokens } = this;
    const without = tasks.filter((task) => !tokens.has(task));
    if (without.length > 0) {
      await tokens.acquire(without).catch((error: unknown) => {
        this.release(tasks);
        throw error;
      });
    }
    return tasks.filter((task) => tokens.has(task));
  }

  get isUsed(): boolean {
    return this.tokens.isUsed;
  }

  /** Extends them. */
  renew(): Promise<void> {
    return this.tokens.renew();
  }

  /** Whether another server waits for a token. */
  lookForRequests(): Promise<void> {
    return this.requests.look(this.waitlist.isUsed);
  }

  dropped(task: ActiveTask): void {
    this.user.dropped(task);
  }

  waitedLong(): void {
    this.tokens.heldFor = Math.max(this.tokens.heldFor, MOST_SHARE * this.claimTime + 1);
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
      if (reply.left > 0) this.user.refused();
      if (this.sought && reply.claimed > 0) waitlist.found();
      this.useSpare([]);
    } else {
      this.giveBack(this.unused);
    }
    this.sought = false;
    waitlist.lookLater();
  }

  /** Acquires tokens for tasks that wait, as far as some are free and there are slots. Returns whether there were any. @param queues where tasks may wait */
  async find(queues: readonly string[]): Promise<boolean> {
    const { tokens, limits, waitlist, deps, user } = this;
    const most = Math.min(limits.globalConcurrency, user.room - tokens.spare, deps.looks.room);
    const count = waitlist.isUsed ? Math.min(most, Math.max(1, waitlist.size)) : 0;
    const asks = count > 0 && !this.requests.yields && user.opensIn === 0;
    if (asks) return deps.looks.whileReserved(count, () => this.seek(count, queues));
    this.useSpare(queues);
    waitlist.lookLater();
    return true;
  }

  /** Nothing more is claimed here: who waits for a token goes back. */
  stop(): void {
    this.ready.drop();
    this.giveUp();
  }

  close(): void {
    this.closed = true;
    this.keepTimer?.cancel();
    this.ready.close();
    this.stop();
  }

  /** How many tasks are claimed ahead: as many as end while others are claimed, and some more as they do not end evenly. */
  private get ahead(): number {
    const { claimTime } = this;
    const { heldFor, count } = this.tokens;
    if (claimTime === 0 || heldFor === 0 || this.limits.rate > 0 || heldFor > MOST_SHARE * claimTime) return 0;
    const ending = (count * claimTime) / heldFor;
    return Math.min(MAX_AHEAD, Math.ceil(ending + 2 * Math.sqrt(ending)));
  }

  /** Spare tokens for which nothing is wanted yet. */
  private get unused(): number {
    return this.tokens.spare - this.wanted - this.claims - this.arrived;
  }

  /** The next exchange claims tasks for spare tokens. Without such tasks others get the tokens. @param queues where some may wait */
  private useSpare(queues: readonly string[]): void {
    const { listener } = this.deps;
    if (this.requests.gives()) {
      this.user.refused();
      this.giveBack(1);
    }
    this.ready.handOn();
    const { unused } = this;
    const isOpen = !this.closed && listener.takesTasks && this.user.opensIn === 0;
    const ahead = isOpen ? Math.max(0, this.ahead - this.ready.size - this.wantedAhead - this.claimsAhead) : 0;
    if (unused <= 0 && ahead === 0) return;
    const queue = isOpen ? this.waitlist.nextQueue(queues) : undefined;
    if (queue === undefined) {
      this.user.expectRoom();
      return this.giveBack(unused);
    }
    if (this.deps.broker.fairQueues.has(queue)) {
      if (unused > 0) void this.waitlist.wake(unused, [queue]); // it has its turn there
      return this.giveBack(unused);
    }
    this.want(queue, { now: Math.max(0, unused), ahead });
  }

  private want(queue: string, count: HeldCount): void {
    const { clock, held } = this.deps;
    if (this.wanted + this.wantedAhead === 0) this.wantedSince = clock.elapsed();
    this.wanted += count.now;
    this.wantedAhead += count.ahead;
    this.wantedAt = clock.now();
    this.keepTimer ??= clock.after(KEPT_MS, () => this.endKeeping());
    held.want(queue, this, count);
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

  /** What no exchange has asked for yet is wanted no longer. */
  private giveUp(): void {
    this.deps.held.drop(this);
    this.wanted = this.wantedAhead = 0;
    this.giveBack(this.unused);
    this.waitlist.lookLater();
  }

  /** Tokens that cannot be given back expire. */
  private giveBack(count: number): void {
    if (count > 0) void this.tokens.release(count).catch((error: unknown) => this.user.report(error));
    if (this.tokens.count === 0) this.ready.drop();
  }

  /** Returns whether there were any. */
  private async seek(most: number, queues: readonly string[]): Promise<boolean> {
    const got = await this.seekUpTo(most);
    this.useSpare(queues);
    this.waitlist.lookLater();
    return got > 0;
  }

  /** Returns how many it got. */
  private async seekUpTo(most: number): Promise<number> {
    const { tokens, user } = this;
    try {
      const count = Math.min(most, await user.startsLeft());
      if (count === 0) return 0;
      const got = await tokens.seek(count);
      if (got > 0) this.sought = true;
      if (got < count) user.refused();
      await this.requests.note(this.waitlist.isUsed);
      return got;
    } catch (error) {
      user.report(error);
      return 0;
    }
  }
}
