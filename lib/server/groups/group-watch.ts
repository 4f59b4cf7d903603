import { floorSeconds } from '../../clock.js';
import { settleAll } from '../../async.js';
import { Turns } from '../loops/turns.js';
import type { GroupServices } from './group-services.js';

/** Longer than any aggregator takes to find a group that is due. */
const WATCH_INTERVAL_MS = 10_000;

/**
 * Reports, once per queue, a group that nobody aggregates. This server has no function for it, and
 * it was overdue by this server's options in two looks at the queue. Another server may aggregate it: then it
 * would be gone by the second look.
 */
export class GroupWatch {
  private readonly reported = new Set<string>();
  /** By queue: the groups that were overdue when it was last looked at. */
  private readonly suspects = new Map<string, readonly string[]>();
  private readonly turns = new Turns(WATCH_INTERVAL_MS);

  constructor(private readonly services: GroupServices) {}

  async runOnce(): Promise<number> {
    const { queues, delay } = this.turns.take(
      this.services.queues.names().filter((queue) => !this.reported.has(queue)),
    );
    await settleAll(queues.map((queue) => this.check(queue)));
    return delay;
  }

  private async check(queue: string): Promise<void> {
    const { broker, clock, events, aggregators, groups } = this.services;
    const now = floorSeconds(clock.now());
    const before = this.suspects.get(queue) ?? [];
    this.suspects.delete(queue); // also when it cannot be read
    const overdue = await broker.groups.listOverdueGroups(queue, (group) =>
      aggregators.find(group) ? undefined : now - groups.policyOf(queue, group).gracePeriod,
    );
    const group = overdue.find((one) => before.includes(one));
    if (group === undefined) {
      if (overdue.length > 0) this.suspects.set(queue, overdue);
      return;
    }
    this.reported.add(queue);
    events.emit('groupNotAggregated', { queue, group });
  }
}
