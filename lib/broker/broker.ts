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
 * The contract between asynq's state machine and everything above it. Two implementations exist (redis/, memory/), and
 * one suite (test/contract) holds both to it. Batches are the native form: a single task is a batch of one.
 * Every call concerns one queue, because one queue is one slot of a Redis Cluster.
 * A call that rejects (BrokerUnavailableError) may or may not have happened; a call that resolves has happened whole.
 */

/** Seconds a lease lasts, and the further seconds a recoverer waits (clock skew) before it takes an expired one. */
export const LEASE_SECONDS = 30;
export const RECOVERY_GRACE_SECONDS = 30;

export interface ProducerRole {
  /** Creates tasks in one atomic step per call, in order. The result has one status per request. */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]>;
}

/**
 * The right to finish a task: the score this process wrote to the lease set last. Every write about the task is fenced
 * by it; another dequeue wrote another score. `renewing` is the score of an extension whose reply has not (yet) been
 * seen: either value then proves the lease.
 */
export interface Lease {
  readonly queue: string;
  readonly id: string;
  /** Unix seconds. */
  expiresAt: number;
  renewing?: number;
}

/** Margin for skewed clocks, in seconds. */
const CLOCK_SKEW_SECONDS = 10;

/** Whether another server may take the task any moment. @param now milliseconds since the epoch */
export const isForfeit = ({ expiresAt }: Lease, now: number): boolean =>
  floorSeconds(now) > expiresAt + RECOVERY_GRACE_SECONDS - CLOCK_SKEW_SECONDS;

export interface LeasedTask {
  readonly lease: Lease;
  readonly message: TaskMessage;
  /** When it was put where it was taken from, in milliseconds since the epoch; only when asked for, and when it is known. */
  readonly pendingSince?: number;
}

/** A task whose `msg` is not a task message. It is leased like any other, so that it can be archived as it is. */
export interface DamagedTask {
  readonly lease: Lease;
  readonly raw: Buffer;
  readonly error: Error;
}

/** What becomes of a leased task. Messages are the rewritten ones; times are Unix seconds. */
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
  /** Given up. Without a message the stored bytes stay as they are (damaged tasks). Counted as processed and failed. */
  | { readonly kind: 'archive'; readonly lease: Lease; readonly message: TaskMessage | undefined }
  /** Back to the front of its queue, the attempt not counted (shutdown). */
  | { readonly kind: 'requeue'; readonly lease: Lease }
  /**
   * Puts it into a line of its queue until LimitingRole.wakeWaiting, as though it had not been taken; in one where it stood before it
   * gets its old place. Meanwhile it is among those to be retried, where asynq's tools see it, and comes after a minute to
   * an hour (a second more for ten that wait) should nobody wake it.
   */
  | { readonly kind: 'wait'; readonly lease: Lease; readonly waitlist: string };

/**
 * `settled`: it is stored, by this call or by one before that was not answered. `lost`: the lease is not ours (any more), nothing was
 * written for this item. Both are final: do not try again.
 */
export type SettleStatus = 'settled' | 'lost';

/** What bounds how many tasks of a queue run. Every server applies its own; Go servers know of none. */
export interface QueueLimits {
  /** Tasks of the queue that may be active in the whole fleet, those on Go servers included; 0 is no limit. */
  readonly active: number;
  /** Tasks that may be taken per `window` by the servers that have this limit; 0 is no limit. */
  readonly rate: number;
  /** Milliseconds, at least 1. Counted in sixteenths, the oldest whole: no window ever sees more than `rate`. */
  readonly window: number;
}

export interface ExchangeRequest {
  readonly settle: readonly Settlement[];
  /** How many tasks to take at most; 0 only settles and counts. */
  readonly take: number;
  readonly limits?: QueueLimits;
  /** Also tell since when each task was pending: one more field is read per task. Default false. */
  readonly since?: boolean;
}

export interface ExchangeReply {
  /** One per settlement, in order. */
  readonly settled: SettleStatus[];
  /** In the order they are to run. Leased until now + LEASE_SECONDS (rounded down). */
  readonly tasks: LeasedTask[];
  readonly damaged: DamagedTask[];
  /** Tasks left in `pending` after the call; 0 when the queue is paused. */
  readonly backlog: number;
  /** When a limit, not the backlog, ended the take: milliseconds until asking again may bring more. Else 0. */
  readonly limitedFor: number;
}

