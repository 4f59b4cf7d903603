import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { ConsumerBroker } from '../broker/broker.js';
import type { Clock } from '../clock.js';
import type { AsynqEvents } from '../events/events.js';
import type { ActiveTask } from './active-task.js';
import { allot } from './allot.js';
import type { Intake } from './intake.js';
import type { Lane } from './lane.js';
import type { Lanes } from './lanes.js';
import type { Runner } from './runner.js';
import { withoutStragglers } from './stragglers.js';

/** The most tasks one exchange settles, and the most it takes: bounds the time one script holds Redis. */
const LARGEST_BATCH = 256;
/** Bytes of payloads and results one exchange settles, a larger task alone: Redis drops a client that sends too much at once. */
const LARGEST_BATCH_BYTES = 16 * 1024 * 1024;
/** Milliseconds between two looks at an empty queue for which no wake-up notice is armed. */
const PROBE_EVERY = 20;

/** With fewer slots than this an exchange is too small to be divided. */
const OVERLAP_FROM = 16;

/** Milliseconds by which servers that a limit holds back keep apart from each other. */
const JITTER = 25;

export interface ProcessorOptions {
  readonly broker: ConsumerBroker;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly lanes: Lanes;
  readonly runner: Runner;
  readonly intake: Intake;
  readonly strictPriority: boolean;
  readonly concurrency: number;
  /** Whether the limits of queues are kept. */
  readonly keepsLimits: boolean;
  /** A queue answered an exchange that asked for `asked` tasks with `got`. */
  readonly onAnswer: (lane: Lane, asked: number, got: number) => void;
  /** A queue did not answer. */
  readonly onFailure: (lane: Lane, error: unknown) => void;
  /** No round is under way any more. */
  readonly onRound: () => void;
}

