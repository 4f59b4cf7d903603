import { LEASE_SECONDS } from '../../broker/broker.js';
import type { LimitingBroker } from '../../broker/limiting.js';
import { floorSeconds, type Clock, type ClockTimer } from '../../clock.js';
import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import { backoff } from '../../async.js';

/** Milliseconds after which tokens are held on to; they end LEASE_SECONDS after that. */
const RENEW_AFTER = 10_000;
/** The longest time between two attempts to find room for a task that is known to wait, in milliseconds. */
const LONGEST_PROBE = 5_000;

export interface LimiterDeps {
  readonly broker: LimitingBroker;
  readonly clock: Clock;
  /** The queues in which tasks are woken. */
  readonly queues: () => readonly string[];
  /** The task may run. */
  readonly admit: (task: ActiveTask) => void;
  /** The task is to wait in the line of that name. */
  readonly defer: (task: ActiveTask, waitlist: string) => void;
  /** Tasks were put to the front of the queue. */
  readonly onWoken: (queue: string) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Keeps the limits of some handlers. A task that was taken and finds a limit reached waits in a line of its queue (in Redis, so that
 * every server sees it) and is woken in its turn: when a task ends here, when a rate has room again; and as no notice tells what
 * ends elsewhere or died, now and then.
 */
export class Limiter {
  /** Tasks that have a place in this process: running, or being let in. */
  private readonly inside = new Set<ActiveTask>();
  /** Tasks known to wait, by queue. */
  private readonly waiting = new Map<string, number>();
  private arrivals: ActiveTask[] = [];
  private ended: ActiveTask[] = [];
  private admitting = false;
  /** Room is being looked for: each task that is let in wakes two more, until one is refused. */
  private probing = false;
  private misses = 0;
  private missedAt = 0;
  private probeTimer: ClockTimer | undefined;
  private opensAt = 0;
  private renewedAt = -Infinity;
  private closed = false;

  constructor(
    /** Names the semaphore, the rate and the line. */
    readonly scope: string,
    readonly limits: ResolvedLimits,
    private readonly deps: LimiterDeps,
  ) {}

  /** A task of these handlers was taken. */
  enter(task: ActiveTask): void {
    if (this.room <= 0) return this.deps.defer(task, this.scope);
    this.inside.add(task);
    if (!this.isShared) {
      this.misses = 0;
      return this.deps.admit(task);
    }
    this.arrivals.push(task);
    if (!this.admitting) void this.admitArrivals();
  }

  /** The task's handler has settled, or it was never called. */
  left(task: ActiveTask): void {
    if (!this.inside.delete(task) || this.closed) return;
    if (this.ended.push(task) === 1) void this.makeRoom();
  }

  /** A task that was turned away now stands in the line. */
  queued(queue: string): void {
    this.waiting.set(queue, (this.waiting.get(queue) ?? 0) + 1);
    if (!this.isShared && this.room > 0)
      void this.wake(1); // a place came free on its way there
    else this.probeLater();
  }

  /** A pass: holds on to the tokens, and looks for tasks that wait and nobody here knows of. */
  async runOnce(): Promise<void> {
    await this.renew();
    const { waiting } = this;
    const unknown = this.deps.queues().filter((queue) => !waiting.has(queue));
    if (this.isShared && waiting.size > 0) {
      for (const queue of unknown) waiting.set(queue, 0); // has its turn among the others
      return this.probeLater();
    }
    this.probing = this.isShared;
    await this.wakeIn(unknown, this.isShared ? 1 : this.room);
  }

  close(): void {
    this.closed = true;
    this.probeTimer?.cancel();
    this.probeTimer = undefined;
  }

  /** Whether other processes count, too. */
  private get isShared(): boolean {
    return this.limits.globalConcurrency > 0 || this.limits.rate > 0;
  }

  private get room(): number {
    return this.limits.concurrency - this.inside.size;
  }

  /** Milliseconds until the rate has room again. It never takes two windows: then the clock was set back. */
  private get opensIn(): number {
    const left = this.opensAt - this.deps.clock.now();
    return left > 2 * this.limits.window ? 0 : Math.max(0, left);
  }

  /** One call for all that arrive together. */
  private async admitArrivals(): Promise<void> {
    this.admitting = true;
    await undefined;
    while (this.arrivals.length > 0) await this.admit(this.arrivals.splice(0));
    this.admitting = false;
  }

  private async admit(tasks: readonly ActiveTask[]): Promise<void> {
    let granted: readonly ActiveTask[] = [];
    try {
      granted = await this.takeStarts(await this.takeTokens(tasks));
    } catch (error) {
      this.deps.onError(error);
    }
    const refused = tasks.filter((task) => !granted.includes(task));
    for (const task of refused) {
      this.inside.delete(task);
      this.deps.defer(task, this.scope);
    }
    for (const task of granted) this.deps.admit(task);
    if (granted.length > 0 && this.probing) this.misses = 0;
    if (refused.length > 0) this.probing = false;
    else if (this.probing) await this.wake(2 * granted.length);
  }

