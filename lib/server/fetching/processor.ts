import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import { withTimeout } from '../../async.js';
import type { Clock } from '../../clock.js';
import { allot } from './allot.js';
import { MAX_BATCH_SIZE } from './batch.js';
import type { QueueListener } from './queue-listener.js';
import type { QueueRegistry } from './queue-registry.js';
import { QUEUE_REPLY_TIMEOUT_MS, type QueueState } from './queue-state.js';

/** Between two polls of an empty queue for which no wake-up notice is armed. */
const UNARMED_POLL_INTERVAL_MS = 20;
/** With fewer slots an exchange is too small to be divided between two rounds. */
const MIN_CONCURRENCY_FOR_OVERLAP = 16;
/** By hand: bounds a pass whose handlers enqueue tasks for themselves without end. */
const MAX_FILLING_ROUNDS = 1_000;

/** Runs tasks, and exchanges them with Redis. */
export interface Exchanger {
  /** Slots taken: handlers that have not settled, and tasks that wait for a limit. */
  readonly running: number;
  /** How many slots there are, of `concurrency`: fewer while a task runs that others must not run beside. */
  slots(concurrency: number): number;
  /** Batches that wait for a slot, and how many tasks were put into batches so far. */
  readonly batchesWaiting: number;
  readonly batched: number;
  /** Whether tasks that an exchange brings are run; else they go back to their queue. */
  accepting: boolean;
  /**
   * Settles what has finished in a queue and claims up to `take` tasks. Never rejects; returns
   * whether Redis replied.
   */
  exchange(queue: QueueState, take: number): Promise<boolean>;
}

export interface ProcessorOptions {
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  readonly exchanger: Exchanger;
  readonly listener: QueueListener;
  readonly strictPriority: boolean;
  readonly concurrency: number;
}

/**
 * Decides when tasks are claimed and settled, in rounds. A round is at most one exchange per queue,
 * all at once: each settles what has finished in its queue and fills the free slots allotted to it.
 * What finishes during a round waits for the next. So there is one round trip per batch, whatever
 * its size, and one per task at concurrency 1.
 *
 * With many slots a round takes half of them at most, and a second one may be under way when there
 * is enough to do for it: Redis works on one half while the handlers of the other run.
 */
export class Processor {
  concurrency: number;
  private fetching = false;
  private byHand = false;
  private roundScheduled = false;
  private rounds = 0;
  private readonly waiters = new Set<{ done: () => boolean; resolve: () => void }>();

  constructor(private readonly options: ProcessorOptions) {
    this.concurrency = options.concurrency;
  }

  /** Slots for tasks that are claimed next. */
  get free(): number {
    return Math.max(0, this.room - this.options.exchanger.batchesWaiting);
  }

  /** Slots neither taken by a handler nor promised to an exchange. */
  get room(): number {
    let reserved = 0;
    for (const queue of this.options.queues.all()) reserved += queue.reserved;
    const { exchanger } = this.options;
    return exchanger.slots(this.concurrency) - exchanger.running - reserved;
  }

  startFetching(): void {
    this.setFetching(true);
    this.pollAll();
  }

  /** Nothing more is claimed. What an exchange under way still brings goes back to its queue. */
  stopFetching(): void {
    this.setFetching(false);
  }

  private setFetching(fetching: boolean): void {
    this.fetching = fetching;
    this.options.exchanger.accepting = fetching || this.byHand;
  }

  /** Whether every slot has a handler that runs. */
  get isFull(): boolean {
    const { exchanger } = this.options;
    return exchanger.running + exchanger.batchesWaiting >= exchanger.slots(this.concurrency);
  }

  /** Whether tasks are pending, or may be, that are still to be claimed. */
  get isBehind(): boolean {
    for (const { backlog } of this.options.queues.all()) if (backlog > 0) return true;
    return false;
  }

  get isFetching(): boolean {
    return this.fetching;
  }

  /** Asks those of the queues that were empty again. Returns whether there are any. */
  pollAll(queues: Iterable<QueueState> = this.options.queues.all()): boolean {
    const empty = Array.from(queues).filter(({ backlog }) => backlog === 0);
    for (const queue of empty) queue.backlog = Infinity;
    this.pump();
    return empty.length > 0;
  }

  /** Something was put into a queue. */
  pollQueue(name: string): void {
    const queue = this.options.queues.get(name);
    if (!queue) return;
    queue.backlog = Infinity;
    this.pump();
  }

  /**
   * Starts a round once everything that runs now has had its turn: tasks that finish meanwhile
   * share it.
   */
  pump(): void {
    if (this.roundScheduled || this.rounds >= this.maxRounds) return;
    this.roundScheduled = true;
    setImmediate(() => {
      this.roundScheduled = false;
      void this.round(this.fetching);
    });
  }

  /** One round by hand; resolves when the handlers of everything it claimed have started. */
  async takeOnce(): Promise<void> {
    this.byHand = true;
    this.setFetching(this.fetching);
    // A round that settles leaves no room for one that claims.
    await this.when(() => this.rounds === 0);
    const { batched } = this.options.exchanger;
    for (const queue of this.options.queues.all()) queue.askAgain();
    await this.round(true);
    // Slots are shared out by priority: a queue that got none has reported its backlog, and gets
    // what others left free.
    if (this.mayTakeMore()) await this.round(true);
    await this.fillBatches(batched);
  }

