import type { ClaimedSet, GroupsWatch } from '../../broker/groups.js';
import { ServerStateError } from '../../errors.js';
import { QueuePasses } from '../loops/queue-passes.js';
import { Aggregation } from './aggregation.js';
import type { GroupServices } from './group-services.js';

/** Sets of one queue that are aggregated at the same time. */
const MAX_SETS_PER_QUEUE = 10;
/** The longest time between two passes (asynq's). */
const MAX_INTERVAL_MS = 7_000;
/** The same where a group's size can make it due: no notice comes of that. */
const MAX_INTERVAL_WITH_SIZE_MS = 1_000;
/** Between two passes of a server that helps others. */
const HELP_INTERVAL_MS = 5_000;
/** More sets in one pass by hand are an endless loop. */
const MAX_SETS_BY_HAND = 10_000;

export interface AggregatorListener {
  /** A set is finished while more were due than could be claimed: a pass is due. */
  roomForSets(): void;
}

export interface AggregatorOptions extends GroupServices {
  readonly listener: AggregatorListener;
}

/**
 * Makes tasks of groups that are due. It sleeps until the next one is due, and never longer than
 * the shortest time in which a new group can become due: so it finds each in time. Only a group
 * that reaches its maximum size may wait up to a second. Where others of the crew look, it only helps
 * them while they have as many sets as one server works on.
 */
export class Aggregator {
  private readonly aggregation: Aggregation;
  /** Sets under way, and the queue of each. */
  private readonly running = new Map<Promise<void>, string>();
  private readonly interval: number;
  private readonly passes: QueuePasses<number | undefined>;
  private readonly helpPasses: QueuePasses<void>;
  /** By queue, while this server looks for groups. */
  private readonly watches = new Map<string, GroupsWatch>();
  private wanting = false;
  private stopped = false;
  private closed = false;

  constructor(private readonly options: AggregatorOptions) {
    this.aggregation = new Aggregation(options);
    const onError = (error: unknown) => options.events.emit('loopFailed', { loop: 'aggregator', error });
    this.passes = new QueuePasses(options.clock, (queue) => this.claim(queue, this.watchOf(queue)), onError);
    this.helpPasses = new QueuePasses(options.clock, (queue) => this.help(queue), onError);
    const { policies } = options.groups;
    const times = policies.flatMap(({ gracePeriod, maxDelay }) => [gracePeriod, maxDelay || gracePeriod]);
    const shortest = policies.some(({ maxSize }) => maxSize > 0) ? MAX_INTERVAL_WITH_SIZE_MS : MAX_INTERVAL_MS;
    this.interval = Math.min(shortest, ...times.map((seconds) => seconds * 1000));
  }

  /**
   * Starts what is due and does not wait for it. A queue that fails does not hold up the others.
   */
  async runOnce(): Promise<number> {
    const queues = this.options.queues.names();
    this.watchOnly(queues);
    const { results, retryIn } = await this.passes.run(queues);
    const times = Array.from(results.values(), (time) => time ?? Infinity);
    return Math.min(this.interval, retryIn, Math.max(1, Math.min(...times)));
  }

  /** The same of a server that helps: others look for what is due. */
  async helpOnce(): Promise<number> {
    this.watchOnly([]);
    const { retryIn } = await this.helpPasses.run(this.options.queues.names());
    return Math.min(HELP_INTERVAL_MS, retryIn);
  }

  /** Others do it all. */
  rest(): void {
    this.watchOnly([]);
  }

  /** Makes tasks of all that is due now, and waits for them; for a server that was not started. */
  async runDue(): Promise<void> {
    for (let made = 0; made <= MAX_SETS_BY_HAND;) {
      for (const queue of this.options.queues.names()) await this.claim(queue);
      if (this.running.size === 0) return;
      made += this.running.size;
      await this.whenQuiet();
    }
    throw new ServerStateError(
      `more than ${MAX_SETS_BY_HAND} sets of grouped tasks and still some due: does an aggregated task join a group that is due at once?`,
    );
  }

  /** Unix seconds when a group is due; `undefined` when none waits. */
  async nextDue(): Promise<number | undefined> {
    const replies = this.options.queues
      .names()
      .map((queue) => this.options.broker.groups.claimDueSets(queue, this.policies(queue), 0));
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

  /**
   * Nothing is begun any more. A set that a Redis that hung still claims for us goes back to its
   * group at its deadline.
   */
  close(): void {
    this.closed = true;
    this.watchOnly([]);
  }

  /** Resolves when nothing that was begun is under way. */
  async whenQuiet(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running.keys());
  }

  /**
   * Returns the milliseconds until a group of the queue is due; `undefined` also when the end of a
   * set starts the next pass.
   */
  private async claim(queue: string, watch?: GroupsWatch): Promise<number | undefined> {
    const limit = this.room(queue);
    if (limit === 0) return undefined;
    const { groups } = this.options.broker;
    const { sets, nextDue } = await groups.claimDueSets(queue, this.policies(queue), limit, watch);
    if (this.beginAll(sets, limit)) return undefined;
    return nextDue === undefined ? undefined : nextDue * 1000 - this.options.clock.now();
  }

  private async help(queue: string): Promise<void> {
    const limit = this.room(queue);
    if (limit === 0) return;
    const { groups } = this.options.broker;
    this.beginAll(await groups.helpToClaim(queue, this.policies(queue), limit, MAX_SETS_PER_QUEUE), limit);
  }

  /** How many sets may be claimed. Without room the end of one starts the next pass. */
  private room(queue: string): number {
    if (this.stopped) return 0;
    const room = MAX_SETS_PER_QUEUE - [...this.running.values()].filter((other) => other === queue).length;
    if (room <= 0) this.wanting = true;
    return Math.max(0, room);
  }

  /** Returns whether the end of a set starts the next pass, as more may be due. */
  private beginAll(sets: readonly ClaimedSet[], limit: number): boolean {
    for (const set of sets) this.begin(set);
    if (sets.length < limit) return false;
    return (this.wanting = true);
  }

  private watchOf(queue: string): GroupsWatch {
    let watch = this.watches.get(queue);
    if (!watch) this.watches.set(queue, (watch = this.options.broker.groups.watchGroups(queue)));
    return watch;
  }

  private watchOnly(queues: readonly string[]): void {
    for (const [queue, watch] of this.watches) {
      if (queues.includes(queue)) continue;
      this.watches.delete(queue);
      void watch.close();
    }
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
      this.options.listener.roomForSets();
    });
    this.running.set(run, set.queue);
  }
}
