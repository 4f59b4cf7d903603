import { type Clock, floorSeconds } from '../clock.js';
import type { ServerInfo, TaskMessage, WorkerInfo } from '../wire/message.js';
import type { GroupsRole } from './groups.js';
import type { CancellationRole } from './cancellation.js';
import type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';
import type { EventsRole } from './events.js';
import type { AdministrationRole, InspectionRole, ListingRole, PublicationsRole } from './inspection.js';
import type { LimitingRole } from './limiting.js';
import type { OperationsRole } from './operations.js';
import type { SchedulingRole } from './scheduling.js';

export type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';

/*
 * The contract between asynq's state machine and everything above it. It has two implementations
 * (redis/, memory/), and one suite (test/contract) tests both. Batches are the native form: a
 * single task is a batch of one.
 * Every call concerns one queue, because one queue is one slot of a Redis Cluster.
 * A call that rejects with BrokerUnavailableError may or may not have happened; a call that
 * resolves has happened completely.
 */

/**
 * How long a lease lasts, and how much longer a recoverer waits (clock skew) before it recovers an
 * expired one.
 */
export const LEASE_SECONDS = 30;
export const RECOVERY_GRACE_SECONDS = 30;

export interface ProducerRole {
  /** Creates tasks in one atomic step per call, in order. The result has one status per request. */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]>;
}

/**
 * The right to settle a task: the score that this process wrote to the lease set last. Every write
 * about the task is fenced by it, as another claim writes another score. `renewing` is the score of
 * an extension whose reply has not arrived (yet): either value then proves the lease.
 */
export interface Lease {
  readonly queue: string;
  readonly id: string;
  /** Unix seconds. */
  expiresAt: number;
  renewing?: number;
}

/** Margin for clock skew. */
const CLOCK_SKEW_SECONDS = 10;

/**
 * Whether another server may recover the task at any moment. @param now milliseconds since the
 * epoch
 */
export const isForfeit = ({ expiresAt }: Lease, now: number): boolean =>
  floorSeconds(now) > expiresAt + RECOVERY_GRACE_SECONDS - CLOCK_SKEW_SECONDS;

export interface LeasedTask {
  readonly lease: Lease;
  readonly message: TaskMessage;
  /** Since when it was pending, in milliseconds since the epoch; only when asked for and known. */
  readonly pendingSince?: number;
}

/**
 * A task whose `msg` is no task message. It is leased like any other, so that it can be archived as
 * it is.
 */
export interface DamagedTask {
  readonly lease: Lease;
  readonly raw: Buffer;
  readonly error: Error;
}

/**
 * The write that stores the outcome of an attempt. Messages are the updated ones; times are Unix
 * seconds.
 */
export type Settlement =
  /** Success without retention, or a revoked task: the task is deleted. Counted as processed. */
  | { readonly kind: 'done'; readonly lease: Lease; readonly uniqueKey: string }
  /** Success with retention: kept until `expiresAt`, with `result` when given. Counted as processed. */
  | {
      readonly kind: 'complete';
      readonly lease: Lease;
      readonly message: TaskMessage;
      readonly expiresAt: number;
      readonly result?: Buffer;
    }
  /** Failed, to run again at `retryAt`. Counted as processed and failed only when `countAsFailure`. */
  | {
      readonly kind: 'retry';
      readonly lease: Lease;
      readonly message: TaskMessage;
      readonly retryAt: number;
      readonly countAsFailure: boolean;
    }
  /**
   * Given up. Without a message the stored bytes stay as they are (damaged tasks). Counted as
   * processed and failed.
   */
  | { readonly kind: 'archive'; readonly lease: Lease; readonly message: TaskMessage | undefined }
  /** Back to the front of its queue, the attempt not counted (shutdown). */
  | { readonly kind: 'requeue'; readonly lease: Lease }
  /**
   * Puts the task into a waitlist of its queue until LimitingRole.wakeWaiting, as though it had not
   * been claimed. A task that was in the waitlist before gets its old position. Meanwhile it is in
   * `retry`, where asynq's tools show it, and is due there after a minute to an hour (one second
   * more per ten that wait) if nobody wakes it.
   */
  | { readonly kind: 'wait'; readonly lease: Lease; readonly waitlist: string };

/**
 * `settled`: stored, by this call or by an earlier one without a reply. `lost`: the lease is not
 * ours (any more), nothing was written. Both are final: do not retry.
 */
export type SettleStatus = 'settled' | 'lost';

/**
 * Bounds how many tasks of a queue run. Every server applies its own limits; Go servers have none.
 */
export interface QueueLimits {
  /** Tasks of the queue that may be active in the fleet, Go servers included; 0 is no limit. */
  readonly active: number;
  /** Tasks that servers with this limit may claim per `window`; 0 is no limit. */
  readonly rate: number;
  /**
   * Milliseconds, at least 1. Counted in sixteenths, the oldest part whole: no window has more than
   * `rate`.
   */
  readonly window: number;
}