/**
 * Fetches tasks and settles finished ones, in rounds. A round is at most one exchange per queue, all at once: each settles
 * whatever has finished in its queue and fills the free slots allotted to it. While a round is under way tasks finish and
 * gather for the next; so there is one round trip per batch, whatever its size, and one per task at concurrency 1.
 * With many slots a round takes half of them at most, and a second one may be under way when there is enough to do for it: so Redis works
 * on one half while the handlers of the other run.
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

  /** Slots neither taken by a handler nor promised to an exchange. */
  get free(): number {
    let reserved = 0;
    for (const lane of this.options.lanes.all()) reserved += lane.reserved;
    return Math.max(0, this.concurrency - this.options.runner.running - reserved);
  }

  startFetching(): void {
    this.fetching = true;
    this.lookEverywhere();
  }

  /** Nothing more is taken; what an exchange under way still brings goes back to its queue. */
  stopFetching(): void {
    this.fetching = false;
  }

  /** Forgets that queues were empty and looks again: a poll. Answers whether there were any. */
  lookEverywhere(): boolean {
    const empty = [...this.options.lanes.all()].filter(({ backlog }) => backlog === 0);
    for (const lane of empty) lane.backlog = Infinity;
    this.pump();
    return empty.length > 0;
  }

  /** Something was put into a queue. */
  lookInto(queue: string): void {
    const lane = this.options.lanes.get(queue);
    if (!lane) return;
    lane.backlog = Infinity;
    this.pump();
  }

  /** Starts a round once everything that runs now has had its turn: tasks that finish meanwhile share it. */
  pump(): void {
    if (this.roundScheduled || this.rounds >= this.mostRounds) return;
    this.roundScheduled = true;
    setImmediate(() => {
      this.roundScheduled = false;
      void this.round(this.fetching);
    });
  }

  /** An attempt has its verdict: it is settled with the next exchange of its queue. */
  finished(task: ActiveTask): void {
    this.options.lanes.get(task.queue)?.finished.push(task);
    this.pump();
  }

  /** One round by hand; resolves when everything it took has run and is settled. */
  async runOnce(): Promise<void> {
    await this.takeOnce();
    await this.whenQuiet();
  }

  /** One round by hand; resolves when the handlers of everything it took have started. */
  async takeOnce(): Promise<void> {
    this.byHand = true;
    await this.when(() => this.rounds === 0); // a round that settles leaves no room for one that takes
    for (const lane of this.options.lanes.all()) lane.backlog = Infinity;
    await this.round(true);
    // Slots are shared out by priority: a queue that got none has told its backlog, and gets what the others left free.
    if (this.free > 0 && [...this.options.lanes.all()].some(({ backlog }) => backlog > 0)) await this.round(true);
  }

  /** Resolves when no handler runs and nothing waits to be settled. */
  whenQuiet(): Promise<void> {
    return this.when(() => this.options.runner.running === 0 && this.isSettled());
  }

  /** Resolves when no task is held any more; handlers that were given up may still run. */
  whenSettled(): Promise<void> {
    return this.when(() => this.isSettled());
  }

  /** Settles what has finished in a queue and takes up to `take` tasks. Never rejects; answers whether Redis did answer. */
  async exchange(lane: Lane, take: number): Promise<boolean> {
    const batch = lane.finished.splice(0, batchSize(lane.finished));
    lane.exchanges += 1;
    lane.reserved += take;
    let promised = take;
    const keepPromise = (): void => {
      lane.reserved -= promised;
      promised = 0;
    };
    try {
      const settle = batch.map((task) => task.verdict!.settlement);
      const limits = this.options.keepsLimits ? lane.options.limits : undefined;
      const since = take > 0 && this.options.events.measuresWaits;
      const reply = await this.options.broker.exchange(lane.queue, { settle, take, limits, since });
      keepPromise();
      if (take > 0) lane.proven = true;
      const got = reply.tasks.length + reply.damaged.length;
      lane.learn(reply.backlog, take > 0 && got === 0 && reply.limitedFor === 0);
      this.holdBack(lane, reply.limitedFor);
      lane.seenAt = this.options.clock.now();
      this.options.intake.settled(batch, reply.settled);
      this.options.intake.taken(lane, reply, this.fetching || this.byHand);
      this.options.onAnswer(lane, take, got);
      return true;
    } catch (error) {
      lane.finished.unshift(...batch);
      this.options.onFailure(lane, error);
      return false;
    } finally {
      keepPromise();
      lane.exchanges -= 1;
      this.options.lanes.forgetIfDone(lane);
      this.pump(); // for an exchange that outlived its round, or was the syncer's
    }
  }

  /**
   * Finds out whether a queue works again, and settles what waits there; answers whether it does. Where Redis answered before and let
   * nothing be taken, as one that refuses writes does, it must give a task away to be believed.
   */
  probe(lane: Lane): Promise<boolean> {
    const takes = !lane.proven && this.fetching && this.free > 0 && lane.wanted > 0;
    return this.exchange(lane, takes ? 1 : 0);
  }

  /** A limit of the queue was reached: asks again when it may have room, unless something of ours is settled before. */
  private holdBack(lane: Lane, milliseconds: number): void {
    lane.limitTimer?.cancel();
    lane.limitTimer = undefined;
    if (milliseconds === 0) return;
    lane.limitTimer = this.options.clock.after(milliseconds + Math.random() * JITTER, () => {
      lane.limitTimer = undefined;
      this.pump();
    });
  }

  private async round(fetch: boolean): Promise<void> {
    if (this.rounds >= this.mostRounds || (this.rounds > 0 && !this.isWorthAnother(fetch))) return;
    this.rounds += 1;
    const exchanges = this.plan(fetch);
    if (this.rounds < this.mostRounds && this.isWorthAnother(fetch)) this.pump();
    if (this.options.lanes.size === 1) await exchanges[0];
    // A queue that hangs keeps its slots, and does not hold up the others.
    else if (exchanges.length > 0) await withoutStragglers(Promise.all(exchanges), this.options.clock);
    this.rounds -= 1;
    const more = this.hasWork();
    if (this.rounds === 0) this.options.onRound();
    if (more) this.pump();
    this.tellWaiters();
  }

  /** Rounds that may be under way at a time. */
  private get mostRounds(): number {
    return this.concurrency >= OVERLAP_FROM && !this.byHand ? 2 : 1;
  }

  /** Whether there is so much to do that it need not wait for the round under way. */
  private isWorthAnother(fetch: boolean): boolean {
    const enough = this.concurrency / 4;
    const free = fetch ? this.free : 0;
    return [...this.options.lanes.all()].some((lane) => {
      if (!this.isOpen(lane)) return false;
      const known = lane.backlog === Infinity ? 0 : lane.wanted;
      return Math.max(lane.finished.length, Math.min(free, known)) >= enough;
    });
  }

  /** Limits are kept by what Redis knows, and so by one exchange after the other. */
  private isOpen(lane: Lane): boolean {
    return !lane.failed && lane.exchanges < (lane.options.limits ? 1 : this.mostRounds);
  }

  /** Decides the exchanges of a round and starts them. */
  private plan(fetch: boolean): Promise<boolean>[] {
    const open = [...this.options.lanes.all()].filter((lane) => this.isOpen(lane));
    const most = Math.ceil(this.concurrency / this.mostRounds);
    const free = fetch ? Math.min(this.free, most) : 0;
    const shares = open.map(({ options, wanted }) => ({
      priority: options.priority,
      backlog: Math.min(wanted, LARGEST_BATCH),
    }));
    const takes = allot(free, shares, this.options.strictPriority);
    const exchanges: Promise<boolean>[] = [];
    open.forEach((lane, index) => {
      const take = takes[index]!;
      if (take > 0 || lane.finished.length > 0 || (free > 0 && this.wantsLook(lane))) {
        exchanges.push(this.exchange(lane, take));
      }
    });
    return exchanges;
  }

  /** Whether a queue that was allotted nothing is asked for its backlog, so that the next round can count on it. */
  private wantsLook(lane: Lane): boolean {
    if (lane.removed || lane.limitTimer) return false;
    if (lane.backlog === Infinity) return true;
    return lane.backlog === 0 && !lane.armed && this.options.clock.now() - lane.seenAt >= PROBE_EVERY;
  }

  private hasWork(): boolean {
    const mayTake = this.fetching && this.free > 0;
    for (const lane of this.options.lanes.all()) {
      if (!this.isOpen(lane)) continue;
      if (lane.finished.length > 0 || (mayTake && lane.wanted > 0)) return true;
    }
    return false;
  }

  private isSettled(): boolean {
    if (this.rounds > 0) return false;
    for (const lane of this.options.lanes.all()) if (lane.busy || lane.held.size > 0) return false;
    return true;
  }

  private when(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    this.pump();
    return new Promise((resolve) => this.waiters.add({ done, resolve }));
  }

  private tellWaiters(): void {
    for (const waiter of this.waiters) {
      if (!waiter.done()) continue;
      this.waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

/** How many of the finished tasks, from the first, one exchange takes along. */
function batchSize(finished: readonly ActiveTask[]): number {
  let count = 0;
  for (let bytes = 0; count < finished.length && count < LARGEST_BATCH; count++) {
    const settlement = finished[count]!.verdict!.settlement;
    if (!('message' in settlement)) continue;
    bytes += settlement.message?.payload.length ?? 0;
    if (settlement.kind === 'complete') bytes += settlement.result?.length ?? 0;
    if (bytes > LARGEST_BATCH_BYTES) return Math.max(1, count);
  }
  return count;
}
