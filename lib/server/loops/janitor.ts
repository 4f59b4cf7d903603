import type { Broker } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import { settleAll } from '../../async.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';
import { Turns } from './turns.js';

/**
 * Between two searches for groups that are not listed, and for lines of a fair queue that are in no ring: each scans every key of the Redis. And
 * between two looks for lines of queues that are not fair here.
 */
const REPAIR_INTERVAL_MS = 600_000;

export interface JanitorOptions {
  readonly broker: Pick<Broker, 'maintenance' | 'groups' | 'fairQueues'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  /** Milliseconds between two passes. */
  readonly interval: number;
  /** Tasks deleted in one step. */
  readonly batchSize: number;
  /** Only a server that aggregates groups repairs them. */
  readonly repairGroups: boolean;
}

/**
 * Deletes completed tasks whose retention is over, and archived tasks that are too old or too many,
 * in small steps. Lists groups that no aggregator would find, and lines of fair queues that would have no turn.
 */
export class Janitor {
  private readonly repairedAt = new Map<string, number>();

  private readonly turns: Turns;

  constructor(private readonly options: JanitorOptions) {
    this.turns = new Turns(options.interval);
  }

  async runOnce(): Promise<number> {
    const { queues, delay } = this.turns.take(this.options.queues.names());
    await settleAll(queues.map((queue) => this.clean(queue)));
    return delay;
  }

  private async clean(queue: string): Promise<void> {
    const { broker, batchSize } = this.options;
    while ((await broker.maintenance.deleteExpiredCompleted(queue, batchSize)) >= batchSize);
    while ((await broker.maintenance.trimArchived(queue, batchSize)) >= batchSize);
    await this.repair(queue);
  }

  private async repair(queue: string): Promise<void> {
    const { broker, clock, events, repairGroups } = this.options;
    const due = (this.repairedAt.get(queue) ?? -Infinity) + REPAIR_INTERVAL_MS;
    if (clock.now() < due) return;
    this.repairedAt.set(queue, clock.now());
    if (broker.fairQueues.has(queue)) await broker.maintenance.repairLines(queue);
    else if (await broker.maintenance.hasLines(queue)) {
      broker.fairQueues.add(queue); // or no server takes them, after a deploy without the option
      events.emit('linesFound', { queue });
    }
    if (!repairGroups) return;
    const { listed, removed } = await broker.groups.repairGroups(queue);
    if (listed + removed > 0) events.emit('groupsRepaired', { queue, listed, removed });
  }
}
