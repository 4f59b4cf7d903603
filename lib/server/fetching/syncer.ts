import type { AsynqEvents } from '../../events/events.js';
import type { Processor } from './processor.js';
import type { QueueState } from './queue-state.js';
import type { QueueRegistry } from './queue-registry.js';
import { backoff } from '../../async.js';

/** The longest time between two tries: what waits here is done, and its lease runs out. */
const MAX_RETRY_DELAY_MS = 1_000;

export interface LeaseExtender {
  /** @param evenFresh also those that have much time left */
  extend(queue: QueueState, evenFresh: boolean): Promise<void>;
}

export interface SyncerOptions {
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly leases: LeaseExtender;
  readonly processor: Processor;
}

/**
 * Takes over queues whose last exchange failed: extends their leases, then settles what is
 * finished, until Redis replies. The processor leaves them alone meanwhile. Nothing finished is
 * dropped: the lease fences a write that comes too late.
 */
export class Syncer {
  private attempts = 0;

  constructor(private readonly options: SyncerOptions) {}

  /** Takes a queue over from the processor. Returns whether it was not taken over before. */
  takeOver(queue: QueueState, error: unknown): boolean {
    if (queue.failed) return false;
    queue.failed = true;
    this.options.events.emit('queueUnreachable', { queue: queue.name, error, unsettled: queue.finished.length });
    return true;
  }

  async runOnce(): Promise<number> {
    const failed = [...this.options.queues.all()].filter((queue) => queue.failed && !queue.busy);
    await Promise.all(failed.map((queue) => this.retry(queue)));
    const pending = [...this.options.queues.all()].some((queue) => queue.failed);
    if (!pending) {
      this.attempts = 0;
      return Infinity;
    }
    return backoff(++this.attempts, { longest: MAX_RETRY_DELAY_MS });
  }

  private async retry(queue: QueueState): Promise<void> {
    try {
      await this.options.leases.extend(queue, true);
    } catch {
      return; // still away: the exchange below would only fail too
    }
    if (!(await this.options.processor.probe(queue))) return;
    queue.failed = false;
    queue.proven = false;
    queue.backlog = Infinity;
    this.options.events.emit('queueReachable', { queue: queue.name });
    this.options.processor.pump();
  }
}
