import { isForfeit, LEASE_SECONDS, type ConsumerBroker } from '../../broker/broker.js';
import { floorSeconds, type Clock } from '../../clock.js';
import { settleAll } from '../../async.js';
import type { ActiveTask } from '../attempt/active-task.js';
import type { QueueState } from '../fetching/queue-state.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

/** Milliseconds between two passes, as asynq's heartbeat. */
const EVERY = 5_000;
/** A lease with more than this left (milliseconds) is not yet extended: short tasks never cost a call. */
const FRESH = 20_000;

export interface LeaseKeeperOptions {
  readonly broker: ConsumerBroker;
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  /** The lease is another's, beyond doubt. */
  readonly onLost: (task: ActiveTask) => void;
  /** Redis has been away so long that another server may take the task any moment. */
  readonly onExpired: (task: ActiveTask) => void;
}

/**
 * Keeps the leases of held tasks alive, those included that are finished and wait for Redis to be told. Runs on its own timer,
 * so that slow monitoring writes cannot cost a lease. A lease is given up when Redis says it is another's, or when it could
 * not be extended until shortly before recoverers (which wait a grace of 30 s) may take the task.
 */
export class LeaseKeeper {
  constructor(private readonly options: LeaseKeeperOptions) {}

  async runOnce(): Promise<number> {
    await settleAll([...this.options.queues.all()].map((queue) => this.extend(queue)));
    return EVERY;
  }

  /** Extends what is due in one queue. Rejects when Redis does not answer, after giving up what is past saving. */
  async extend(queue: QueueState, evenFresh = false): Promise<void> {
    const now = this.options.clock.now();
    const due = [...queue.held].filter((task) => evenFresh || task.lease.expiresAt * 1000 - now < FRESH);
    if (due.length === 0) return;
    try {
      const leases = due.map((task) => task.lease);
      const kept = await this.options.broker.extendLeases(queue.name, leases, floorSeconds(now) + LEASE_SECONDS);
      due.forEach((task, index) => {
        // With a verdict it is about to be settled, which tells it is lost: once.
        if (!kept[index] && !task.verdict && queue.held.has(task)) this.options.onLost(task);
      });
    } catch (error) {
      this.giveUpExpired(due);
      throw error;
    }
  }

  private giveUpExpired(tasks: readonly ActiveTask[]): void {
    const now = this.options.clock.now();
    for (const task of tasks) if (isForfeit(task.lease, now)) this.options.onExpired(task);
  }
}