  /** Probes in a row for which none was let in; those of long ago say nothing of now. */
  private missed(): void {
    const now = this.deps.clock.now();
    this.misses = now - this.missedAt > 2 * LONGEST_PROBE ? 0 : this.misses + 1;
    this.missedAt = now;
  }

  private async takeTokens(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { globalConcurrency } = this.limits;
    if (globalConcurrency === 0) return tasks;
    const holders = tasks.map(holderOf);
    const got = await this.deps.broker.acquireTokens(this.scope, globalConcurrency, this.tokenEnd(), holders);
    return tasks.filter((_, index) => got[index]);
  }

  private async takeStarts(tasks: readonly ActiveTask[]): Promise<readonly ActiveTask[]> {
    const { rate: max, window } = this.limits;
    if (max === 0 || tasks.length === 0) return tasks;
    const counted = await this.deps.broker
      .takeStarts(this.scope, { max, window }, tasks.length)
      .catch((error: unknown) => {
        void this.release(tasks);
        throw error;
      });
    if (counted.retryIn > 0) this.opensAt = this.deps.clock.now() + counted.retryIn;
    void this.release(tasks.slice(counted.granted));
    return tasks.slice(0, counted.granted);
  }

  /**
   * For each task that has ended another one is woken. That comes first, the tokens after it in the same breath: who takes a task next
   * then takes the one that has waited, not one that has just come.
   */
  private async makeRoom(): Promise<void> {
    await undefined;
    const ended = this.ended.splice(0);
    const queues = new Set(this.waiting.keys());
    if (this.limits.globalConcurrency > 0) for (const { queue } of ended) queues.add(queue); // others may wait there
    const woken = this.wakeIn([...queues], ended.length);
    await this.release(ended);
    await woken;
  }

  /** Tokens that cannot be given back end by themselves. That of a task whose lease was lost may be its new holder's. */
  private async release(tasks: readonly ActiveTask[]): Promise<void> {
    const holders = tasks.filter(({ lost }) => !lost).map(holderOf);
    if (this.limits.globalConcurrency === 0 || holders.length === 0) return;
    await this.deps.broker.releaseTokens(this.scope, holders).catch(this.deps.onError);
  }

  private async renew(): Promise<void> {
    const { clock, broker } = this.deps;
    const now = clock.now();
    const isFresh = now >= this.renewedAt && now < this.renewedAt + RENEW_AFTER; // not so when the clock was set back
    if (this.limits.globalConcurrency === 0 || this.inside.size === 0 || isFresh) return;
    const holders = [...this.inside].map(holderOf);
    await broker.acquireTokens(this.scope, this.limits.globalConcurrency, this.tokenEnd(), holders);
    this.renewedAt = now;
  }

  private tokenEnd(): number {
    return floorSeconds(this.deps.clock.now()) + LEASE_SECONDS;
  }

  /**
   * Tries again to let in one that is known to wait: where others count, too, to find room; else as another server, where there is
   * none, may have taken the one that was woken for the room here. At growing intervals, or when the rate has room again.
   */
  private probeLater(): void {
    if (this.probeTimer || this.closed || this.waiting.size === 0 || this.room <= 0) return;
    const delay = Math.max(backoff(this.misses + 1, { longest: LONGEST_PROBE }), this.opensIn);
    this.probeTimer = this.deps.clock.after(delay, () => {
      this.probeTimer = undefined;
      this.probing = this.isShared;
      this.missed(); // until one comes
      void this.wake(this.isShared ? 1 : this.room);
    });
  }

  private wake(count: number): Promise<void> {
    return this.wakeIn([...this.waiting.keys()], count);
  }

  /** Wakes up to so many tasks, as far as there are places for them, in the first of the queues that has some. */
  private async wakeIn(queues: readonly string[], count: number): Promise<void> {
    const { broker, onWoken, onError } = this.deps;
    const served = this.deps.queues();
    let wanted = Math.min(count, this.room);
    try {
      for (const queue of queues) {
        if (wanted <= 0 || this.opensIn > 0) break;
        if (!served.includes(queue)) {
          this.waiting.delete(queue);
          continue;
        }
        const { woken, left } = await broker.wakeWaiting(queue, this.scope, wanted);
        this.waiting.delete(queue);
        if (left > 0) this.waiting.set(queue, left); // the last one from here on: the next time it is another queue's turn
        if (woken > 0) onWoken(queue);
        wanted -= woken;
      }
    } catch (error) {
      onError(error);
    }
    this.probeLater();
  }
}

/** Names the holder of a token. Two queues may have a task of the same id. */
const holderOf = ({ queue, id }: ActiveTask): string => `{${queue}}:${id}`;