export interface ConsumerRole {
  /**
   * One atomic round trip: settles what has finished, then takes up to `take` pending tasks, unless the queue is paused.
   * Ids without a message are cleared away and never fill the batch. Is never sent twice by the connection.
   */
  exchange(queue: string, request: ExchangeRequest): Promise<ExchangeReply>;
  /**
   * Extends leases to `expiresAt` (Unix seconds); answers per lease whether it is still ours. Before sending, sets
   * `lease.renewing`; after the reply moves it to `lease.expiresAt`.
   */
  extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]>;
  /** Stores a result on an active task that is still ours; `false` when it is not, and nothing was written. */
  writeResult(lease: Lease, result: Buffer): Promise<boolean>;
}

export interface ExpiredLeases {
  readonly tasks: LeasedTask[];
  readonly damaged: DamagedTask[];
  /** Ids that had no message; they have been removed. */
  readonly dangling: number;
}

export interface MaintenanceRole {
  /**
   * Moves due tasks (score ≤ now) from `scheduled` and `retry` to `pending`, or to their group when the hash names one.
   * Works in chunks until nothing is due. `nextDue`: the lowest score left, in Unix seconds.
   */
  forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }>;
  /** Up to `limit` tasks whose lease ended at or before `cutoff` (Unix seconds), oldest first, to settle by their old lease. */
  listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases>;
  /** Gives ids in `active` that have no lease one that ends at now + LEASE_SECONDS; answers how many. */
  repairActive(queue: string): Promise<number>;
  /** Deletes up to `limit` completed tasks whose retention is over; answers how many. */
  deleteExpiredCompleted(queue: string, limit: number): Promise<number>;
  /** Deletes up to `limit` archived tasks older than 90 days or beyond the newest 9,999, releasing their locks; answers how many. */
  trimArchived(queue: string, limit: number): Promise<number>;
}

export interface MonitoringRole {
  /** Publishes a server and its running tasks for `ttl` seconds. */
  writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void>;
  clearServerState(info: Pick<ServerInfo, 'host' | 'pid' | 'serverId'>): Promise<void>;
  /** Resolves when the store answers, in a cluster any part of it. */
  ping(): Promise<void>;
}

/** Wake-up notices: what lets an idle server start a task at once without polling faster. */
export interface WakeSource {
  /**
   * Arms one notice per queue for the next change of `pending` or `paused`, and reads the backlog in the same step, so that
   * nothing falls between. Answers the runnable backlog by queue (0 when paused). Rejects when notices are not to be had.
   */
  armPending(queues: readonly string[]): Promise<Map<string, number>>;
  /** The same for `scheduled` and `retry`; answers the lowest score of all queues (Unix seconds). */
  armDelayed(queues: readonly string[]): Promise<number | undefined>;
  close(): Promise<void>;
}

export interface WakeListener {
  /** `pending` or `paused` of the queue has changed since it was armed; arm again to hear of it again. */
  onPending(queue: string): void;
  onDelayed(queue: string): void;
  /** Everything armed is forgotten (connection lost, notices forbidden): poll, and arm again at the next occasion. */
  onLost(): void;
}

export interface WakeRole {
  /** A source of wake-ups on connections of its own, made lazily; each server has one. */
  watch(listener: WakeListener): WakeSource;
}

/** The contract with the store. Each part of it is a role; who needs a part takes that role. */
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
  /** The time everything above this broker lives by. */
  readonly clock: Clock;
  /** Key prefix, default `asynq`; unique-lock names are built with it. */
  readonly keyPrefix: string;
  /** The most bytes of a payload, or a result, that this process stores: a bound for its callers. The broker itself stores any. */
  readonly maxPayloadSize: number;
  /** Driven by hand (testing): the module does not start servers on it. */
  readonly manual: boolean;
  /** Closes every connection the broker opened itself, after the commands under way. Idempotent. */
  close(): Promise<void>;
}
