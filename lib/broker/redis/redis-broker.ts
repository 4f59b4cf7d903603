import { type Clock, SystemClock } from '../../clock.js';
import { checkMaxPayloadSize } from '../../task/payload-size.js';
import { DEFAULT_KEY_PREFIX, Keyspace } from '../../wire/keys.js';
import { Archives } from '../archives.js';
import type { Broker, WakeRole } from '../broker.js';
import { FairQueues } from '../fair-queues.js';
import { FieldWrites } from './field-writes.js';
import { RedisFollowing } from './following.js';
import { RedisFairKeys } from './fair-keys.js';
import { RedisAdministration } from './administration.js';
import { RedisCancellation } from './cancellation.js';
import type { RedisConnections } from './connection/connections.js';
import { RedisCheckpoints } from './checkpoints.js';
import { RedisConsumer } from './consumer.js';
import { RedisEvents } from './events.js';
import { RedisGroups } from './groups.js';
import { RedisInspection } from './inspection.js';
import { RedisLinks } from './links.js';
import { RedisWorkflows } from './workflows.js';
import { RedisBatches } from './batches.js';
import { RedisLimiting } from './limiting.js';
import { RedisListing } from './listing.js';
import { RedisMaintenance } from './maintenance.js';
import { RedisMonitoring } from './monitoring.js';
import { RedisNotes } from './notes.js';
import { RedisObstacles } from './obstacles.js';
import { RedisOperations } from './operations.js';
import { RedisProducer } from './producer.js';
import { RedisPublications } from './publications.js';
import { RedisRows } from './rows.js';
import { RedisUniqueness } from './uniqueness.js';
import { RedisScheduling } from './scheduling.js';
import { RedisSeats } from './seats.js';
import { Scripts } from './scripts/scripts.js';
import { LEASE_TIMES, RedisLeaseGuards } from './lease-guard.js';
import type { ThreadTimes } from './lease-thread.js';
import { LeaseScores } from './lease-scores.js';
import { StoredResults } from './stored-results.js';
import { RedisWakeSource } from './wake-source.js';

export interface RedisBrokerOptions {
  /** The clock of tasks; default: the system's. Network timeouts are always real time. */
  readonly clock?: Clock;
  /** Default `asynq`. Go does not see any other. */
  readonly keyPrefix?: string;
  /** The maximal bytes of a payload or a result. Default 5 MiB. */
  readonly maxPayloadSize?: number;
  /** When a thread keeps leases. */
  readonly leaseTimes?: ThreadTimes;
}

/**
 * asynq's state machine on Redis 6.2 or later: one file per role in this folder, one script per
 * operation in lua/. It connects at the first call.
 *
 * Connections: `produce` enqueues; `consume` claims, settles, extends leases and maintains queues;
 * `monitor` is for publishing and inspection. Subscriptions and wake-ups have connections of their
 * own.
 */
export class RedisBroker implements Broker {
  readonly clock: Clock;
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
  readonly manual = false;
  readonly archives = new Archives();
  readonly fairQueues = new FairQueues();
  readonly producer: RedisProducer;
  readonly rows: RedisRows;
  readonly uniqueness: RedisUniqueness;
  readonly consumer: RedisConsumer;
  readonly leaseGuards: RedisLeaseGuards;
  readonly checkpoints: RedisCheckpoints;
  readonly maintenance: RedisMaintenance;
  readonly groups: RedisGroups;
  readonly monitoring: RedisMonitoring;
  readonly cancellation: RedisCancellation;
  readonly inspection: RedisInspection;
  readonly listing: RedisListing;
  readonly administration: RedisAdministration;
  readonly publications: RedisPublications;
  readonly obstacles: RedisObstacles;
  readonly fairKeys: RedisFairKeys;
  readonly scheduling: RedisScheduling;
  readonly limiting: RedisLimiting;
  readonly batches: RedisBatches;
  readonly workflows: RedisWorkflows;
  readonly links: RedisLinks;
  readonly events: RedisEvents;
  readonly wake: WakeRole;
  readonly following: RedisFollowing;
  readonly notes: RedisNotes;
  readonly seats: RedisSeats;
  readonly operations: RedisOperations;