  /** Tasks of batch handlers take no slot until their batch is called, so more of them may come. */
  private async fillBatches(before: number): Promise<void> {
    const { exchanger } = this.options;
    for (let rounds = 0, known = before; rounds < MAX_FILLING_ROUNDS; rounds++) {
      if (exchanger.batched === known || !this.mayTakeMore()) return;
      known = exchanger.batched;
      await this.when(() => this.rounds === 0);
      await this.round(true);
    }
  }

  private mayTakeMore(): boolean {
    return this.free > 0 && [...this.options.queues.all()].some(({ backlog, heldWanted }) => backlog + heldWanted > 0);
  }

  /** Resolves when no handler runs and nothing waits to be settled. */
  whenQuiet(): Promise<void> {
    return this.when(() => this.options.exchanger.running === 0 && this.isSettled());
  }

  /** Resolves when no task is held any more; handlers that were given up may still run. */
  whenSettled(): Promise<void> {
    return this.when(() => this.isSettled());
  }

  /**
   * Finds out whether a queue works again, and settles what waits there. Returns whether it does. A
   * Redis that replied before but let nothing be claimed, as one that refuses writes does, must
   * give a task away to be believed.
   */
  probe(queue: QueueState): Promise<boolean> {
    const takes = !queue.proven && this.fetching && this.free > 0 && queue.wanted > 0;
    return this.options.exchanger.exchange(queue, takes ? 1 : 0);
  }

  private async round(fetch: boolean): Promise<void> {
    if (this.rounds >= this.maxRounds || (this.rounds > 0 && !this.isWorthAnother(fetch))) return;
    this.rounds += 1;
    const exchanges = this.startExchanges(fetch);
    if (this.rounds < this.maxRounds && this.isWorthAnother(fetch)) this.pump();
    if (this.options.queues.size === 1) await exchanges[0];
    // A queue that hangs keeps its slots, and does not hold up the others.
    else if (exchanges.length > 0)
      await withTimeout(Promise.all(exchanges), QUEUE_REPLY_TIMEOUT_MS, this.options.clock);
    this.rounds -= 1;
    const more = this.hasWork();
    if (this.rounds === 0) this.options.listener.roundsOver();
    if (more) this.pump();
    this.resolveWaiters();
  }

  /** Rounds that may be under way at a time. */
  private get maxRounds(): number {
    return this.concurrency >= MIN_CONCURRENCY_FOR_OVERLAP && !this.byHand ? 2 : 1;
  }

  /** Whether there is enough to do not to wait for the round under way. */
  private isWorthAnother(fetch: boolean): boolean {
    const enough = this.concurrency / 4;
    const free = fetch ? this.free : 0;
    return [...this.options.queues.all()].some((queue) => {
      if (!this.isOpen(queue)) return false;
      const known = queue.backlog === Infinity ? 0 : queue.wanted;
      return Math.max(queue.finished.length, Math.min(free, known)) >= enough;
    });
  }

  /** A queue with limits has one exchange at a time: they are kept by what Redis counts. */
  private isOpen(queue: QueueState): boolean {
    return !queue.failed && queue.exchanges < (queue.options.limits ? 1 : this.maxRounds);
  }

  /** Divides the free slots among the queues. */
  private startExchanges(fetch: boolean): Promise<boolean>[] {
    const open = [...this.options.queues.all()].filter((queue) => this.isOpen(queue));
    const free = fetch ? Math.min(this.free, Math.ceil(this.concurrency / this.maxRounds)) : 0;
    const shares = open.map(({ options, wanted }) => ({
      priority: options.priority,
      backlog: Math.min(wanted, MAX_BATCH_SIZE),
    }));
    const takes = allot(free, shares, this.options.strictPriority);
    const exchanges: Promise<boolean>[] = [];
    open.forEach((queue, index) => {
      const take = takes[index]!;
      if (take > 0 || queue.finished.length > 0 || (free > 0 && this.wantsBacklog(queue))) {
        exchanges.push(this.options.exchanger.exchange(queue, take));
      }
    });
    return exchanges;
  }

  /**
   * Whether a queue that was allotted nothing is asked for its backlog, so that the next round can
   * count on it.
   */
  private wantsBacklog(queue: QueueState): boolean {
    if (queue.removed || queue.limitTimer) return false;
    if (queue.backlog === Infinity) return true;
    const age = this.options.clock.now() - queue.seenAt;
    return queue.backlog === 0 && !queue.armed && age >= UNARMED_POLL_INTERVAL_MS;
  }

  private hasWork(): boolean {
    const mayTake = this.fetching && this.free > 0;
    for (const queue of this.options.queues.all()) {
      if (!this.isOpen(queue)) continue;
      if (queue.finished.length > 0 || (mayTake && queue.wanted > 0)) return true;
    }
    return false;
  }

  private isSettled(): boolean {
    if (this.rounds > 0) return false;
    for (const queue of this.options.queues.all()) if (queue.busy || queue.held.size > 0) return false;
    return true;
  }

  private when(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    this.pump();
    return new Promise((resolve) => this.waiters.add({ done, resolve }));
  }

  private resolveWaiters(): void {
    for (const waiter of this.waiters) {
      if (!waiter.done()) continue;
      this.waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
