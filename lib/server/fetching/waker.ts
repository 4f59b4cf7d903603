import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { WakeSource } from '../../broker/broker.js';
import type { Clock, ClockTimer } from '../../clock.js';
import { BrokerUnavailableError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { CrewSeat } from '../crew/crew-seat.js';
import type { Overload, StandbyCaller } from '../crew/standby-caller.js';
import type { Processor } from './processor.js';
import type { QueueState } from './queue-state.js';
import type { QueueRegistry } from './queue-registry.js';

/**
 * How long a queue rests after it lost a wake-up to other servers, and at most after it lost many
 * in a row.
 */
const MIN_REST_MS = 1;
const MAX_REST_MS = 32;
/** How long no notice is armed after Redis refused one. */
const REFUSED_PAUSE_MS = 30_000;
/** The same after the connection was lost. */
const LOST_PAUSE_MS = 1_000;
/**
 * A queue whose notice is armed is polled this many times as rarely by all servers of a crew but one; and any queue by a standby
 * that was not called.
 */
const ARMED_POLL_FACTOR = 30;
const STANDBY_POLL_FACTOR = 120;
/** Polls of more queues than these are spread over a longer time: so many milliseconds for each. */
const FEW_QUEUES = 25;
const POLL_PACE_MS = 40;

/** What started rounds of idle queues, counted since the server was made. */
export interface Wakeups {
  readonly notices: number;
  readonly polls: number;
}

export interface WakerOptions {
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly source: WakeSource;
  /** Milliseconds between two polls of idle queues, on average. */
  readonly pollInterval: number;
  readonly processor: Processor;
  readonly seat: Pick<CrewSeat, 'isAwake' | 'isCrowded' | 'polls'>;
  readonly caller: Pick<StandbyCaller, 'check'>;
}

/**
 * Wakes the processor when an idle queue has tasks: by one-shot notices of Redis, armed for each
 * queue that was empty, with a jittered poll as the safety net. When one task wakes several idle
 * servers, all but one come too late. Those rest a little before they arm again, longer each time
 * they lose, so that a fleet does not stampede. A standby arms nothing until it is called. A server that is full while tasks
 * wait has others called.
 */
export class Waker implements Overload {
  private pollTimer: ClockTimer | undefined;
  private arming = false;
  private armScheduled = false;
  private refusedUntil = 0;
  private stopped = false;
  private notices = 0;
  private polls = 0;
  private ticks = 0;

  constructor(private readonly options: WakerOptions) {}

  get wakeups(): Wakeups {
    return { notices: this.notices, polls: this.polls };
  }

  /**
   * Learns from a reply who won the last wake-up. A queue that had tasks has to be armed again: its
   * notice was used up by them, or it is lost.
   */
  exchanged(queue: QueueState, asked: number, got: number): void {
    if (got > 0) queue.armed = false;
    if (queue.backlog > 0) this.options.caller.check(this);
    if (asked === 0 || !queue.woken) return;
    queue.woken = false;
    if (got > 0) queue.rest = 0;
    else this.rest(queue);
  }

  /** Tasks may wait that were no concern of this server before: those of a standby that is called, or has got a seat. */
  wakeUp(): void {
    if (this.stopped) return;
    this.onLost();
    this.options.processor.pollAll();
  }

  get isOverloaded(): boolean {
    const { processor, queues } = this.options;
    return processor.isFetching && queues.served().some((queue) => this.isBeyond(queue) && this.isFull(queue));
  }

  async lookAgain(): Promise<void> {
    const { queues, source } = this.options;
    const waiting = queues.served().filter((queue) => this.isFull(queue) && queue.backlog > 0);
    if (waiting.length === 0 || !this.mayArm) return;
    for (const queue of waiting) queue.armed = true; // a notice may come before the reply
    // What cannot be read is as it was.
    const backlogs = await source.armPending(waiting.map(({ name }) => name)).catch(() => undefined);
    for (const queue of waiting) {
      if (backlogs) this.looked(queue, backlogs.get(queue.name) ?? 0);
      else queue.armed = false;
    }
  }

  /**
   * Arms the queues that are empty. They are polled however busy the others keep the server: a
   * notice may get lost without an error, for example when a slot of a cluster moves to a node that
   * was never asked.
   */
  afterRound(): void {
    if (this.stopped) return;
    this.armSoon();
    this.pollTimer ??= this.options.clock.after(this.pollDelay(), () => this.pollNow());
  }

  /** This process has put a task there itself: a notice would come later. */
  released(name: string): void {
    const { queues, processor, seat } = this.options;
    if (!this.stopped && seat.isAwake && queues.get(name)?.backlog === 0) processor.pollQueue(name);
  }

  onPending(name: string): void {
    const { queues, processor, seat } = this.options;
    const queue = queues.get(name);
    if (!queue || this.stopped || !seat.isAwake) return;
    this.notices += 1;
    queue.armed = false;
    queue.woken = true;
    queue.backlog = Infinity;
    if (seat.isCrowded && this.isFull(queue)) this.rest(queue); // then it looks whether others have taken it
    else processor.pump();
  }

  onLost(): void {
    for (const queue of this.options.queues.all()) queue.armed = false;
  }

  /** No more notices or polls. */
  stop(): void {
    this.stopped = true;
    this.pollTimer?.cancel();
    for (const queue of this.options.queues.all()) queue.restTimer?.cancel();
  }

  /** After the round that comes next: what has ended at once is settled before a notice is asked for. */
  private armSoon(): void {
    if (this.armScheduled) return;
    this.armScheduled = true;
    setImmediate(() =>
      setImmediate(() => {
        this.armScheduled = false;
        void this.arm();
      }),
    );
  }

  private async arm(): Promise<void> {
    if (this.stopped || this.arming || !this.mayArm || !this.options.seat.isAwake) return;
    const queues = this.options.queues.served().filter((queue) => this.wantsNotice(queue));
    if (queues.length === 0) return;
    this.arming = true;
    for (const queue of queues) queue.armed = true; // a notice may come before the reply
    try {
      const backlogs = await this.options.source.armPending(queues.map(({ name }) => name));
      this.refusedUntil = 0;
      for (const queue of queues) this.armed(queue, backlogs.get(queue.name) ?? 0);
    } catch (error) {
      for (const queue of queues) queue.armed = false;
      this.refused(error);
    }
    this.arming = false;
    void this.arm(); // queues that became empty meanwhile
  }

  private rest(queue: QueueState): void {
    queue.rest = Math.min(MAX_REST_MS, Math.max(MIN_REST_MS, queue.rest * 2));
    queue.restTimer?.cancel();
    queue.restTimer = this.options.clock.after(queue.rest * (0.5 + Math.random()), () => {
      queue.restTimer = undefined;
      void this.arm();
    });
  }

  private armed(queue: QueueState, backlog: number): void {
    if (queue.backlog === Infinity && this.isFull(queue)) return this.looked(queue, backlog);
    if (backlog === 0 || queue.backlog !== 0) return;
    queue.backlog = backlog;
    this.options.processor.pump();
  }

  /** A full server knows now what waits for others. */
  private looked(queue: QueueState, backlog: number): void {
    if (!queue.armed) return; // it has changed since
    queue.backlog = backlog;
    queue.armed = backlog === 0;
    queue.woken = false;
    if (backlog > 0) this.options.caller.check(this);
  }

  private get mayArm(): boolean {
    return this.options.clock.now() >= this.refusedUntil;
  }

  private wantsNotice(queue: QueueState): boolean {
    if (queue.armed || queue.failed || queue.restTimer) return false;
    return queue.backlog === 0 || (queue.backlog === Infinity && this.options.seat.isCrowded && this.isFull(queue));
  }

  private isFull(queue: QueueState): boolean {
    return this.options.processor.isFull || queue.room <= 0;
  }

  /** Whether tasks wait that no limit of the queue holds back, as far as can be known. */
  private isBeyond({ backlog, failed, limitTimer }: QueueState): boolean {
    return !failed && !limitTimer && backlog > 0 && (backlog !== Infinity || !this.mayArm);
  }

  private refused(error: unknown): void {
    if (this.stopped) return;
    if (this.refusedUntil === 0) this.options.events.emit('wakeUnavailable', { error });
    const pause = error instanceof BrokerUnavailableError ? LOST_PAUSE_MS : REFUSED_PAUSE_MS;
    this.refusedUntil = this.options.clock.now() + pause;
  }

  private pollNow(): void {
    this.pollTimer = this.options.clock.after(this.pollDelay(), () => this.pollNow());
    this.ticks += 1;
    const { queues, processor } = this.options;
    if (processor.pollAll(queues.served().filter((queue, index) => this.isDue(queue, index)))) this.polls += 1;
  }

  /** Queues are polled in turns. */
  private isDue({ armed }: QueueState, index: number): boolean {
    const { seat, queues, pollInterval } = this.options;
    const few = queues.size <= FEW_QUEUES;
    let turns = few ? 1 : Math.ceil((queues.size * POLL_PACE_MS) / pollInterval);
    if (!seat.isAwake) turns = Math.max(turns, STANDBY_POLL_FACTOR);
    else if (!armed) return true;
    else if (!seat.polls) turns = Math.max(turns, ARMED_POLL_FACTOR);
    return (this.ticks + index) % turns === 0;
  }

  private pollDelay(): number {
    return this.options.pollInterval * (0.5 + Math.random());
  }
}
