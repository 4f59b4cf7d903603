import type { FairQueues } from '../fair-queues.js';
import { type Clock, SystemClock } from '../../clock.js';
import { checkMaxPayloadSize } from '../../task/payload-size.js';
import type { LeaseGuardsRole } from '../lease-guards.js';
import { DEFAULT_KEY_PREFIX } from '../../wire/keys.js';
import type { SchedulerEnqueueEvent, SchedulerEntry } from '../../wire/message.js';
import type { Archives } from '../archives.js';
import type { Broker, LeasedTask } from '../broker.js';
import type { StoredTask } from '../inspection.js';
import type { StoredWait } from '../links.js';
import { MemoryAdministration } from './administration.js';
import { MemoryCancellation } from './cancellation.js';
import { MemoryCheckpoints } from './checkpoints.js';
import { MemoryConsumer, takeOne, withLinks } from './consumer.js';
import { MemoryFollowing } from './following.js';
import { FairPending } from './fair-pending.js';
import { MemoryFairKeys } from './fair-keys.js';
import { MemoryEvents } from './events.js';
import { MemoryGroups } from './groups.js';
import { MemoryInspection } from './inspection.js';
import { LinkEngine } from './links/engine.js';
import { MemoryLinks } from './links/links.js';
import { MemoryWorkflows } from './links/workflows.js';
import { MemoryBatches } from './links/batches.js';
import { MemoryLimiting } from './limiting.js';
import { MemoryListing } from './listing.js';
import { MemoryMaintenance } from './maintenance.js';
import { MemoryState } from './memory-state.js';
import { MemoryMonitoring } from './monitoring.js';
import { MemoryNotes } from './notes.js';
import { MemoryObstacles } from './obstacles.js';
import { MemoryOperations } from './operations.js';
import { MemoryProducer } from './producer.js';
import { MemoryPublications } from './publications.js';
import { type QueueStore, wellFormed } from './queue-store.js';
import { SchedulerPublications } from './scheduler-publications.js';
import { MemoryRows } from './rows.js';
import { MemoryUniqueness } from './uniqueness.js';
import { MemoryScheduling } from './scheduling.js';
import { MemorySeats } from './seats.js';
import { type Snapshot, describeQueue } from './snapshot.js';
import { MemoryWake } from './wake.js';

export interface MemoryBrokerOptions {
  /** Default `asynq`. Only the names of unique locks have it: every memory broker is separate. */
  readonly keyPrefix?: string;
  /** The maximal bytes of a payload or a result. Default 5 MiB. */
  readonly maxPayloadSize?: number;
  /** Driven by hand (testing): no server is started on it. Default false. */
  readonly manual?: boolean;
}

/**
 * The broker in process, for `connection: 'memory'` and tests. It has the contract of the one on
 * Redis, and one suite tests both. Nothing survives the process. Every call does its work at once
 * and resolves afterwards.
 */
export class MemoryBroker implements Broker {
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
  readonly manual: boolean;
  readonly archives: Archives;
  readonly fairQueues: FairQueues;
  readonly producer: MemoryProducer;
  readonly rows: MemoryRows;
  readonly uniqueness: MemoryUniqueness;
  readonly consumer: MemoryConsumer;
  /** A process whose event loop stands still is the only one here. */
  readonly leaseGuards: LeaseGuardsRole = { open: () => undefined };
  readonly checkpoints: MemoryCheckpoints;
  readonly maintenance: MemoryMaintenance;
  readonly groups: MemoryGroups;
  readonly monitoring: MemoryMonitoring;
  readonly cancellation: MemoryCancellation;
  readonly inspection: MemoryInspection;
  readonly listing: MemoryListing;
  readonly administration: MemoryAdministration;
  readonly publications: MemoryPublications;
  readonly obstacles: MemoryObstacles;
  readonly fairKeys: MemoryFairKeys;
  readonly scheduling: MemoryScheduling;
  readonly limiting: MemoryLimiting;
  readonly batches: MemoryBatches;
  readonly workflows: MemoryWorkflows;
  readonly links: MemoryLinks;
  readonly events: MemoryEvents;
  readonly wake: MemoryWake;
  readonly following: MemoryFollowing;
  readonly notes: MemoryNotes;
  readonly seats: MemorySeats;
  readonly operations: MemoryOperations;
  private readonly state: MemoryState;
  private readonly engine: LinkEngine;
  private readonly schedulers = new SchedulerPublications();

