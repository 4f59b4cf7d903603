import { type Clock, SystemClock } from '../../clock.js';
import { checkMaxPayloadSize } from '../../task/payload-size.js';
import { DEFAULT_KEY_PREFIX, Keyspace } from '../../wire/keys.js';
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
  WakeListener,
  WakeSource,
} from '../broker.js';
import { RedisAggregation } from './aggregation.js';
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
import { RedisCancellations } from './cancellations.js';
import type { RedisConnections } from './connection/connections.js';
import { RedisConsumer } from './consumer.js';
import { RedisDeletion } from './deletion.js';
import { RedisEventStream } from './event-stream.js';
import { RedisInspector } from './inspector.js';
import { RedisLimiting } from './limiting.js';
import { RedisListing } from './listing.js';
import { RedisMaintenance } from './maintenance.js';
import { RedisMonitoring } from './monitoring.js';
import { RedisMoving } from './moving.js';
import { RedisProducer } from './producer.js';
import { RedisPublications } from './publications.js';
import { readRedisInfo } from './redis-info.js';
import { RedisScheduling } from './scheduling.js';
import { Scripts } from './scripts/scripts.js';
import { readStoreFacts } from './store-facts.js';
import { RedisWakeSource } from './wake-source.js';

export interface RedisBrokerOptions {
  /** The time tasks live by; default: that of the system. Timeouts of the network are always real time. */
  readonly clock?: Clock;
  /** Default `asynq`. Any other is a namespace that Go does not see. */
  readonly keyPrefix?: string;
  /** The most bytes of a payload or a result. Default 5 MiB. */
  readonly maxPayloadSize?: number;
}

/**
 * asynq's state machine on Redis 6.2 or later: one file per role beside this one, one script per operation in lua/. Nothing is
 * connected before the first call.
 *
 * Connections: `produce` enqueues; `consume` takes, settles, extends leases and maintains queues; `monitor` is for what is
 * published and inspected. Subscriptions and wake-ups have their own.
 */
export class RedisBroker implements Broker {
  readonly clock: Clock;
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
  readonly manual = false;
  private readonly keyspace: Keyspace;
  private readonly producer: RedisProducer;
  private readonly consumer: RedisConsumer;
  private readonly maintenance: RedisMaintenance;
  private readonly aggregation: RedisAggregation;
  private readonly monitoring: RedisMonitoring;
  private readonly cancellations: RedisCancellations;
  private readonly scheduling: RedisScheduling;
  private readonly inspector: RedisInspector;
  private readonly limiting: RedisLimiting;
  private readonly listing: RedisListing;
  private readonly moving: RedisMoving;
  private readonly deletion: RedisDeletion;
  private readonly publications: RedisPublications;
  private readonly eventStream: RedisEventStream;

