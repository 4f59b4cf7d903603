import type { Broker } from '../../broker/broker.js';
import { backoff } from '../../async.js';
import type { Clock, ClockTimer } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import type { HeldClaims } from './held-claims.js';
import type { Looker, Looks, Slots } from './looks.js';

/** The longest time between two attempts to find room for a task that is known to wait. */
const MAX_PROBE_DELAY_MS = 5_000;
/** The same where a look for room is one small call: a token that a server gives back is known to no other. */
const MAX_TOKEN_DELAY_MS = 1_000;
/** When a rate has room again, servers that have counted none of its starts look so much later than the one that wakes the successors. */
const SUCCESSION_MS = 250;
/** How many tasks are woken at once for starts that are free. */
const MAX_WOKEN = 10;

/** What the limiter knows of the room there is. */
export interface Room {
  /** Tasks that may come inside in this process. */
  readonly room: number;
  /** Milliseconds until the rate has room again. */
  readonly opensIn: number;
  /** Whether other processes count, too. */
  readonly isShared: boolean;
  /** Whether the limiter knows when it will wake tasks next. */
  readonly hasSuccessors?: boolean;
  /** Milliseconds until the next look for room, when it is known. */
  readonly nextLook?: number | undefined;
  /** Only with tokens: looks for some, for tasks that wait. Returns whether there were any. @param queues where some may wait */
  findTokens(queues: readonly string[]): Promise<boolean>;
  /** How many tasks the rate lets start, as far as is known: `Infinity` where nobody can tell. */
  startsLeft(): Promise<number>;
  /** Whether each start has a server that wakes its successor. */
  readonly hasSuccession?: boolean;
  /** Whether room is a token of the fleet. */
  readonly hasTokens: boolean;
  /** Tasks are woken now: they must not be put aside again unseen. */
  expectRoom(): void;
}

export interface LimiterListener extends Slots {
  /** Whether tasks that are claimed run. */
  readonly takesTasks: boolean;
  /** Whether more tasks have a slot than there are. */
  readonly isOverfull: boolean;
  /** So many claimed tasks take a slot, or leave theirs (negative) while they wait here. */
  slotsTaken(count: number): void;
  /** How many tasks of waitlists of a queue the next exchange is to claim. */
  heldWanted(queue: string, count: number): void;
  /** Tasks that waited for a limit are at the front of the queue again. */
  tasksWoken(queue: string): void;
}

export interface LimiterDeps {
  readonly broker: Pick<Broker, 'limiting' | 'fairQueues'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  /** The queues this server serves: its limiters wake tasks there. */
  readonly queues: { names(): readonly string[] };
  readonly listener: LimiterListener;
  readonly held: HeldClaims;
  readonly looks: Looks;
}

/**
 * Where the deferred tasks of one limiter wait: a list in each queue (in Redis, so that every
 * server sees it). Wakes them in their turn: when a task ends here, when a rate has room again, and
 * now and then, because no notice comes of tasks that end elsewhere or died.
 */
export class Waitlist implements Looker {
  /** Tasks known to wait, by queue. */
  private readonly waiting = new Map<string, number>();
  /** There may be more room: each task that is admitted wakes two more, until one is deferred. */
  private probing = false;
  private misses = 0;
  private missedAt = 0;
  private probeTimer: ClockTimer | undefined;
  private closed = false;

  constructor(
    private readonly name: string,
    private readonly limiter: Room,
    private readonly deps: LimiterDeps,
  ) {}

  /** A deferred task is on the list now. */
  joined(queue: string, count = 1): void {
    this.waiting.set(queue, (this.waiting.get(queue) ?? 0) + count);
    const { isShared, room } = this.limiter;
    const cameFree = !isShared && room > 0; // a task ended while this one was on its way
    if (cameFree) void this.wake(1);
    else this.lookLater();
  }

  /** A task was admitted without asking Redis: there is room. */
  found(): void {
    this.misses = 0;
  }

  /** Redis has decided on tasks that arrived together. */
  async decided(admitted: number, deferred: number): Promise<void> {
    if (admitted > 0 && this.probing) this.misses = 0;
    if (deferred > 0) this.probing = false;
    else if (this.probing) await this.wake(2 * admitted);
  }

  /** Looks at queues where tasks wait, if nobody here knows of them. */
  search(queues: readonly string[]): void {
    const { waiting } = this;
    const unknown = queues.filter((queue) => !waiting.has(queue));
    if (unknown.length === 0) return;
    const isFirst = waiting.size === 0;
    for (const queue of unknown) waiting.set(queue, 0); // has its turn among the others
    if (isFirst) this.deps.looks.add(this);
    else this.lookLater();
  }

