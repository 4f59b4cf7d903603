import type { AsynqEvents } from '../../events/events.js';
import type { Lane } from './lane.js';
import type { Lanes } from './lanes.js';
import { backoff } from '../loop.js';

/** Milliseconds between two tries at most: what waits here has been done, and its lease runs out. */
const LONGEST_PAUSE = 1_000;

export interface SyncerOptions {
  readonly events: AsynqEvents;
  readonly lanes: Lanes;
  readonly extendLeases: (lane: Lane) => Promise<void>;
  /** Settles what waits in the queue; answers whether Redis answered. */
  readonly settle: (lane: Lane) => Promise<boolean>;
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
  failed(lane: Lane, error: unknown): boolean {
    if (lane.failed) return false;
    lane.failed = true;
    this.options.events.emit('queueUnreachable', { queue: lane.queue, error, unsettled: lane.finished.length });
    return true;
  }

  async runOnce(): Promise<number> {
    const failed = [...this.options.lanes.all()].filter((lane) => lane.failed && !lane.busy);
    await Promise.all(failed.map((lane) => this.retry(lane)));
    const pending = [...this.options.lanes.all()].some((lane) => lane.failed);
    if (!pending) {
      this.attempts = 0;
      return Infinity;
    }
    return backoff(++this.attempts, LONGEST_PAUSE);
  }

  private async retry(lane: Lane): Promise<void> {
    try {
      await this.options.extendLeases(lane);
    } catch {
      return; // still away: the exchange below would only fail too
    }
    if (!(await this.options.settle(lane))) return;
    lane.failed = false;
    lane.proven = false;
    lane.backlog = Infinity;
    this.options.events.emit('queueReachable', { queue: lane.queue });
    this.options.onReachable();
  }
}
