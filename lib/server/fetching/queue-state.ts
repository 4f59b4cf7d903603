import type { LeaseGuard } from '../../broker/lease-guards.js';
import type { ExchangeReply } from '../../broker/broker.js';
import type { Clock, ClockTimer } from '../../clock.js';
import type { ActiveTask } from '../attempt/active-task.js';
import { HeldTasks } from './held-tasks.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/**
 * How long a round or a pass waits for the reply about one queue: one node of a cluster may hang.
 */
export const QUEUE_REPLY_TIMEOUT_MS = 1_000;
/** Servers that a limit holds back try again at different times. */
const LIMIT_JITTER_MS = 25;

interface RestListener {
  workAvailable(): void;
}

/** Everything the server keeps about one queue. */
export class QueueState {
  /**
   * Tasks believed to be in `pending`: what the last reply said, `Infinity` when it may have
   * changed.
   */
  backlog = Infinity;
  /** When Redis reported the backlog last, in milliseconds since the epoch. */
  seenAt = 0;
  /** Tasks of its waitlists that limiters have room for. */
  heldWanted = 0;
  /** Slots promised to the exchanges under way. */
  reserved = 0;
  /** Exchanges under way. */
  exchanges = 0;
  /**
   * The last exchange failed. Until Redis replies again only the syncer, not the processor, sends
   * exchanges.
   */
  failed = false;
  /**
   * Since its last failure Redis has let tasks be claimed. One that refuses writes replies, too.
   */
  proven = true;
  /** A wake-up notice is armed. */
  armed = false;
  /** Milliseconds before the next notice is armed, because other servers won the last wake-ups. */
  rest = 0;
  restTimer: ClockTimer | undefined;
  /** A wake-up has come; the next exchange shows whether it left a task for us. */
  woken = false;
  /** Runs while a limit of the queue holds its tasks back. */
  limitTimer: ClockTimer | undefined;
  /** Runs until a key of a fair queue that its own limit holds back may have room. */
  private openTimer: ClockTimer | undefined;
  /** No longer served: what runs is settled, nothing new is claimed. */
  removed = false;
  /** Tasks whose lease this server holds: they run, or are finished and not yet settled. */
  readonly held: HeldTasks;
  /** Tasks no longer held whose handlers still run: they were given up. */
  readonly lingering = new Set<ActiveTask>();
  /** Tasks with a verdict, for the next exchange. */
  finished: ActiveTask[] = [];

  private lastBacklog = Infinity;

  constructor(
    readonly name: string,
    public options: ResolvedQueueOptions,
    guard?: LeaseGuard,
  ) {
    this.held = new HeldTasks(guard);
  }

  get busy(): boolean {
    return this.exchanges > 0;
  }

  /**
   * Tasks worth asking for beyond those asked for. A limit that was reached has room when something
   * of ours is settled, or later.
   */
  get wanted(): number {
    if (this.removed || (this.limitTimer && this.finished.length === 0)) return 0;
    return Math.max(0, Math.min(this.backlog + this.heldWanted, this.room) - this.reserved);
  }

  /** Handlers that may start. One that goes on though its task is settled still counts. */
  get room(): number {
    const { concurrency } = this.options;
    if (concurrency === Infinity) return concurrency;
    let ended = 0;
    for (const { handlerSettled } of this.finished) if (handlerSettled) ended += 1;
    return concurrency - (this.held.size - ended) - this.lingering.size;
  }

  /**
   * Notes what a reply to an exchange says. One that asked for tasks and got none has passed over
   * dangling ids as long as the backlog shrinks. When it does not shrink, nothing can be claimed
   * there, and asking again would spin.
   */
  learn(
    { tasks, damaged, backlog, limitedFor, opensIn, aside }: ExchangeReply,
    asked: number,
    clock: Clock,
    listener: RestListener,
  ): void {
    const gotNothing = asked > 0 && tasks.length + damaged.length === 0 && limitedFor === 0 && !aside;
    if (asked > 0) this.proven = true;
    this.backlog = gotNothing && backlog >= this.lastBacklog ? 0 : backlog;
    this.lastBacklog = backlog;
    this.seenAt = clock.now();
    if (limitedFor > 0 || this.limitTimer) this.holdBack(limitedFor, clock, listener);
    if (opensIn !== undefined) this.awaitOpening(opensIn, clock, listener);
  }

  /**
   * A limit of the queue was reached: it rests until there may be room, unless something of ours is
   * settled before.
   */
  private holdBack(milliseconds: number, clock: Clock, listener: RestListener): void {
    this.endRest();
    if (milliseconds === 0) return;
    this.limitTimer = clock.after(milliseconds + Math.random() * LIMIT_JITTER_MS, () => {
      this.limitTimer = undefined;
      listener.workAvailable();
    });
  }

  /** Other keys go on meanwhile. */
  private awaitOpening(milliseconds: number, clock: Clock, listener: RestListener): void {
    this.openTimer?.cancel();
    this.openTimer = undefined;
    if (milliseconds === 0 || this.removed) return;
    this.openTimer = clock.after(milliseconds + Math.random() * LIMIT_JITTER_MS, () => {
      this.openTimer = undefined;
      this.backlog = Infinity;
      listener.workAvailable();
    });
  }

  /** A limit of the queue is asked again, too. */
  askAgain(): void {
    this.backlog = Infinity;
    this.endRest();
  }

  /** Its limits are asked about again. */
  endRest(): void {
    this.limitTimer?.cancel();
    this.limitTimer = undefined;
    this.openTimer?.cancel();
    this.openTimer = undefined;
  }

  /** Its lease is no longer ours to keep. A handler that still runs keeps its slot. */
  release(task: ActiveTask): void {
    this.held.delete(task);
    if (!task.handlerSettled) this.lingering.add(task);
  }
}
