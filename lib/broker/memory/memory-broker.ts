import { type Clock, floorSeconds, SystemClock } from '../../clock.js';
import { ClosedError } from '../../errors.js';
import { checkMaxPayloadSize } from '../../task/payload-size.js';
import { DEFAULT_KEY_PREFIX } from '../../wire/keys.js';
import type { AggregationSet, ClaimedSet, ClaimReply, FinishStatus, GroupPolicy } from '../aggregation.js';
import type { SchedulerEnqueueEvent, SchedulerEntry, ServerInfo, WorkerInfo } from '../../wire/message.js';
import type {
  Broker,
  EnqueueRequest,
  EnqueueStatus,
  ExchangeReply,
  ExchangeRequest,
  ExpiredLeases,
  Lease,
  LeasedTask,
  WakeListener,
  WakeSource,
} from '../broker.js';
import * as aggregate from './aggregate.js';
import type { ActedCancellation, Cancellation, RecordedCancellation } from '../cancellation.js';
import type { AppendOptions, StreamedEntry, StreamName } from '../event-stream.js';
import type {
  ClusterPlace,
  DayCount,
  DeletionOptions,
  DeletionStatus,
  GroupSize,
  IdPage,
  ListRequest,
  MoveStatus,
  Place,
  PublishedServer,
  QueueNumbers,
  RedisInfo,
  StoredTask,
  MoveAction,
  TaskPage,
  UpdateStatus,
} from '../inspection.js';
import type { StartLimit } from '../limiting.js';
import type { StoreFacts } from '../operations.js';
import type { Firing, FiringReply, ScheduleProgress } from '../scheduling.js';
import { MemoryCancellations } from './cancellations.js';
import * as consume from './consume.js';
import { MemoryEventStream } from './event-stream.js';
import * as inspect from './inspect.js';
import { Limits } from './limits.js';
import * as list from './list.js';
import * as maintain from './maintain.js';
import * as move from './move.js';
import { MemoryWakeSource } from './memory-wake.js';
import { MemoryMonitor } from './monitor.js';
import { enqueueAll } from './produce.js';
import { SchedulerPublications } from './publications.js';
import { QueueStore, wellFormed } from './queue-store.js';
import * as schedule from './schedule.js';
import { type Snapshot, describeQueue } from './snapshot.js';

export interface MemoryBrokerOptions {
  /** Default `asynq`. Only names the unique locks: every memory broker is a world of its own. */
  readonly keyPrefix?: string;
  /** The most bytes of a payload or a result. Default 5 MiB. */
  readonly maxPayloadSize?: number;
  /** Driven by hand (testing): no server is started on it. Default false. */
  readonly manual?: boolean;
}

/**
 * The broker in process: what `connection: 'memory'` and tests use. It holds to the same contract as the one on Redis, and
 * one suite tests both. Nothing survives the process. Every call does its work at once and resolves afterwards.
 */
export class MemoryBroker implements Broker {
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
  readonly manual: boolean;
  private readonly stores = new Map<string, QueueStore>();
  private readonly sources = new Set<MemoryWakeSource>();
  private readonly monitor = new MemoryMonitor();
  private readonly cancellations = new MemoryCancellations();
  private readonly streams: Readonly<Record<StreamName, MemoryEventStream>> = {
    events: new MemoryEventStream('events'),
    audit: new MemoryEventStream('audit'),
  };
  private readonly limits = new Limits();
  private readonly publications = new SchedulerPublications();
  private closed = false;

