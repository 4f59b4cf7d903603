import type { ClaimedSet } from '../../broker/aggregation.js';
import { ServerStateError } from '../../errors.js';
import { QueuePasses } from '../loops/queue-passes.js';
import { Aggregation } from './aggregation.js';
import type { Grouping } from './grouping.js';

/** Sets of one queue under way at once. */
const AT_ONCE = 10;
/** Milliseconds between two looks at most (asynq's), and where a size can make a group due without notice. */
const LONGEST_INTERVAL = 7_000;
const SIZE_INTERVAL = 1_000;
/** Sets one pass by hand makes tasks of before it takes that for an endless loop. */
const MOST_BY_HAND = 10_000;

export interface AggregatorOptions extends Grouping {
  /** A set is done while more were due than could be taken: run again. */
  readonly onFree: () => void;
}

/**
 * Makes tasks of groups that are due. Sleeps until the next one is; a group that comes into being meanwhile is due later than the next
 * look, so that it is found in time, whoever fills it. Only a group that reaches its greatest size may wait up to a second.
 */
export class Aggregator {
  private readonly aggregation: Aggregation;
  /** What is under way, and of which queue. */
  private readonly running = new Map<Promise<void>, string>();
  private readonly interval: number;
  private readonly passes: QueuePasses<number | undefined>;
  private wanting = false;
  private stopped = false;
  private closed = false;

  constructor(private readonly options: AggregatorOptions) {
    this.aggregation = new Aggregation(options);
    const onError = (error: unknown) => options.events.emit('loopFailed', { loop: 'aggregator', error });
    this.passes = new QueuePasses(options.clock, (queue) => this.claim(queue), onError);
    const { policies } = options.groups;
    const times = policies.flatMap(({ gracePeriod, maxDelay }) => [gracePeriod, maxDelay || gracePeriod]);
    const shortest = policies.some(({ maxSize }) => maxSize > 0) ? SIZE_INTERVAL : LONGEST_INTERVAL;
    this.interval = Math.min(shortest, ...times.map((seconds) => seconds * 1000));
  }

  /** Starts what is due, and does not wait for it. A failing queue does not hold up the others. */
  async runOnce(): Promise<number> {
    const { answers, again } = await this.passes.run(this.options.queues.names());
    const times = Array.from(answers.values(), (time) => time ?? Infinity);
    return Math.min(this.interval, again, Math.max(1, Math.min(...times)));
  }

  /** Makes tasks of all that is due now, and waits for them; for a server that was not started. */
  async runDue(): Promise<void> {
    for (let made = 0; made <= MOST_BY_HAND;) {
      for (const queue of this.options.queues.names()) await this.claim(queue);
      if (this.running.size === 0) return;
      made += this.running.size;
      await this.whenQuiet();
    }
    throw new ServerStateError(
      `more than ${MOST_BY_HAND} sets of grouped tasks and still some due: does an aggregated task join a group that is due at once?`,
    );
  }

  /** Unix seconds when a group is due; `undefined` when none waits. */
  async nextDue(): Promise<number | undefined> {
    const replies = this.options.queues
      .names()
      .map((queue) => this.options.broker.claimDueSets(queue, this.policies(queue), 0));
    const times = (await Promise.all(replies)).map(({ nextDue = Infinity }) => nextDue);
    const next = Math.min(...times);
    return next === Infinity ? undefined : next;
  }

  /** Sets under way. */
  get size(): number {
    return this.running.size;
  }

  /** Nothing is claimed any more. */
  stop(): void {
    this.stopped = true;
  }

  /** Nothing is begun any more. What a Redis that hung has claimed for us by then goes back to its group at its deadline. */
  close(): void {
    this.closed = true;
  }

  /** Resolves when nothing that was begun is under way. */
  async whenQuiet(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running.keys());
  }

  /** Answers the milliseconds until a group of the queue is due; `undefined` also when the end of a set will tell. */
  private async claim(queue: string): Promise<number | undefined> {
    if (this.stopped) return undefined;
    const limit = AT_ONCE - [...this.running.values()].filter((other) => other === queue).length;
    if (limit <= 0) {
      this.wanting = true;
      return undefined;
    }
    const { sets, nextDue } = await this.options.broker.claimDueSets(queue, this.policies(queue), limit);
    for (const set of sets) this.begin(set);
    if (sets.length >= limit) {
      this.wanting = true;
      return undefined;
    }
    return nextDue === undefined ? undefined : nextDue * 1000 - this.options.clock.now();
  }

  private policies(queue: string) {
    const { aggregators, groups } = this.options;
    return (group: string) => (aggregators.find(group) ? groups.policyOf(queue, group) : undefined);
  }

  private begin(set: ClaimedSet): void {
    if (this.closed) return;
    const run = this.aggregation.run(set).finally(() => {
      this.running.delete(run);
      if (!this.wanting || this.stopped) return;
      this.wanting = false;
      this.options.onFree();
    });
    this.running.set(run, set.queue);
  }
}
