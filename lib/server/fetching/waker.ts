import type { WakeSource } from '../../broker/broker.js';
import type { Clock, ClockTimer } from '../../clock.js';
import { BrokerUnavailableError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { QueueState } from './queue-state.js';
import type { QueueRegistry } from './queue-registry.js';

/** Milliseconds a queue rests after losing one wake-up to others, and at most after losing many in a row. */
const SHORTEST_REST = 1;
const LONGEST_REST = 32;
/** Milliseconds until notices are tried again after they were refused. */
const REFUSED_FOR = 30_000;
/** The same after a connection was lost, which the next may not be. */
const LOST_FOR = 1_000;

/** What has started rounds of idle queues, counted since the server was made. */
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
  /** Something may wait: start a round. */
  readonly pump: () => void;
  /** Look at every queue believed to be empty; answers whether there is any. */
  readonly poll: () => boolean;
}

/**
 * Tells the processor when an idle queue has tasks: by one-shot notices of Redis, armed for each queue that was seen
 * empty, with a jittered poll as the safety net. When several idle servers are woken by one task all but one come too late;
 * those rest a little (longer each time they lose again) before they arm, so that a fleet does not stampede.
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

  /** A queue answered: learns who won the last wake-up, and that no notice came of what was found: where it was armed, none may come. */
  answered(queue: QueueState, asked: number, got: number): void {
    if (got > 0) queue.armed = false;
    if (asked === 0 || !queue.woken) return;
    queue.woken = false;
    if (got > 0) queue.rest = 0;
    else this.rest(queue);
  }

  /**
   * After a round: arms the queues seen empty. They are polled however busy others keep the server: a notice may have been lost without a
   * word, as when a slot of a cluster moves to a node that was never asked.
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
    this.options.pump();
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
    for (const queue of queues) queue.armed = true; // before asking: a notice may come before the answer
    try {
      const backlogs = await this.options.source.armPending(queues.map(({ name }) => name));
      this.refusedUntil = 0;
      for (const queue of queues) this.armed(queue, backlogs.get(queue.name) ?? 0);
    } catch (error) {
      for (const queue of queues) queue.armed = false;
      this.refused(error);
    }
    this.arming = false;
    void this.arm(); // what wanted a notice meanwhile
  }

  private rest(queue: QueueState): void {
    queue.rest = Math.min(LONGEST_REST, Math.max(SHORTEST_REST, queue.rest * 2));
    queue.restTimer?.cancel();
    queue.restTimer = this.options.clock.after(queue.rest * (0.5 + Math.random()), () => {
      queue.restTimer = undefined;
      void this.arm();
    });
  }

  private armed(queue: QueueState, backlog: number): void {
    if (backlog === 0 || queue.backlog !== 0) return;
    queue.backlog = backlog;
    this.options.pump();
  }

  private refused(error: unknown): void {
    if (this.stopped) return;
    if (this.refusedUntil === 0) this.options.events.emit('wakeUnavailable', { error });
    const pause = error instanceof BrokerUnavailableError ? LOST_FOR : REFUSED_FOR;
    this.refusedUntil = this.options.clock.now() + pause;
  }

  private pollNow(): void {
    this.pollTimer = this.options.clock.after(this.pollDelay(), () => this.pollNow());
    if (this.options.poll()) this.polls += 1;
  }

  private pollDelay(): number {
    return this.options.pollInterval * (0.5 + Math.random());
  }
}

const wantsNotice = (queue: QueueState): boolean =>
  !queue.armed && !queue.failed && queue.backlog === 0 && !queue.restTimer;
