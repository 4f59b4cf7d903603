import { type AsynqError, InvalidHandlerError } from '../../errors.js';
import { resolveLimits, type ResolvedLimits } from '../../task/limits.js';
import type { ExchangeReply } from '../../broker/broker.js';
import { settleAll } from '../../async.js';
import type { TaskHandlerEntry } from './handler.js';
import type { ActiveTask } from './active-task.js';
import { KeyedLimiters } from './keyed-limiters.js';
import { Limiter } from './limiter.js';
import { StartAllowance } from './start-allowance.js';
import { type HeldClaim, HeldClaims } from './held-claims.js';
import { Looks } from './looks.js';
import { type KnownWaitlists, WaitlistSearch } from './waitlist-search.js';
import type { LimiterDeps } from './waitlist.js';

/** Of more types it is not remembered that tasks were deferred: each is claimed, and deferred. */
const MAX_KNOWN_TYPES = 100;
/** Between two searches for waiting tasks that nobody here knows of. */
const SEARCH_INTERVAL_MS = 2_000;

/** The limiters of a server: one per scope, or per key of a scope. */
export class Limiters {
  private readonly byScope = new Map<string, Limiter | KeyedLimiters>();
  private readonly byEntry = new Map<TaskHandlerEntry, Limiter | KeyedLimiters>();
  private readonly allowance: StartAllowance;
  private readonly deps: LimiterDeps;
  /** The limiters of types of which tasks were deferred; not those per key. */
  private readonly deferred = new Map<string, Limiter>();
  private readonly search: WaitlistSearch;

  /**
   * @throws InvalidHandlerError for wrong limits, or handlers that share a scope and differ in
   * their limits
   */
  constructor(entries: Iterable<TaskHandlerEntry>, given: Omit<LimiterDeps, 'held' | 'looks'>) {
    const { clock, broker, listener } = given;
    const held = new HeldClaims((queue, wanted) => listener.heldWanted(queue, wanted));
    const deps = (this.deps = { ...given, held, looks: new Looks(clock, listener, held) });
    this.search = new WaitlistSearch(broker.limiting);
    this.allowance = new StartAllowance(clock, broker.limiting.firstAllowance);
    for (const entry of entries) {
      if (!entry.limits) continue;
      const scope = entry.limits.limitScope ?? entry.pattern;
      const limits = resolveLimits(entry.limits, `handler "${entry.pattern}"`, InvalidHandlerError);
      const Kind = entry.limitKey ? KeyedLimiters : Limiter;
      let limiter = this.byScope.get(scope);
      if (!limiter) this.byScope.set(scope, (limiter = new Kind(scope, limits, deps, this.allowance)));
      else requireEqual(limiter.limits, limits, scope, entry.pattern);
      if (!(limiter instanceof Kind)) throw keyedOrNot(scope, entry.pattern);
      if (entry.cost) limiter.hasCosts = true;
      this.byEntry.set(entry, limiter);
    }
  }

  get size(): number {
    return this.byScope.size;
  }

  /** The limiter that a task of this handler has to pass; or why it cannot. */
  of(entry: TaskHandlerEntry, task: ActiveTask): Limiter | AsynqError | undefined {
    const limiter = this.byEntry.get(entry);
    return limiter instanceof KeyedLimiters ? limiter.of(task) : limiter;
  }

  /** Of the types whose limit is known to be reached, the waitlists: their tasks need not be claimed. `undefined` when there are none. */
  full(): ReadonlyMap<string, string> | undefined {
    if (this.deferred.size === 0) return undefined;
    const full = new Map<string, string>();
    for (const [type, limiter] of this.deferred) if (limiter.isFull) full.set(type, limiter.scope);
    return full.size > 0 ? full : undefined;
  }

  /** Tasks of these types were put aside. */
  putAside(queue: string, counts: ReadonlyMap<string, number>): void {
    for (const [type, count] of counts) if (count > 0) this.deferred.get(type)?.queued(queue, count);
  }

  /** What an exchange of a queue claims from waitlists. @param slots how many tasks may begin */
  claim(queue: string, slots: number): HeldClaim | undefined {
    return this.byScope.size > 0 ? this.deps.held.take(queue, slots) : undefined;
  }

  /** The first tasks of a reply come from waitlists. @param held `undefined` when nothing was claimed, or no reply has come */
  arriving(queue: string, claim: HeldClaim, held: ExchangeReply['held']): void {
    for (const [claimant, count] of claim.counts) claimant.arriving(queue, count, held?.get(claimant.scope));
  }

  /** They have been admitted. @param held `undefined` when nothing was claimed, or no reply has come */
  claimed(claim: HeldClaim, held: ExchangeReply['held']): void {
    for (const claimant of claim.counts.keys()) claimant.claimed(held?.get(claimant.scope));
  }

  /** Nothing is claimed any more. */
  stop(): void {
    for (const limiter of this.all()) limiter.stop();
  }

