import { floorSeconds } from '../../clock.js';
import { settleAll } from '../../async.js';
import type { GroupServices } from './group-services.js';

/** Longer than any aggregator takes to find a group that is due. */
const WATCH_INTERVAL_MS = 10_000;

/**
 * Reports, once per queue, a group that nobody aggregates. This server has no function for it, and
 * it was overdue by this server's options in two passes. Another server may aggregate it: then it
 * would be gone by the second pass.
 */
export class GroupWatch {
  private readonly reported = new Set<string>();
  private suspects = new Set<string>();

  constructor(private readonly services: GroupServices) {}

  async runOnce(): Promise<number> {
    const suspects = new Set<string>();
    const queues = this.services.queues.names().filter((queue) => !this.reported.has(queue));
    await settleAll(queues.map((queue) => this.check(queue, suspects))).finally(() => (this.suspects = suspects));
    return WATCH_INTERVAL_MS;
  }

  private async check(queue: string, suspects: Set<string>): Promise<void> {
    const { broker, clock, events, aggregators, groups } = this.services;
    const now = floorSeconds(clock.now());
    const overdue = await broker.groups.listOverdueGroups(queue, (group) =>
      aggregators.find(group) ? undefined : now - groups.policyOf(queue, group).gracePeriod,
    );
    for (const group of overdue) {
      const suspect = `${queue}\n${group}`;
      suspects.add(suspect);
      if (!this.suspects.has(suspect) || this.reported.has(queue)) continue;
      this.reported.add(queue);
      events.emit('groupNotAggregated', { queue, group });
    }
  }
}
