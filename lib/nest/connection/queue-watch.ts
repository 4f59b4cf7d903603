import type { Broker } from '../../broker/broker.js';
import type { ClockTimer } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import { nearest } from '../../validation.js';

/** Servers that start together with this process have published themselves by then. */
const DELAY_MS = 5_000;
/** Whoever makes a queue per tenant has more, and is not told about each. */
const MAX_WATCHED = 1_000;

/**
 * Reports queues that get tasks and have no server. Each queue is looked up once, in the background; those that come within a few
 * seconds share one read of the fleet.
 */
export class QueueWatch {
  /** The queues that servers of this process take tasks of. */
  served: () => readonly string[] = () => [];
  private readonly known = new Set<string>();
  private readonly handlers = new Map<string, string | undefined>();
  private timer: ClockTimer | undefined;

  constructor(
    private readonly broker: Pick<Broker, 'clock' | 'manual' | 'obstacles'>,
    private readonly events: AsynqEvents,
  ) {}

  /**
   * A queue gets tasks.
   *
   * @param handler the method whose definition names it; default: this process enqueues
   */
  add(queue: string, handler?: string): void {
    const { broker, known } = this;
    if (broker.manual || known.has(queue) || known.size >= MAX_WATCHED) return;
    known.add(queue);
    this.handlers.set(queue, handler);
    this.timer ??= broker.clock.after(DELAY_MS, () => void this.check().catch(() => undefined));
  }

  close(): void {
    this.timer?.cancel();
  }

  private async check(): Promise<void> {
    this.timer = undefined;
    const own = new Set(this.served());
    const added = [...this.handlers].filter(([queue]) => !own.has(queue));
    this.handlers.clear();
    if (added.length === 0) return;
    const served = await this.broker.obstacles.servedQueues();
    const all = new Set([...own, ...served]);
    for (const [queue, handler] of added) {
      if (!all.has(queue)) this.events.emit('queueNotServed', { queue, near: nearest(queue, all), handler });
    }
  }
}