  /** A rate has counted its start for a time that is over. */
  isLate({ startBy }: ActiveTask): boolean {
    return this.allowance.isOver(startBy);
  }

  /** The task's handler has settled, or it was never called. */
  left(task: ActiveTask): void {
    if (task.handler) this.byEntry.get(task.handler)?.left(task);
  }

  /** A deferred task is now on a waitlist of its queue. */
  queued({ handler, queue, type }: ActiveTask, waitlist: string): void {
    const limiter = handler && this.byEntry.get(handler);
    const own = limiter && this.named(limiter, waitlist);
    if (!own) return;
    own.queued(queue);
    if (limiter === own && this.deferred.size < MAX_KNOWN_TYPES) this.deferred.set(type, own);
  }

  /** One pass. Tokens are extended though a queue cannot be asked what waits in it. */
  async runOnce(): Promise<number> {
    const { queues } = this.deps;
    const rooms = [...this.byScope.values()].map((one) => (one instanceof KeyedLimiters ? one.makeRoom() : Infinity));
    const used = new Set(this.all());
    const waiting = new Map<Limiter, string[]>();
    const [known, room] = [this.known(), { left: Math.min(...rooms) }];
    const search = async (queue: string) => {
      for (const waitlist of await this.search.find(queue, known, room)) {
        for (const limiter of this.servesOf(waitlist)) waiting.set(limiter, [...(waiting.get(limiter) ?? []), queue]);
      }
    };
    const [failed] = (await Promise.allSettled(queues.names().map(search))).filter(
      ({ status }) => status === 'rejected',
    );
    for (const limiter of waiting.keys()) used.add(limiter);
    await settleAll([...used].map((limiter) => limiter.runOnce(waiting.get(limiter) ?? [])));
    if (failed) throw (failed as PromiseRejectedResult).reason;
    return SEARCH_INTERVAL_MS;
  }

  /** Wakes waiting tasks now, as far as there may be room, where no loop does. */
  async findRoom(): Promise<void> {
    if (this.size > 0) await this.findWaiting();
    await settleAll([...this.all()].map((limiter) => limiter.findRoom()));
  }

  /** When a rate has room again for which tasks wait, in milliseconds since the epoch; `undefined` when none waits. */
  nextRoom(): number | undefined {
    let first = Infinity;
    for (const limiter of this.all()) first = Math.min(first, limiter.nextRoom() ?? Infinity);
    return first === Infinity ? undefined : first;
  }

  /** There may be slots for tasks that wait. */
  look(): void {
    this.deps.looks.go();
  }

  close(): void {
    this.deps.looks.close();
    for (const limiter of this.byScope.values()) limiter.close();
  }

  /** Reports to the limiters which tasks wait; makes those of keys. */
  private async findWaiting(): Promise<void> {
    const { broker, queues } = this.deps;
    for (const queue of queues.names()) {
      let cursor = '';
      do {
        const page = await broker.limiting.findWaitlists(queue, cursor);
        for (const waitlist of page.names) for (const limiter of this.servesOf(waitlist)) limiter.queued(queue);
        ({ cursor } = page);
      } while (cursor !== '');
    }
  }

  private known(): KnownWaitlists {
    const limiters = [...this.byScope.values()];
    const keyed = limiters.filter((one) => one instanceof KeyedLimiters);
    const names = limiters.filter((one) => one instanceof Limiter).map(({ scope }) => scope);
    return { names, isNew: (waitlist) => keyed.some((one) => one.isNew(waitlist)) };
  }

  private *all(): Iterable<Limiter> {
    for (const limiter of this.byScope.values()) {
      if (limiter instanceof KeyedLimiters) yield* limiter.used();
      else yield limiter;
    }
  }

  /** The limiters of a waitlist: keys of two scopes may make the same name. */
  private servesOf(waitlist: string): Limiter[] {
    return [...this.byScope.values()].flatMap((limiter) => this.named(limiter, waitlist) ?? []);
  }

  private named(limiter: Limiter | KeyedLimiters, waitlist: string): Limiter | undefined {
    if (limiter instanceof KeyedLimiters) return limiter.named(waitlist);
    return limiter.scope === waitlist ? limiter : undefined;
  }
}

const keyedOrNot = (scope: string, pattern: string): InvalidHandlerError =>
  new InvalidHandlerError(
    `handler "${pattern}" shares the limitScope "${scope}" with another handler, and only one of them has limitBy; give both one, or each a limitScope of its own`,
  );

function requireEqual(known: ResolvedLimits, given: ResolvedLimits, scope: string, pattern: string): void {
  const names = ['concurrency', 'globalConcurrency', 'rate', 'window'] as const;
  const other = names.find((name) => known[name] !== given[name]);
  if (!other) return;
  throw new InvalidHandlerError(
    `handler "${pattern}" limits scope "${scope}" otherwise than another handler does (${other} ${given[other]}, not ${known[other]}); ` +
      'give all handlers of a scope the same limits, or each a limitScope of its own',
  );
}