  constructor(
    readonly clock: Clock = new SystemClock(),
    options: MemoryBrokerOptions = {},
  ) {
    this.keyPrefix = options.keyPrefix ?? DEFAULT_KEY_PREFIX;
    this.maxPayloadSize = checkMaxPayloadSize(options.maxPayloadSize);
    this.manual = options.manual ?? false;
  }

  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    return this.change(queue, (store, now) => enqueueAll(store, requests, now));
  }

  async exchange(queue: string, request: ExchangeRequest): Promise<ExchangeReply> {
    return this.change(queue, (store, now) => consume.exchange(store, queue, request, now));
  }

  async extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]> {
    return this.change(queue, (store) => consume.extendLeases(store, leases, expiresAt));
  }

  async writeResult(lease: Lease, result: Buffer): Promise<boolean> {
    return this.change(lease.queue, (store) => consume.writeResult(store, lease, result));
  }

  async forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }> {
    return this.change(queue, (store, now) => maintain.forward(store, now));
  }

  async listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases> {
    return this.change(queue, (store) => maintain.listExpiredLeases(store, queue, cutoff, limit));
  }

  /** There is nothing to repair: here a task is active exactly when it is leased. */
  async repairActive(queue: string): Promise<number> {
    return this.change(queue, () => 0);
  }

  async deleteExpiredCompleted(queue: string, limit: number): Promise<number> {
    return this.change(queue, (store, now) => maintain.deleteExpiredCompleted(store, limit, now));
  }

  async trimArchived(queue: string, limit: number): Promise<number> {
    return this.change(queue, (store, now) => maintain.trimArchived(store, limit, now));
  }

  async claimDueSets(
    queue: string,
    policyOf: (group: string) => GroupPolicy | undefined,
    limit: number,
  ): Promise<ClaimReply> {
    const claims = (store: QueueStore, now: number) =>
      aggregate.claimDueSets(store, queue, this.keyPrefix, policyOf, limit, now);
    return this.change(queue, claims);
  }

  async readSet(set: ClaimedSet): Promise<AggregationSet> {
    return this.change(set.queue, (store) => aggregate.readSet(store, set));
  }

  async setAside(set: ClaimedSet, ids: readonly string[]): Promise<number> {
    return this.change(set.queue, (store, now) => aggregate.setAside(store, set, ids, now));
  }

  async finishSet(set: AggregationSet, request: EnqueueRequest | undefined): Promise<FinishStatus> {
    return this.change(set.queue, (store, now) => aggregate.finishSet(store, set, request, now));
  }

  async reclaimStaleSets(queue: string): Promise<number> {
    return this.change(queue, (store, now) => aggregate.reclaimStaleSets(store, now));
  }

  /** There is nothing to repair: here a group is listed exactly when tasks wait in it. */
  async repairGroups(queue: string): Promise<{ listed: number; removed: number }> {
    return this.change(queue, () => ({ listed: 0, removed: 0 }));
  }

  /** Every group that holds tasks is listed here. */
  async listDelayedGroups(): Promise<undefined> {
    return undefined;
  }

  async listOverdueGroups(queue: string, cutoffOf: (group: string) => number | undefined): Promise<string[]> {
    return this.change(queue, (store) => aggregate.listOverdueGroups(store, cutoffOf));
  }

  async writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    this.assertOpen();
    this.monitor.publish(info, workers, ttl, this.clock.now());
  }

  async clearServerState(info: Pick<ServerInfo, 'host' | 'pid' | 'serverId'>): Promise<void> {
    this.assertOpen();
    this.monitor.clear(info);
  }

  async recordCancellation(cancellation: Cancellation): Promise<void> {
    this.assertOpen();
    this.cancellations.record(cancellation, this.clock.now());
  }

  async findCancellations(ids: readonly string[]): Promise<RecordedCancellation[]> {
    this.assertOpen();
    return this.cancellations.find(ids, this.clock.now());
  }

  async noteCancelled(acted: readonly ActedCancellation[]): Promise<void> {
    this.assertOpen();
    this.cancellations.note(acted);
  }

  async publishCancellation(id: string): Promise<void> {
    this.assertOpen();
    this.cancellations.publish(id);
  }

  async subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>> {
    this.assertOpen();
    const end = this.cancellations.subscribe(onCancel);
    return async () => end();
  }

  async ping(): Promise<void> {
    this.assertOpen();
  }

  async acquireTokens(scope: string, max: number, deadline: number, taskIds: readonly string[]): Promise<boolean[]> {
    this.assertOpen();
    return this.limits.acquire(scope, max, deadline, taskIds, floorSeconds(this.clock.now()));
  }

  async releaseTokens(scope: string, taskIds: readonly string[]): Promise<number> {
    this.assertOpen();
    return this.limits.release(scope, taskIds);
  }

  async takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<{ granted: number; retryIn: number }> {
    this.assertOpen();
    return this.limits.takeStarts(scope, limit, wanted, this.clock.now());
  }

  async wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }> {
    return this.change(queue, (store, now) => consume.wakeWaiting(store, waitlist, count, now));
  }

  async openSchedule(queue: string, entry: string, spec: string, keepFor: number): Promise<ScheduleProgress> {
    return this.change(queue, (store, now) => schedule.openSchedule(store, entry, spec, keepFor, now));
  }

  async fire(queue: string, firing: Firing): Promise<FiringReply> {
    return this.change(queue, (store, now) => schedule.fire(store, firing, now));
  }

  async writeSchedulerEntries(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number): Promise<void> {
    this.assertOpen();
    this.publications.publish(schedulerId, entries, ttl, this.clock.now());
  }

  async clearSchedulerEntries(schedulerId: string): Promise<void> {
    this.assertOpen();
    this.publications.clear(schedulerId);
  }

  async recordEnqueueEvent(entryId: string, event: SchedulerEnqueueEvent): Promise<void> {
    this.assertOpen();
    this.publications.record(entryId, event, this.clock.now());
  }

  async appendEvents(
    stream: StreamName,
    entries: readonly Buffer[],
    options: AppendOptions,
  ): Promise<string | undefined> {
    this.assertOpen();
    return this.streams[stream].append(entries, options, this.clock.now());
  }

  async readEvents(stream: StreamName, after: string, limit: number): Promise<StreamedEntry[]> {
    this.assertOpen();
    return this.streams[stream].read(after, limit, this.clock.now());
  }

  async readEventsBack(stream: StreamName, before: string | undefined, limit: number): Promise<StreamedEntry[]> {
    this.assertOpen();
    return this.streams[stream].readBack(before, limit, this.clock.now());
  }

  async lastEventId(stream: StreamName): Promise<string> {
    this.assertOpen();
    return this.streams[stream].last(this.clock.now());
  }

  watch(listener: WakeListener): WakeSource {
    const source = new MemoryWakeSource(
      listener,
      (queue) => this.store(queue),
      (ended) => void this.sources.delete(ended),
    );
    if (this.closed) source.end();
    else this.sources.add(source);
    return source;
  }

  async queues(): Promise<string[]> {
    this.assertOpen();
    return [...this.stores].flatMap(([queue, store]) => (store.announced ? [queue] : []));
  }

  async hasQueue(queue: string): Promise<boolean> {
    return this.change(queue, (store) => store.announced);
  }

  async groups(queue: string): Promise<GroupSize[]> {
    return this.change(queue, inspect.groups);
  }

  async describeQueue(queue: string): Promise<QueueNumbers> {
    return this.change(queue, inspect.describeQueue);
  }

  async countsOfDays(queue: string, days: readonly string[]): Promise<DayCount[]> {
    return this.change(queue, (store, now) => inspect.countsOfDays(store, days, now));
  }

  async listTasks(queue: string, request: ListRequest): Promise<TaskPage> {
    return this.change(queue, (store, now) => list.listTasks(store, request, now));
  }

  async listIds(queue: string, request: ListRequest): Promise<IdPage> {
    return this.change(queue, (store) => list.listIds(store, request));
  }

  async moveTasks(
    queue: string,
    action: MoveAction,
    ids: readonly string[],
    from?: Place,
    maxArchived?: number,
  ): Promise<MoveStatus[]> {
    return this.change(queue, (store, now) => move.moveTasks(store, { action, maxArchived }, ids, from, now));
  }

  async rescheduleTasks(queue: string, ids: readonly string[], at: number, from?: Place): Promise<MoveStatus[]> {
    return this.change(queue, (store, now) => move.moveTasks(store, { action: 'schedule', at }, ids, from, now));
  }

  async updatePayload(queue: string, id: string, payload: Buffer, replaces?: Buffer): Promise<UpdateStatus> {
    return this.change(queue, (store) => move.updatePayload(store, wellFormed(id), payload, replaces));
  }

  async deleteQueue(queue: string, { force, onProgress, signal }: DeletionOptions): Promise<DeletionStatus> {
    this.assertOpen();
    signal?.throwIfAborted();
    const store = this.store(queue);
    const refused = move.refuseDeletion(store, force);
    if (refused) return refused;
    this.stores.delete(wellFormed(queue));
    onProgress?.(store.tasks.size);
    return 'deleted';
  }

  /** When the first claimed set goes back to its group, in milliseconds since the epoch. */
  nextReclaim(): number | undefined {
    const deadlines = [...this.stores.values()].flatMap(({ sets }) =>
      [...sets.values()].map(({ deadline }) => deadline),
    );
    return deadlines.length === 0 ? undefined : Math.min(...deadlines) * 1000;
  }

  /** The servers that have published themselves and have not expired. */
  async servers(): Promise<PublishedServer[]> {
    this.assertOpen();
    return this.monitor.living(this.clock.now());
  }

  async schedulerEntries(): Promise<SchedulerEntry[]> {
    this.assertOpen();
    return this.publishedEntries();
  }

  async enqueueEvents(entryId: string, offset: number, size: number): Promise<SchedulerEnqueueEvent[]> {
    this.assertOpen();
    return this.publishedEvents(entryId)
      .toReversed()
      .slice(offset, offset + size);
  }

  async storeFacts(): Promise<StoreFacts[]> {
    this.assertOpen();
    return [];
  }

  async redisInfo(): Promise<RedisInfo | undefined> {
    this.assertOpen();
    return undefined;
  }

  async clusterPlace(): Promise<ClusterPlace | undefined> {
    this.assertOpen();
    return undefined;
  }

  async getTask(queue: string, id: string): Promise<StoredTask | undefined> {
    return this.change(queue, (store) => store.describe(wellFormed(id)));
  }

  async pauseQueue(queue: string): Promise<boolean> {
    return this.change(queue, (store, now) => {
      if (store.pausedAt !== undefined) return false;
      store.pausedAt = floorSeconds(now);
      return true;
    });
  }

  async resumeQueue(queue: string): Promise<boolean> {
    return this.change(queue, (store) => {
      if (store.pausedAt === undefined) return false;
      store.pausedAt = undefined;
      return true;
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const source of this.sources) source.end();
    this.sources.clear();
    this.cancellations.end();
  }

  /** Leases one given pending task, paused or not; `undefined` when it is not pending. */
  take(queue: string, id: string): LeasedTask | undefined {
    return this.change(queue, (store, now) => consume.takeOne(store, queue, wellFormed(id), now));
  }

  /** Every task of the queue, or of all queues, in the order in which they were enqueued. */
  tasks(queue?: string): StoredTask[] {
    const stores = queue === undefined ? [...this.stores.values()] : [this.store(queue)];
    return stores.flatMap((store) => [...store.tasks.keys()].flatMap((id) => store.describe(id) ?? []));
  }

  /** What schedulers publish, and have not let expire. */
  publishedEntries(): SchedulerEntry[] {
    return this.publications.entries(this.clock.now());
  }

  /** The history of a periodic entry, oldest first. */
  publishedEvents(entryId: string): readonly SchedulerEnqueueEvent[] {
    return this.publications.events(entryId, this.clock.now());
  }

  /** All that can be observed of all queues that hold, or ever held, anything. Still works after `close`. */
  snapshot(): Snapshot {
    const known = [...this.stores].filter(
      ([, store]) => store.announced || store.pausedAt !== undefined || store.schedules.size > 0,
    );
    return Object.fromEntries(known.map(([queue, store]) => [queue, describeQueue(store, this.clock.now())]));
  }

  /** Forgets every queue and task, as FLUSHDB would. */
  clear(): void {
    this.stores.clear();
    this.cancellations.clear();
    this.limits.clear();
    for (const stream of Object.values(this.streams)) stream.clear();
  }

  /** The bare data of a queue, for tests that bring about what no call can. */
  store(queue: string): QueueStore {
    const name = wellFormed(queue);
    let store = this.stores.get(name);
    if (!store) this.stores.set(name, (store = new QueueStore()));
    return store;
  }

  /** Does the work in one go, as a script does, and notices what it changed. */
  private change<T>(queue: string, work: (store: QueueStore, now: number) => T): T {
    this.assertOpen();
    const store = this.store(queue);
    const { pendingChanges, delayedChanges } = store;
    const result = work(store, this.clock.now());
    if (store.pendingChanges !== pendingChanges)
      for (const source of this.sources) source.notePending(wellFormed(queue));
    if (store.delayedChanges !== delayedChanges)
      for (const source of this.sources) source.noteDelayed(wellFormed(queue));
    return result;
  }

  private assertOpen(): void {
    if (this.closed) throw new ClosedError('the in-memory broker is closed: nothing can be done with it any more');
  }
}