  constructor(
    private readonly connections: RedisConnections,
    options: RedisBrokerOptions = {},
  ) {
    const { clock = new SystemClock(), keyPrefix = DEFAULT_KEY_PREFIX, maxPayloadSize } = options;
    const { leaseTimes: times = LEASE_TIMES } = options;
    const scripts = new Scripts(connections);
    const keyspace = new Keyspace(keyPrefix);
    const producer = new RedisProducer(connections, scripts, keyspace, clock, this.fairQueues);
    this.clock = clock;
    this.keyPrefix = keyPrefix;
    this.maxPayloadSize = checkMaxPayloadSize(maxPayloadSize);
    this.producer = producer;
    this.links = new RedisLinks(connections, scripts, keyspace, clock, (queue) => producer.register(queue));
    this.rows = new RedisRows(scripts, keyspace, clock, {
      register: (queue) => producer.register(queue),
      enqueueLinked: (queue, requests, rows) => this.links.enqueueRows(queue, requests, rows),
      enqueueRepeats: (queue, requests, rows) => this.uniqueness.enqueueRows(queue, requests, rows),
    });
    const stored = new StoredResults();
    const scores = new LeaseScores();
    const writes = new FieldWrites(scripts, keyspace, scores);
    this.consumer = new RedisConsumer(
      scripts,
      keyspace,
      clock,
      {
        archives: this.archives,
        fairQueues: this.fairQueues,
        stored,
        writes,
      },
      scores,
    );
    this.leaseGuards = new RedisLeaseGuards({ connections, keyspace, clock, scores, times });
    this.maintenance = new RedisMaintenance(connections, scripts, keyspace, clock, this.archives);
    this.uniqueness = new RedisUniqueness(connections, scripts, keyspace, clock, {
      acknowledgements: producer.acknowledgements,
      register: (queue) => producer.register(queue),
      registerLinks: (place) => this.links.register(place),
    });
    this.groups = new RedisGroups(connections, scripts, keyspace, clock, this.links);
    this.monitoring = new RedisMonitoring(connections, scripts, keyspace, clock);
    this.cancellation = new RedisCancellation(connections, scripts, keyspace, clock);
    this.inspection = new RedisInspection(connections, scripts, keyspace, clock);
    this.listing = new RedisListing(scripts, keyspace, clock);
    this.administration = new RedisAdministration(connections, scripts, keyspace, clock, this.archives, (queue) =>
      producer.forget(queue),
    );
    this.publications = new RedisPublications(connections, keyspace, clock);
    this.obstacles = new RedisObstacles(connections, scripts, keyspace, clock);
    this.fairKeys = new RedisFairKeys(connections, scripts, keyspace, clock);
    this.scheduling = new RedisScheduling(connections, scripts, keyspace, clock, producer, this.links);
    this.limiting = new RedisLimiting(connections, scripts, keyspace, clock);
    const list = (queue: string) => [producer.register(queue), this.links.register(queue)];
    this.checkpoints = new RedisCheckpoints(connections, scripts, keyspace, clock, { scores, writes, list });
    this.workflows = new RedisWorkflows(connections, scripts, keyspace, clock, list, stored);
    this.batches = new RedisBatches(connections, scripts, keyspace, clock, this.links, producer);
    this.events = new RedisEvents(connections, scripts, keyspace, clock);
    this.wake = {
      watch: (listener) => new RedisWakeSource(connections, keyspace, listener, new SystemClock(), this.fairQueues),
    };
    this.following = new RedisFollowing(connections, keyspace);
    this.notes = new RedisNotes(connections, scripts, keyspace, scores);
    this.seats = new RedisSeats(connections, scripts, keyspace);
    this.operations = new RedisOperations(connections, keyspace, clock);
  }

  close(): Promise<void> {
    return this.connections.close();
  }
}
