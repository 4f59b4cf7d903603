import type { AsynqEvents } from '../../events/events.js';
import type { QueueState } from './queue-state.js';
import type { QueueRegistry } from './queue-registry.js';
import { backoff } from '../../async.js';

/** Milliseconds between two tries at most: what waits here has been done, and its lease runs out. */
const LONGEST_PAUSE = 1_000;

export interface SyncerOptions {
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly extendLeases: (queue: QueueState) => Promise<void>;
  /** Settles what waits in the queue; answers whether Redis answered. */
  readonly settle: (queue: QueueState) => Promise<boolean>;
  readonly onReachable: () => void;
}

/**
 * Looks after queues whose last exchange failed: leases first, then the finished tasks, until Redis answers; the processor leaves
 * them alone meanwhile. Nothing finished is dropped: the lease fences a write that comes too late.
 */
export class Syncer {
  private attempts = 0;

  constructor(private readonly options: SyncerOptions) {}

  /** Takes a queue over from the processor; answers whether that is new. */
  failed(queue: QueueState, error: unknown): boolean {
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
    return backoff(++this.attempts, { longest: LONGEST_PAUSE });
  }

  private async retry(queue: QueueState): Promise<void> {
    try {
      await this.options.extendLeases(queue);
    } catch {
      return; // still away: the exchange below would only fail too
    }
    if (!(await this.options.settle(queue))) return;
    queue.failed = false;
    queue.proven = false;
    queue.backlog = Infinity;
    this.options.events.emit('queueReachable', { queue: queue.name });
    this.options.onReachable();
  }
}
