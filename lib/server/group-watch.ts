import type { AggregationBroker } from '../broker/aggregation.js';
import { floorSeconds, type Clock } from '../clock.js';
import type { AsynqEvents } from '../events/events.js';
import { allDone } from './all-done.js';
import type { Aggregators } from './aggregators.js';
import type { ResolvedGroupOptions } from './group-options.js';
import type { Lanes } from './lanes.js';

/** Milliseconds between two looks: longer than any aggregator takes to see that a group is due. */
const EVERY = 10_000;

export interface GroupWatchOptions {
  readonly broker: AggregationBroker;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly lanes: Lanes;
  readonly aggregators: Aggregators;
  readonly groups: ResolvedGroupOptions;
}

/**
 * Tells, once per queue, of groups that nobody aggregates: this server has no function for them, and they are still there on a
 * second look after they were due by its options. Whether another server does is seen by what happens, not asked.
 */
export class GroupWatch {
  private readonly told = new Set<string>();
  private suspects = new Set<string>();

  constructor(private readonly options: GroupWatchOptions) {}

  async runOnce(): Promise<number> {
    const suspects = new Set<string>();
    const queues = this.options.lanes.queues().filter((queue) => !this.told.has(queue));
    await allDone(queues.map((queue) => this.look(queue, suspects))).finally(() => (this.suspects = suspects));
    return EVERY;
  }

  private async look(queue: string, suspects: Set<string>): Promise<void> {
    const { broker, clock, events, aggregators, groups } = this.options;
    const now = floorSeconds(clock.now());
    const { gracePeriod } = groups.policyOf(queue, '');
    const overdue = await broker.listOverdueGroups(queue, now - gracePeriod);
    for (const group of overdue.filter((name) => !aggregators.find(name))) {
      const suspect = `${queue}\n${group}`;
      suspects.add(suspect);
      if (!this.suspects.has(suspect) || this.told.has(queue)) continue;
      this.told.add(queue);
      events.emit('groupNotAggregated', { queue, group });
    }
  }
}
