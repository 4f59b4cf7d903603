import type { GroupSize, RedisInfo } from '../broker/inspection.js';
import { InvalidOptionError } from '../errors.js';
import { Relay } from '../links/relay.js';
import { requireMade, requireNonBlank } from '../validation.js';
import { type DeleteQueueOptions, deleteQueue } from './delete-queue.js';
import { type FairKeyList, type FairKeyListOptions, listFairKeys } from './fair-keys.js';
import { readHistory } from './history.js';
import type { InspectorBroker } from './inspector-broker.js';
import { requireQueue, requireQueueName, requireQueueNameOrQueue, requireUsableName } from './known-queue.js';
import { type PageOptions, toRange } from './list-options.js';
import { type EnqueueEvent, type PeriodicEntry, viewEntries, viewEvent } from './periodic-entries.js';
import { changePause } from './schedule-pause.js';
import { type DailyStats, type QueueInfo, type RunningServer, viewQueue, viewServer } from './views.js';

/** The part of AsynqInspector for queues, servers, schedulers and Redis. */
export abstract class QueueInspector {
  /** @param relay carries what actions cause for linked tasks; the module passes that of its connection */
  constructor(
    protected readonly broker: InspectorBroker,
    protected readonly relay: Pick<Relay, 'carry'> = new Relay(requireMade(broker, 'AsynqInspector').links),
  ) {}

  /** The names of all queues that ever had a task, unsorted. */
  queues(): Promise<string[]> {
    return this.broker.inspection.queues();
  }

  /** Whether anything was enqueued to the queue since it was last deleted. */
  async hasQueue(queue: string): Promise<boolean> {
    return this.broker.inspection.hasQueue(requireQueueName(queue));
  }

  /** The groups of the queue that have waiting tasks, by name. */
  async groups(queue: string): Promise<GroupSize[]> {
    await requireQueue(this.broker.inspection, queue);
    return this.broker.inspection.groups(queue);
  }

  /**
   * The keys of a fair queue that have tasks: how many wait and run, their limits, and what holds them back. Empty for a queue that is not fair.
   * Each page reads the names of all keys in small steps: 100,000 take some 100 ms of Redis.
   *
   * @example const { keys } = await inspector.fairnessKeys('imports', { held: true });
   */
  fairnessKeys(queue: string, options?: FairKeyListOptions): Promise<FairKeyList> {
    return listFairKeys(this.broker, queue, options);
  }

  /** The figures of the queue. The cost does not depend on its size: it can be called every second. */
  async getQueueInfo(queue: string): Promise<QueueInfo> {
    await requireQueue(this.broker.inspection, queue);
    const numbers = await this.broker.inspection.describeQueue(queue);
    return viewQueue(queue, numbers, this.broker.clock.now());
  }

  /** The figures of today and the days before, newest first. @param days 1 to 91: older ones are not kept */
  async history(queue: string, days: number): Promise<DailyStats[]> {
    return readHistory(this.broker, queue, days);
  }

  /**
   * Deletes a queue with its tasks, groups, locks, counters and pause, in batches; the queue is paused meanwhile. If the call is
   * stopped, the remaining tasks stay usable. A task that is enqueued meanwhile or later brings the queue back.
   *
   * @throws QueueNotFoundError; QueueNotEmptyError when it has active tasks, or others without `force`
   */
  async deleteQueue(queue: string, options: DeleteQueueOptions = {}): Promise<void> {
    await deleteQueue(this.broker, queue, options);
  }

  /** Stops all servers from taking tasks of the queue, which need not exist yet. Returns whether this call changed anything. */
  async pauseQueue(queue: string): Promise<boolean> {
    if (/[{}]/.test(requireQueueName(queue))) await requireUsableName(this.broker.inspection, queue);
    return this.broker.administration.pauseQueue(queue);
  }

  /** Ends the pause of the queue. Returns whether it was paused. */
  async unpauseQueue(queue: string): Promise<boolean> {
    requireQueueName(queue);
    return this.broker.administration.resumeQueue(queue);
  }

  /** The running servers, ours and Go's, with the tasks they run. */
  async servers(): Promise<RunningServer[]> {
    return (await this.broker.publications.servers()).map(viewServer);
  }

  /** The periodic tasks of all running schedulers, ours and Go's; one that several processes have is listed once. */
  async schedulerEntries(): Promise<PeriodicEntry[]> {
    const { publications, scheduling } = this.broker;
    return viewEntries(await publications.schedulerEntries(), (queue, id) => scheduling.readPause(queue, id));
  }

  /**
   * Pauses a periodic entry for all processes that have it: its planned times are skipped until it is resumed. The pause belongs to the
   * id: it outlives restarts, and is forgotten 90 days after the last planned time with a process. Returns whether this call changed
   * anything.
   *
   * @throws PeriodicEntryNotFoundError when no running scheduler of this library has it
   */
  pauseSchedulerEntry(id: string): Promise<boolean> {
    return changePause(this.broker, 'pauseSchedule', id);
  }

  /**
   * Ends the pause of a periodic entry. Planned times up to now are not made up for, whatever its `missed` says. Returns whether this call
   * changed anything.
   *
   * @throws PeriodicEntryNotFoundError when no running scheduler of this library has it
   */
  resumeSchedulerEntry(id: string): Promise<boolean> {
    return changePause(this.broker, 'resumeSchedule', id);
  }

  /** The last tasks that an entry has enqueued, newest first. Empty for an unknown entry. */
  async schedulerEnqueueEvents(entryId: string, options?: PageOptions): Promise<EnqueueEvent[]> {
    requireNonBlank(entryId, 'entry ID', InvalidOptionError);
    const { offset, size } = toRange(options);
    return (await this.broker.publications.enqueueEvents(entryId, offset, size)).map(viewEvent);
  }

  /** `INFO` of every Redis server that stores tasks, and of the cluster. `undefined` in memory. */
  redisInfo(): Promise<RedisInfo | undefined> {
    return this.broker.operations.redisInfo();
  }

  /** The slot of the queue in a Redis Cluster; `undefined` without one. */
  async clusterKeySlot(queue: string): Promise<number | undefined> {
    await requireQueueNameOrQueue(this.broker.inspection, queue);
    return (await this.broker.operations.clusterLocation(queue))?.slot;
  }

  /** The cluster nodes of the queue as `host:port`, the master first; `undefined` without a cluster. */
  async clusterNodes(queue: string): Promise<readonly string[] | undefined> {
    await requireQueueNameOrQueue(this.broker.inspection, queue);
    return (await this.broker.operations.clusterLocation(queue))?.nodes;
  }
}
