import { floorSeconds } from '../../clock.js';
import { settleAll } from '../../async.js';
import type { Grouping } from './grouping.js';

/** Milliseconds between two looks: longer than any aggregator takes to see that a group is due. */
const EVERY = 10_000;

/**
 * Tells, once per queue, of groups that nobody aggregates: this server has no function for them, and they are still there on a
 * second look after they were due by its options. Whether another server does is seen by what happens, not asked.
 */
export class GroupWatch {
  private readonly told = new Set<string>();
  private suspects = new Set<string>();

  constructor(private readonly grouping: Grouping) {}

  async runOnce(): Promise<number> {
    const suspects = new Set<string>();
    const queues = this.grouping.queues.names().filter((queue) => !this.told.has(queue));
    await settleAll(queues.map((queue) => this.look(queue, suspects))).finally(() => (this.suspects = suspects));
    return EVERY;
  }

  private async look(queue: string, suspects: Set<string>): Promise<void> {
    const { broker, clock, events, aggregators, groups } = this.grouping;
    const now = floorSeconds(clock.now());
    const overdue = await broker.listOverdueGroups(queue, (group) =>
      aggregators.find(group) ? undefined : now - groups.policyOf(queue, group).gracePeriod,
    );
    for (const group of overdue) {
      const suspect = `${queue}\n${group}`;
      suspects.add(suspect);
      if (!this.suspects.has(suspect) || this.told.has(queue)) continue;
      this.told.add(queue);
      events.emit('groupNotAggregated', { queue, group });
    }
  }
}
