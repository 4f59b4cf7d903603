import type { MaintenanceBroker, WakeSource } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';
import { QueuePasses } from './queue-passes.js';
import { withTimeout } from '../../async.js';
import { QUEUE_REPLY_TIMEOUT_MS } from '../fetching/queue-state.js';

/** Milliseconds between two passes at least, however often queues tell of changes. */
const SHORTEST_INTERVAL = 50;

export interface ForwarderOptions {
  readonly broker: MaintenanceBroker;
  readonly source: WakeSource;
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  /** A queue failed, and others did not. */
  readonly onError: (error: unknown) => void;
  /** Milliseconds between two passes at most. */
  readonly interval: number;
}

/**
 * Moves scheduled and retried tasks to their queue when they are due. Sleeps until the next score is due, and hears of
 * earlier ones by a notice; the interval is the safety net. A failing queue does not hold up the others.
 */
export class Forwarder {
  private lastRun = 0;
  private readonly passes: QueuePasses<{ readonly nextDue: number | undefined }>;

  constructor(private readonly options: ForwarderOptions) {
    const { broker, clock, onError } = options;
    this.passes = new QueuePasses(clock, (queue) => broker.forward(queue), onError);
  }

  async runOnce(): Promise<number> {
    this.lastRun = this.options.clock.now();
    const { answers, again } = await this.passes.run(this.options.queues.names());
    let next: number | undefined;
    for (const { nextDue } of answers.values()) next = earlier(next, nextDue);
    next = earlier(next, await this.arm([...answers.keys()]));
    return Math.min(again, this.delayUntil(next));
  }

  /** Milliseconds a pass asked for by a notice must wait. */
  get cooldown(): number {
    const left = this.lastRun + SHORTEST_INTERVAL - this.options.clock.now();
    return Math.min(Math.max(0, left), SHORTEST_INTERVAL); // a clock that was set back must not stop notices for hours
  }

  private async arm(queues: readonly string[]): Promise<number | undefined> {
    if (queues.length === 0) return undefined;
    try {
      return await withTimeout(this.options.source.armDelayed(queues), QUEUE_REPLY_TIMEOUT_MS, this.options.clock);
    } catch {
      return undefined; // the waker reports it; here the interval does
    }
  }

  private delayUntil(next: number | undefined): number {
    const { interval, clock } = this.options;
    if (next === undefined) return interval;
    return Math.min(interval, Math.max(1, next * 1000 - clock.now()));
  }
}

const earlier = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a;