  constructor(
    private readonly connections: RedisConnections,
    { clock = new SystemClock(), keyPrefix = DEFAULT_KEY_PREFIX, maxPayloadSize }: RedisBrokerOptions = {},
  ) {
    this.clock = clock;
    this.keyPrefix = keyPrefix;
    this.maxPayloadSize = checkMaxPayloadSize(maxPayloadSize);
    this.keyspace = new Keyspace(keyPrefix);
    const scripts = new Scripts(connections);
    this.producer = new RedisProducer(connections, scripts, this.keyspace, clock);
    this.consumer = new RedisConsumer(scripts, this.keyspace, clock);
    this.maintenance = new RedisMaintenance(scripts, this.keyspace, clock);
    this.aggregation = new RedisAggregation(connections, scripts, this.keyspace, clock);
    this.monitoring = new RedisMonitoring(connections, scripts, this.keyspace, clock);
    this.cancellations = new RedisCancellations(connections, scripts, this.keyspace, clock);
    this.scheduling = new RedisScheduling(connections, scripts, this.keyspace, clock, this.producer);
    this.inspector = new RedisInspector(connections, scripts, this.keyspace, clock);
    this.limiting = new RedisLimiting(connections, scripts, this.keyspace, clock);
    this.listing = new RedisListing(scripts, this.keyspace, clock);
    this.moving = new RedisMoving(scripts, this.keyspace, clock);
    this.deletion = new RedisDeletion(connections, scripts, this.keyspace, clock);
    this.publications = new RedisPublications(connections, this.keyspace, clock);
    this.eventStream = new RedisEventStream(connections, scripts, this.keyspace, clock);
  }

  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    return this.producer.enqueue(queue, requests);
  }

  exchange(queue: string, request: ExchangeRequest): Promise<ExchangeReply> {
    return this.consumer.exchange(queue, request);
  }

  extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]> {
    return this.consumer.extendLeases(queue, leases, expiresAt);
  }

  writeResult(lease: Lease, result: Buffer): Promise<boolean> {
    return this.consumer.writeResult(lease, result);
  }

  forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }> {
    return this.maintenance.forward(queue);
  }

  listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases> {
    return this.maintenance.listExpiredLeases(queue, cutoff, limit);
  }

  repairActive(queue: string): Promise<number> {
    return this.maintenance.repairActive(queue);
  }

  deleteExpiredCompleted(queue: string, limit: number): Promise<number> {
    return this.maintenance.deleteExpiredCompleted(queue, limit);
  }

  trimArchived(queue: string, limit: number): Promise<number> {
    return this.maintenance.trimArchived(queue, limit);
  }

  claimDueSets(
    queue: string,
    policyOf: (group: string) => GroupPolicy | undefined,
    limit: number,
  ): Promise<ClaimReply> {
    return this.aggregation.claimDueSets(queue, policyOf, limit);
  }

  readSet(set: ClaimedSet): Promise<AggregationSet> {
    return this.aggregation.readSet(set);
  }

  setAside(set: ClaimedSet, ids: readonly string[]): Promise<number> {
    return this.aggregation.setAside(set, ids);
  }

  finishSet(set: AggregationSet, request: EnqueueRequest | undefined): Promise<FinishStatus> {
    return this.aggregation.finishSet(set, request);
  }

  reclaimStaleSets(queue: string): Promise<number> {
    return this.aggregation.reclaimStaleSets(queue);
  }

  repairGroups(queue: string): Promise<{ listed: number; removed: number }> {
    return this.aggregation.repairGroups(queue);
  }

  listDelayedGroups(queue: string): Promise<number | undefined> {
    return this.aggregation.listDelayedGroups(queue);
  }

  listOverdueGroups(queue: string, cutoffOf: (group: string) => number | undefined): Promise<string[]> {
    return this.aggregation.listOverdueGroups(queue, cutoffOf);
  }

  writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    return this.monitoring.writeServerState(info, workers, ttl);
  }

  clearServerState(info: Pick<ServerInfo, 'host' | 'pid' | 'serverId'>): Promise<void> {
    return this.monitoring.clearServerState(info);
  }

  recordCancellation(cancellation: Cancellation): Promise<void> {
    return this.cancellations.recordCancellation(cancellation);
  }

  findCancellations(ids: readonly string[]): Promise<RecordedCancellation[]> {
    return this.cancellations.findCancellations(ids);
  }

  noteCancelled(acted: readonly ActedCancellation[]): Promise<void> {
    return this.cancellations.noteCancelled(acted);
  }

  publishCancellation(id: string): Promise<void> {
    return this.cancellations.publishCancellation(id);
  }

  subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>> {
    return this.cancellations.subscribeCancellations(onCancel);
  }

  ping(): Promise<void> {
    return this.monitoring.ping();
  }

  openSchedule(queue: string, entry: string, spec: string, keepFor: number): Promise<ScheduleProgress> {
    return this.scheduling.openSchedule(queue, entry, spec, keepFor);
  }

  fire(queue: string, firing: Firing): Promise<FiringReply> {
    return this.scheduling.fire(queue, firing);
  }

  writeSchedulerEntries(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number): Promise<void> {
    return this.scheduling.writeSchedulerEntries(schedulerId, entries, ttl);
  }

  clearSchedulerEntries(schedulerId: string): Promise<void> {
    return this.scheduling.clearSchedulerEntries(schedulerId);
  }

  recordEnqueueEvent(entryId: string, event: SchedulerEnqueueEvent): Promise<void> {
    return this.scheduling.recordEnqueueEvent(entryId, event);
  }

  appendEvents(stream: StreamName, entries: readonly Buffer[], options: AppendOptions): Promise<string | undefined> {
    return this.eventStream.appendEvents(stream, entries, options);
  }

  readEvents(stream: StreamName, after: string, limit: number): Promise<StreamedEntry[]> {
    return this.eventStream.readEvents(stream, after, limit);
  }

  readEventsBack(stream: StreamName, before: string | undefined, limit: number): Promise<StreamedEntry[]> {
    return this.eventStream.readEventsBack(stream, before, limit);
  }

  lastEventId(stream: StreamName): Promise<string> {
    return this.eventStream.lastEventId(stream);
  }

  watch(listener: WakeListener): WakeSource {
    return new RedisWakeSource(this.connections, this.keyspace, listener);
  }

  queues(): Promise<string[]> {
    return this.inspector.queues();
  }

  acquireTokens(scope: string, max: number, deadline: number, taskIds: readonly string[]): Promise<boolean[]> {
    return this.limiting.acquireTokens(scope, max, deadline, taskIds);
  }

  releaseTokens(scope: string, taskIds: readonly string[]): Promise<number> {
    return this.limiting.releaseTokens(scope, taskIds);
  }

  takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<{ granted: number; retryIn: number }> {
    return this.limiting.takeStarts(scope, limit, wanted);
  }

  wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }> {
    return this.limiting.wakeWaiting(queue, waitlist, count);
  }

  hasQueue(queue: string): Promise<boolean> {
    return this.inspector.hasQueue(queue);
  }

  groups(queue: string): Promise<GroupSize[]> {
    return this.inspector.groups(queue);
  }

  describeQueue(queue: string): Promise<QueueNumbers> {
    return this.inspector.describeQueue(queue);
  }

  countsOfDays(queue: string, days: readonly string[]): Promise<DayCount[]> {
    return this.inspector.countsOfDays(queue, days);
  }

  getTask(queue: string, id: string): Promise<StoredTask | undefined> {
    return this.inspector.getTask(queue, id);
  }

  listTasks(queue: string, request: ListRequest): Promise<TaskPage> {
    return this.listing.listTasks(queue, request);
  }

  listIds(queue: string, request: ListRequest): Promise<IdPage> {
    return this.listing.listIds(queue, request);
  }

  moveTasks(
    queue: string,
    action: MoveAction,
    ids: readonly string[],
    from?: Place,
    maxArchived?: number,
  ): Promise<MoveStatus[]> {
    return this.moving.moveTasks(queue, action, ids, from, maxArchived);
  }

  rescheduleTasks(queue: string, ids: readonly string[], at: number, from?: Place): Promise<MoveStatus[]> {
    return this.moving.rescheduleTasks(queue, ids, at, from);
  }

  updatePayload(queue: string, id: string, payload: Buffer, replaces?: Buffer): Promise<UpdateStatus> {
    return this.moving.updatePayload(queue, id, payload, replaces);
  }

  async deleteQueue(queue: string, options: DeletionOptions): Promise<DeletionStatus> {
    const status = await this.deletion.deleteQueue(queue, options);
    if (status === 'deleted') this.producer.forget(queue);
    return status;
  }

  servers(): Promise<PublishedServer[]> {
    return this.publications.servers();
  }

  schedulerEntries(): Promise<SchedulerEntry[]> {
    return this.publications.schedulerEntries();
  }

  enqueueEvents(entryId: string, offset: number, size: number): Promise<SchedulerEnqueueEvent[]> {
    return this.publications.enqueueEvents(entryId, offset, size);
  }

  storeFacts(): Promise<StoreFacts[]> {
    return readStoreFacts(this.connections, this.clock);
  }

  redisInfo(): Promise<RedisInfo> {
    return readRedisInfo(this.connections);
  }

  clusterPlace(queue: string): Promise<ClusterPlace | undefined> {
    return this.inspector.clusterPlace(queue);
  }

  pauseQueue(queue: string): Promise<boolean> {
    return this.inspector.pauseQueue(queue);
  }

  resumeQueue(queue: string): Promise<boolean> {
    return this.inspector.resumeQueue(queue);
  }

  close(): Promise<void> {
    return this.connections.close();
  }
}