export interface ExchangeRequest {
  readonly settle: readonly Settlement[];
  /** How many tasks to claim at most; 0 only settles and counts. */
  readonly take: number;
  readonly limits?: QueueLimits;
  /**
   * Also return since when each task was pending, which reads one more field per task. Default
   * false.
   */
  readonly since?: boolean;
}

export interface ExchangeReply {
  /** One per settlement, in order. */
  readonly settled: SettleStatus[];
  /** In the order in which to run them. Leased until now + LEASE_SECONDS (rounded down). */
  readonly tasks: LeasedTask[];
  readonly damaged: DamagedTask[];
  /** Tasks left in `pending`; 0 when the queue is paused. */
  readonly backlog: number;
  /**
   * When a limit, not the backlog, ended the claim: milliseconds until the next call may claim
   * more. Else 0.
   */
  readonly limitedFor: number;
}

export interface ConsumerRole {
  /**
   * One atomic round trip: settles finished tasks, then claims up to `take` pending ones, unless
   * the queue is paused. Dangling ids are removed and do not count. The connection never sends it
   * twice.
   */
  exchange(queue: string, request: ExchangeRequest): Promise<ExchangeReply>;
  /**
   * Extends leases to `expiresAt` (Unix seconds). Returns per lease whether it is still ours. Sets
   * `lease.renewing` before sending, and `lease.expiresAt` after the reply.
   */
  extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]>;
  /**
   * Stores the result of an active task. Returns `false`, without a write, when its lease is not
   * ours any more.
   */
  writeResult(lease: Lease, result: Buffer): Promise<boolean>;
}

export interface ExpiredLeases {
  readonly tasks: LeasedTask[];
  readonly damaged: DamagedTask[];
  /** How many dangling ids were removed. */
  readonly dangling: number;
}

export interface MaintenanceRole {
  /**
   * Moves due tasks (score ≤ now) from `scheduled` and `retry` to `pending`, or to their group when
   * the hash names one, in chunks until none is due. `nextDue`: the lowest score left, in Unix
   * seconds.
   */
  forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }>;
  /**
   * Up to `limit` tasks whose lease ended at or before `cutoff` (Unix seconds), oldest first, to be
   * settled by their old lease.
   */
  listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases>;
  /** Gives active ids without a lease one that ends at now + LEASE_SECONDS. Returns how many. */
  repairActive(queue: string): Promise<number>;
  /** Deletes up to `limit` completed tasks whose retention is over. Returns how many. */
  deleteExpiredCompleted(queue: string, limit: number): Promise<number>;
  /**
   * Deletes up to `limit` archived tasks that are older than 90 days or not among the newest 9,999,
   * with their locks. Returns how many.
   */
  trimArchived(queue: string, limit: number): Promise<number>;
}

export interface MonitoringRole {
  /** Publishes a server and its running tasks for `ttl` seconds. */
  writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void>;
  clearServerState(info: Pick<ServerInfo, 'host' | 'pid' | 'serverId'>): Promise<void>;
  /** Resolves when the store replies; in a cluster, when any node does. */
  ping(): Promise<void>;
}

/** Wake-ups: an idle server starts a task at once without polling faster. */
export interface WakeSource {
  /**
   * Arms one wake-up per queue for the next change of `pending` or `paused`, and reads the backlog
   * in the same step, so that no change is missed. Returns the backlog by queue (0 when paused).
   * Rejects when wake-ups are not available.
   */
  armPending(queues: readonly string[]): Promise<Map<string, number>>;
  /**
   * The same for `scheduled` and `retry`. Returns the lowest score of all queues (Unix seconds).
   */
  armDelayed(queues: readonly string[]): Promise<number | undefined>;
  close(): Promise<void>;
}

export interface WakeListener {
  /**
   * `pending` or `paused` of the queue has changed since it was armed. Arm again for the next
   * change.
   */
  onPending(queue: string): void;
  onDelayed(queue: string): void;
  /**
   * All wake-ups are lost (lost connection, not permitted): poll, and arm again at the next
   * occasion.
   */
  onLost(): void;
}

export interface WakeRole {
  /** A source of wake-ups on connections of its own, opened at first use. Each server has one. */
  watch(listener: WakeListener): WakeSource;
}

/**
 * The contract with the store. Each part of it is a role, and each component takes the roles it
 * needs.
 */
export interface Broker {
  /** Creates tasks. */
  readonly producer: ProducerRole;
  /** Claims tasks, keeps their leases, settles them. */
  readonly consumer: ConsumerRole;
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
  /** Fires planned times, publishes periodic entries. */
  readonly scheduling: SchedulingRole;
  /** Bounds work of the whole fleet. */
  readonly limiting: LimitingRole;
  /** Bounded streams of what has happened. */
  readonly events: EventsRole;
  /** Notices of changed queues. */
  readonly wake: WakeRole;
  /** Describes the store itself. */
  readonly operations: OperationsRole;
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
