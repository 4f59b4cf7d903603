import { isForfeit, LEASE_SECONDS, type Broker } from '../../broker/broker.js';
import { floorSeconds, type Clock } from '../../clock.js';
import { settleAll } from '../../async.js';
import { LeaseExpiredError } from '../../errors.js';
import type { ActiveTask } from '../attempt/active-task.js';
import type { Attempts } from '../attempt/attempts.js';
import type { QueueState } from '../fetching/queue-state.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

/** As asynq's heartbeat. */
const CHECK_INTERVAL_MS = 5_000;
/** A lease with more time left is not extended: short tasks never cost a call. */
const EXTEND_WHEN_LEFT_MS = 20_000;

export interface LeaseKeeperOptions {
  readonly broker: Pick<Broker, 'consumer'>;
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  readonly attempts: Attempts;
}

/**
 * Extends the leases of held tasks, those included that are finished and not yet settled. It has a
 * timer of its own, so that slow monitoring writes cost no lease. A lease is given up when Redis
 * says that it is another server's, or when it could not be extended until shortly before
 * recoverers (which wait a grace of 30 s) may take the task.
 */
export class LeaseKeeper {
  constructor(private readonly options: LeaseKeeperOptions) {}

  async runOnce(): Promise<number> {
    await settleAll([...this.options.queues.all()].map((queue) => this.extend(queue)));
    return CHECK_INTERVAL_MS;
  }

  /**
   * Extends what is due in one queue. Rejects when Redis does not reply; what is past saving is
   * given up before.
   */
  async extend(queue: QueueState, evenFresh = false): Promise<void> {
    const now = this.options.clock.now();
    const due = [...queue.held].filter((task) => evenFresh || task.lease.expiresAt * 1000 - now < EXTEND_WHEN_LEFT_MS);
    if (due.length === 0) return;
    try {
      const leases = due.map((task) => task.lease);
      const kept = await this.options.broker.consumer.extendLeases(
        queue.name,
        leases,
        floorSeconds(now) + LEASE_SECONDS,
      );
      due.forEach((task, index) => {
        // One with a verdict is about to be settled, and that reports the loss.
        if (!kept[index] && !task.verdict && queue.held.has(task)) this.options.attempts.lose(task);
      });
    } catch (error) {
      this.giveUpExpired(due);
      throw error;
    }
  }

  private giveUpExpired(tasks: readonly ActiveTask[]): void {
    const now = this.options.clock.now();
    for (const task of tasks) if (isForfeit(task.lease, now)) this.options.attempts.fail(task, new LeaseExpiredError());
  }
}
