import type { Archives } from './archives.js';
import type { FairKeysRole } from './fair-keys.js';
import type { FairQueues } from './fair-queues.js';
import type { Clock } from '../clock.js';
import type { CancellationRole } from './cancellation.js';
import type { CheckpointsRole } from './checkpoints.js';
import type { ConsumerRole } from './consumer.js';
import type { EventsRole } from './events.js';
import type { FollowingRole } from './following.js';
import type { GroupsRole } from './groups.js';
import type { AdministrationRole, InspectionRole, ListingRole, PublicationsRole } from './inspection.js';
import type { LinksRole } from './links.js';
import type { WorkflowsRole } from './workflows.js';
import type { BatchesRole } from './batches.js';
import type { LeaseGuardsRole } from './lease-guards.js';
import type { LimitingRole } from './limiting.js';
import type { MaintenanceRole } from './maintenance.js';
import type { MonitoringRole } from './monitoring.js';
import type { NotesRole } from './notes.js';
import type { ObstaclesRole } from './obstacles.js';
import type { OperationsRole } from './operations.js';
import type { ProducerRole } from './producer.js';
import type { RowsRole } from './rows.js';
import type { SchedulingRole } from './scheduling.js';
import type { SeatsRole } from './seats.js';
import type { UniquenessRole } from './uniqueness.js';
import type { WakeRole } from './wake.js';

export * from './consumer.js';
export type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';
export type { ExpiredLeases, MaintenanceRole } from './maintenance.js';
export type { MonitoringRole } from './monitoring.js';
export type { ProducerRole } from './producer.js';
export type { WakeListener, WakeRole, WakeSource } from './wake.js';

/*
 * The contract between asynq's state machine and everything above it. It has two implementations
 * (redis/, memory/), and one suite (test/contract) tests both. Batches are the native form: a
 * single task is a batch of one.
 * Every call concerns one queue, because one queue is one slot of a Redis Cluster.
 * A call that rejects with BrokerUnavailableError may or may not have happened; a call that
 * resolves has happened completely.
 */

/**
 * The contract with the store. Each part of it is a role, and each component takes the roles it
 * needs.
 */
export interface Broker {
  /** Creates tasks. */
  readonly producer: ProducerRole;
  /** Creates tasks of the rows of an outbox, each once. */
  readonly rows: RowsRole;
  /** Creates tasks that have a policy for repeats; locks. */
  readonly uniqueness: UniquenessRole;
  /** Claims tasks, keeps their leases, settles them. */
  readonly consumer: ConsumerRole;
  /** Keeps leases while the event loop stands still. */
  readonly leaseGuards: LeaseGuardsRole;
  /** What handlers have done so far, and signals for them. */
  readonly checkpoints: CheckpointsRole;
  /** Moves due tasks, recovers lost ones, deletes old ones. */
  readonly maintenance: MaintenanceRole;
  /** Aggregates the tasks of a group. */
  readonly groups: GroupsRole;
  /** Publishes which servers run what. */
  readonly monitoring: MonitoringRole;
  /** Cancels active tasks. */
  readonly cancellation: CancellationRole;
  /** Reads queues and single tasks. */
  readonly inspection: InspectionRole;
  /** Reads the tasks of a state or a group, page by page. */
  readonly listing: ListingRole;
  /** Changes tasks and queues on behalf of an operator. */
  readonly administration: AdministrationRole;
  /** Reads what servers and schedulers have published. */
  readonly publications: PublicationsRole;
  /** Reads what may keep tasks from running. */
  readonly obstacles: ObstaclesRole;
  /** Reads the keys of fair queues. */
  readonly fairKeys: FairKeysRole;
  /** Fires planned times, publishes periodic entries. */
  readonly scheduling: SchedulingRole;
  /** Bounds work of the whole fleet. */
  readonly limiting: LimitingRole;
  /** Waits, and the parcels between places. */
  readonly links: LinksRole;
  /** Runs of workflows. */
  readonly workflows: WorkflowsRole;
  /** Batches of tasks. */
  readonly batches: BatchesRole;
  /** Bounded streams of what has happened. */
  readonly events: EventsRole;
  /** Notices of changed queues. */
  readonly wake: WakeRole;
  /** Tasks that somebody waits for. */
  readonly following: FollowingRole;
  /** What handlers say while they run. */
  readonly notes: NotesRole;
  /** Which servers of a crew have a seat, and which stand by. */
  readonly seats: SeatsRole;
  /** Describes the store itself. */
  readonly operations: OperationsRole;
  /** What the archives of the queues keep, where this process trims them. */
  readonly archives: Archives;
  /** The queues whose tasks take turns by their keys. */
  readonly fairQueues: FairQueues;
  /** The clock of everything above this broker. */
  readonly clock: Clock;
  /** Key prefix, default `asynq`; unique-lock names are built with it. */
  readonly keyPrefix: string;
  /**
   * The maximal bytes of a payload or result that this process stores. Callers check it; the broker
   * stores any size.
   */
  readonly maxPayloadSize: number;
  /** Driven by hand (testing): the module does not start servers on it. */
  readonly manual: boolean;
  /** Closes every connection the broker opened itself, after the commands under way. Idempotent. */
  close(): Promise<void>;
}
