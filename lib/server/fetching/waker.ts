import type { WakeSource } from '../../broker/broker.js';
import type { Clock, ClockTimer } from '../../clock.js';
import { BrokerUnavailableError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
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
}

/**
 * Wakes the processor when an idle queue has tasks: by one-shot notices of Redis, armed for each
 * queue that was empty, with a jittered poll as the safety net. When one task wakes several idle
 * servers, all but one come too late. Those rest a little before they arm again, longer each time
 * they lose, so that a fleet does not stampede.
 */
export class Waker {
  private pollTimer: ClockTimer | undefined;
  private arming = false;
  private refusedUntil = 0;
  private stopped = false;
  private notices = 0;
  private polls = 0;

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
    if (asked === 0 || !queue.woken) return;
    queue.woken = false;
    if (got > 0) queue.rest = 0;
    else this.rest(queue);
  }

  /**
   * Arms the queues that are empty. They are polled however busy the others keep the server: a
   * notice may get lost without an error, for example when a slot of a cluster moves to a node that
   * was never asked.
   */
  afterRound(): void {
    if (this.stopped) return;
    void this.arm();
    this.pollTimer ??= this.options.clock.after(this.pollDelay(), () => this.pollNow());
  }

  onPending(name: string): void {
    const queue = this.options.queues.get(name);
    if (!queue || this.stopped) return;
    this.notices += 1;
    queue.armed = false;
    queue.woken = true;
    queue.backlog = Infinity;
    this.options.processor.pump();
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

  private async arm(): Promise<void> {
    const queues = this.options.queues.served().filter(wantsNotice);
    if (this.stopped || this.arming || queues.length === 0 || this.options.clock.now() < this.refusedUntil) return;
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
    if (backlog === 0 || queue.backlog !== 0) return;
    queue.backlog = backlog;
    this.options.processor.pump();
  }

  private refused(error: unknown): void {
    if (this.stopped) return;
    if (this.refusedUntil === 0) this.options.events.emit('wakeUnavailable', { error });
    const pause = error instanceof BrokerUnavailableError ? LOST_PAUSE_MS : REFUSED_PAUSE_MS;
    this.refusedUntil = this.options.clock.now() + pause;
  }

  private pollNow(): void {
    this.pollTimer = this.options.clock.after(this.pollDelay(), () => this.pollNow());
    if (this.options.processor.pollAll()) this.polls += 1;
  }

  private pollDelay(): number {
    return this.options.pollInterval * (0.5 + Math.random());
  }
}

const wantsNotice = (queue: QueueState): boolean =>
  !queue.armed && !queue.failed && queue.backlog === 0 && !queue.restTimer;