  constructor(
    readonly clock: Clock = new SystemClock(),
    options: MemoryBrokerOptions = {},
  ) {
    const state = new MemoryState(clock);
    this.state = state;
    this.keyPrefix = options.keyPrefix ?? DEFAULT_KEY_PREFIX;
    this.maxPayloadSize = checkMaxPayloadSize(options.maxPayloadSize);
    this.manual = options.manual ?? false;
    this.archives = state.archives;
    this.fairQueues = state.fairQueues;
    this.producer = new MemoryProducer(state);
    const links = new LinkEngine(state);
    this.engine = links;
    this.consumer = new MemoryConsumer(state, links);
    this.maintenance = new MemoryMaintenance(state);
    this.groups = new MemoryGroups(state, this.keyPrefix, links);
    this.monitoring = new MemoryMonitoring(state);
    this.cancellation = new MemoryCancellation(state);
    this.inspection = new MemoryInspection(state);
    this.listing = new MemoryListing(state);
    this.administration = new MemoryAdministration(state);
    this.publications = new MemoryPublications(state, this.monitoring, this.schedulers);
    this.scheduling = new MemoryScheduling(state, links, this.schedulers);
    this.limiting = new MemoryLimiting(state);
    this.obstacles = new MemoryObstacles(state, this.monitoring, this.limiting);
    this.fairKeys = new MemoryFairKeys(state);
    this.links = new MemoryLinks(links);
    this.checkpoints = new MemoryCheckpoints(state, links, this.links.stepCalls);
    this.uniqueness = new MemoryUniqueness(links, this.cancellation);
    this.rows = new MemoryRows(this.producer, this.links, this.uniqueness);
    this.workflows = new MemoryWorkflows(links);
    this.batches = new MemoryBatches(links);
    this.events = new MemoryEvents(state);
    this.wake = new MemoryWake(state);
    this.following = new MemoryFollowing(state);
    this.notes = new MemoryNotes(state);
    this.seats = new MemorySeats(state);
    this.operations = new MemoryOperations(state);
  }

  async close(): Promise<void> {
    this.state.closed = true;
    this.wake.end();
    this.following.end();
    this.cancellation.end();
  }

  /** Leases one given pending task, paused or not; `undefined` when it is not pending. */
  take(queue: string, id: string): LeasedTask | undefined {
    const task = this.state.change(queue, (store, now) => takeOne(store, queue, wellFormed(id), now));
    return task && withLinks(this.engine, task);
  }

  /** Every task of the queue, or of all queues, in the order in which they were enqueued. */
  tasks(queue?: string): StoredTask[] {
    const stores = queue === undefined ? [...this.state.stores.values()] : [this.store(queue)];
    const all = stores.flatMap((store) => [...store.tasks].map(([id, { arrival }]) => ({ store, id, arrival })));
    return all.sort((a, b) => a.arrival - b.arrival).flatMap(({ store, id }) => store.describe(id) ?? []);
  }

  /** When the first claimed set goes back to its group, in milliseconds since the epoch. */
  nextReclaim(): number | undefined {
    const sets = [...this.state.stores.values()].flatMap((store) => [...store.sets.values()]);
    return sets.length === 0 ? undefined : Math.min(...sets.map(({ deadline }) => deadline)) * 1000;
  }

  /** When the first timer of a run or a batch is due, in milliseconds since the epoch. */
  nextTimer(): number | undefined {
    const seconds = this.engine.nextTimer();
    return seconds === undefined ? undefined : seconds * 1000;
  }

  /** When fewer starts of a queue count for its rate, in milliseconds since the epoch, while tasks of it are pending. */
  nextStart(queue: string, rate: { readonly window: number } | undefined): number | undefined {
    const store = this.store(queue);
    const { now } = this.state;
    return rate && store.backlog > 0 ? now + store.starts(rate.window).untilFewer(now) : undefined;
  }

  /** When the rate of a key of a fair queue lets a task start that waits for it, in milliseconds since the epoch. */
  nextTurn(queue: string): number | undefined {
    const { pending } = this.store(queue);
    return pending instanceof FairPending ? pending.nextStart(this.state.now) : undefined;
  }

  /** What a task waits for, or has waited for. */
  waitOf(queue: string, id: string): StoredWait | undefined {
    return this.links.describe(queue, id);
  }

  /** What schedulers have published and what has not expired. */
  publishedEntries(): SchedulerEntry[] {
    return this.schedulers.entries(this.clock.now());
  }

  /** The history of a periodic entry, oldest first. */
  publishedEvents(entryId: string): readonly SchedulerEnqueueEvent[] {
    return this.schedulers.events(entryId, this.clock.now());
  }

  /** All that can be observed of all queues that hold, or ever held, anything. Still works after `close`. */
  snapshot(): Snapshot {
    const known = [...this.state.stores].filter(
      ([, store]) => store.listed || store.pausedAt !== undefined || store.schedules.size > 0,
    );
    return Object.fromEntries(known.map(([queue, store]) => [queue, describeQueue(store, this.clock.now())]));
  }

  /** Forgets every queue and task, as FLUSHDB would. */
  clear(): void {
    const queues = [...this.state.stores.keys()];
    this.state.stores.clear();
    for (const queue of queues) this.state.tasksChanged(queue);
    this.engine.clear();
    this.batches.clear();
    this.cancellation.clear();
    this.limiting.clear();
    this.seats.clear();
    this.events.clear();
  }

  /** The data of a queue, for tests that bring about what no call can. */
  store(queue: string): QueueStore {
    return this.state.store(queue);
  }
}