  /** Wakes tasks where some are known to wait, and in these queues. */
  wake(count: number, queues: readonly string[] = []): Promise<void> {
    return this.wakeIn([...new Set([...this.waiting.keys(), ...queues])], count);
  }

  get needsSlot(): boolean {
    return this.limiter.hasTokens;
  }

  look(): Promise<boolean> {
    return this.probe();
  }

  /**
   * Wakes tasks though no room is known: one at first where other processes count, too. Returns whether there was room.
   *
   * @param queues where some may wait
   */
  async probe(queues: readonly string[] = []): Promise<boolean> {
    const { limiter } = this;
    this.stopTimer();
    this.deps.looks.delete(this);
    if (limiter.hasTokens) return limiter.findTokens(queues);
    if (!limiter.isShared) {
      await this.wake(limiter.room, queues);
      return true;
    }
    const left = await limiter.startsLeft();
    if (left === 0) {
      this.lookLater();
      return false;
    }
    this.probing = left > MAX_WOKEN;
    await this.wake(left === Infinity ? 1 : Math.min(left, MAX_WOKEN), queues);
    return true;
  }

  /** The queue whose tasks have their turn. @param queues where some may wait, unknown here */
  nextQueue(queues: readonly string[]): string | undefined {
    const names = this.deps.queues.names();
    for (const queue of this.waiting.keys()) {
      if (names.includes(queue)) return queue;
      this.waiting.delete(queue);
    }
    return queues.find((queue) => names.includes(queue));
  }

  /** An exchange has reported how many wait in a queue. Others have their turn before it. */
  learned(queue: string, left: number): void {
    this.waiting.delete(queue);
    if (left > 0) this.waiting.set(queue, left);
  }

  /** None could be claimed there. Others have their turn before it. */
  pass(queue: string): void {
    const count = this.waiting.get(queue);
    if (count !== undefined) this.learned(queue, Math.max(1, count));
  }

  /** Tasks that are known to wait. */
  get size(): number {
    let size = 0;
    for (const count of this.waiting.values()) size += count;
    return size;
  }

  /** Whether tasks are known to wait. */
  get isUsed(): boolean {
    return this.waiting.size > 0;
  }

  /** Whether it has looked for room, and will again later. */
  get hasLooked(): boolean {
    return this.probeTimer !== undefined;
  }

  close(): void {
    this.closed = true;
    this.stopTimer();
    this.deps.looks.delete(this);
  }

  private stopTimer(): void {
    this.probeTimer?.cancel();
    this.probeTimer = undefined;
  }

  /**
   * Wakes a task later, though no room is known: a task of another process may have ended, or a
   * server without room may have claimed the task that was woken here. The delays grow, and are
   * never shorter than the time until the rate has room.
   */
  lookLater(): void {
    const { room, opensIn, hasSuccessors, hasSuccession, nextLook, hasTokens } = this.limiter;
    const longest = hasTokens ? MAX_TOKEN_DELAY_MS : MAX_PROBE_DELAY_MS;
    if (this.probeTimer || this.closed || this.waiting.size === 0 || room <= 0 || hasSuccessors) return;
    const opens = opensIn > 0 ? opensIn + (hasSuccession ? SUCCESSION_MS : 1) : 0;
    const isKnown = this.misses === 0 && opensIn > 0;
    const delay = nextLook ?? (isKnown ? opens : Math.max(backoff(this.misses + 1, { longest }), opens));
    this.probeTimer = this.deps.clock.after(delay, () => {
      this.probeTimer = undefined;
      this.countMiss(); // until one is admitted
      this.deps.looks.add(this);
    });
  }

  /** Counts probes in a row after which no task was admitted. Old ones do not count. */
  private countMiss(): void {
    const now = this.deps.clock.now();
    this.misses = now - this.missedAt > 2 * MAX_PROBE_DELAY_MS ? 0 : this.misses + 1;
    this.missedAt = now;
  }

  /**
   * Wakes up to `count` tasks, as far as there is room, in the first of the queues that have some.
   */
  private async wakeIn(queues: readonly string[], count: number): Promise<void> {
    const { broker, queues: served, listener, events } = this.deps;
    const names = served.names();
    let wanted = Math.min(count, this.limiter.room);
    try {
      for (const queue of queues) {
        if (wanted <= 0 || this.limiter.opensIn > 0) break;
        if (!names.includes(queue)) {
          this.waiting.delete(queue);
          continue;
        }
        this.limiter.expectRoom();
        const { woken, left } = await broker.limiting.wakeWaiting(queue, this.name, wanted);
        this.waiting.delete(queue);
        if (left > 0) this.waiting.set(queue, left); // behind the other queues
        if (woken > 0) listener.tasksWoken(queue);
        wanted -= woken;
      }
    } catch (error) {
      events.emit('loopFailed', { loop: 'limiter', error });
    }
    this.lookLater();
  }
}
