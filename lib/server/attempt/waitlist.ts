import type { Broker } from '../../broker/broker.js';
import { backoff } from '../../async.js';
import type { Clock, ClockTimer } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';

/** The longest time between two attempts to find room for a task that is known to wait. */
const MAX_PROBE_DELAY_MS = 5_000;

/** What the limiter knows of the room there is. */
export interface Room {
  /** Tasks that may come inside in this process. */
  readonly room: number;
  /** Milliseconds until the rate has room again. */
  readonly opensIn: number;
  /** Whether other processes count, too. */
  readonly isShared: boolean;
  /** Tasks are woken now: they must not be put aside again unseen. */
  expectRoom(): void;
}

export interface LimiterListener {
  /** Tasks that waited for a limit are at the front of the queue again. */
  tasksWoken(queue: string): void;
}

export interface LimiterDeps {
  readonly broker: Pick<Broker, 'limiting'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  /** The queues this server serves: its limiters wake tasks there. */
  readonly queues: { names(): readonly string[] };
  readonly listener: LimiterListener;
}

/**
 * Where the deferred tasks of one limiter wait: a list in each queue (in Redis, so that every
 * server sees it). Wakes them in their turn: when a task ends here, when a rate has room again, and
 * now and then, because no notice comes of tasks that end elsewhere or died.
 */
export class Waitlist {
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
    else this.probeLater();
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
  async search(queues: readonly string[]): Promise<void> {
    const { waiting } = this;
    const { isShared, room } = this.limiter;
    const unknown = queues.filter((queue) => !waiting.has(queue));
    if (unknown.length === 0) return;
    if (isShared && waiting.size > 0) {
      for (const queue of unknown) waiting.set(queue, 0); // has its turn among the others
      return this.probeLater();
    }
    this.probing = isShared;
    await this.wakeIn(unknown, isShared ? 1 : room);
  }

  /** Wakes tasks where some are known to wait, and in these queues. */
  wake(count: number, queues: readonly string[] = []): Promise<void> {
    return this.wakeIn([...new Set([...this.waiting.keys(), ...queues])], count);
  }

  /** Wakes tasks though no room is known: one at first where other processes count, too. @param queues where some may wait */
  probe(queues: readonly string[] = []): Promise<void> {
    const { isShared, room } = this.limiter;
    this.stopTimer();
    this.probing = isShared;
    return this.wake(isShared ? 1 : room, queues);
  }

  /** Whether tasks are known to wait. */
  get isUsed(): boolean {
    return this.waiting.size > 0;
  }

  close(): void {
    this.closed = true;
    this.stopTimer();
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
  private probeLater(): void {
    const { room, opensIn } = this.limiter;
    if (this.probeTimer || this.closed || this.waiting.size === 0 || room <= 0) return;
    const delay = Math.max(backoff(this.misses + 1, { longest: MAX_PROBE_DELAY_MS }), opensIn);
    this.probeTimer = this.deps.clock.after(delay, () => {
      this.countMiss(); // until one is admitted
      void this.probe();
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
    this.probeLater();
  }
}
