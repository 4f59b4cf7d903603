import { floorSeconds } from '../clock.js';
import type { TaskMessage } from '../wire/message.js';
import type { AttemptNote } from './attempts.js';
import type { Caused, Watcher } from './links.js';

/**
 * How long a lease lasts, and how much longer a recoverer waits (clock skew) before it recovers an
 * expired one.
 */
export const LEASE_SECONDS = 30;
export const RECOVERY_GRACE_SECONDS = 30;

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
  renewing?: number | undefined;
  /** Its place among the leases that a guard keeps. */
  slot?: number | undefined;
}

/** Margin for clock skew. */
const CLOCK_SKEW_SECONDS = 10;

/**
 * Whether another server may recover the task at any moment. @param now milliseconds since the
 * epoch
 */
export const isForfeit = ({ expiresAt }: Lease, now: number): boolean =>
  floorSeconds(now) > expiresAt + RECOVERY_GRACE_SECONDS - CLOCK_SKEW_SECONDS;

/** What a handler has returned: text, which is stored as UTF-8, or bytes. Whoever reads it may get either. */
export type StoredResult = string | Buffer;

export interface LeasedTask {
  readonly lease: Lease;
  readonly message: TaskMessage;
  /** Since when it was pending, in milliseconds since the epoch; only when asked for and known. */
  readonly pendingSince?: number | undefined;
  /** Whether nothing was stored of it but its message when it was claimed; only when asked for and known. */
  readonly bare?: boolean | undefined;
  /** Who is notified of its end; only when somebody is. */
  readonly links?: readonly Watcher[] | undefined;
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
 * seconds. `attempt` is what the attempt leaves in the history of the task.
 */
export type Settlement =
  /**
   * Success without retention, or a revoked task: the task is deleted. Counted as processed. Those
   * who wait for the task get `result`; for them a revoked task has failed, for `reason`.
   */
  | {
      readonly kind: 'done';
      readonly lease: Lease;
      readonly uniqueKey: string;
      readonly result?: StoredResult | undefined;
      /** The step whose result this is, as the claim has returned it. */
      readonly step?: Extract<Watcher, { k: 'r' }> | undefined;
      /** The batch that it is a member of, when the claim has returned nobody else who watches it. */
      readonly member?: string | undefined;
      readonly revoked?: true;
      readonly reason?: string | undefined;
    }
  /** Success with retention: kept until `expiresAt`, with `result` when given. Counted as processed. */
  | {
      readonly kind: 'complete';
      readonly lease: Lease;
      readonly message: TaskMessage;
      readonly expiresAt: number;
      readonly result?: StoredResult | undefined;
      readonly attempt?: AttemptNote | undefined;
    }
  /** Failed, to run again at `retryAt`. Counted as processed and failed only when `countAsFailure`. */
  | {
      readonly kind: 'retry';
      readonly lease: Lease;
      readonly message: TaskMessage;
      readonly retryAt: number;
      readonly countAsFailure: boolean;
      readonly attempt?: AttemptNote | undefined;
    }
  /**
   * Given up. Without a message the stored bytes stay as they are (damaged tasks). Counted as
   * processed and failed. Those who wait for the task get `reason`.
   */
  | {
      readonly kind: 'archive';
      readonly lease: Lease;
      readonly message: TaskMessage | undefined;
      readonly reason?: string | undefined;
      readonly attempt?: AttemptNote | undefined;
    }
  /**
   * Back to the front of its queue, the attempt not counted (shutdown). With `countedAt`, that of the reply that claimed it, its start
   * is given back to the rates that have counted it.
   */
  | { readonly kind: 'requeue'; readonly lease: Lease; readonly countedAt?: number | undefined }
  /**
   * Puts the task into a waitlist of its queue until LimitingRole.wakeWaiting, as though it had not
   * been claimed. A task that was in the waitlist before gets its old position. Meanwhile it is in
   * `retry`, where asynq's tools show it, and is due there after a minute to an hour (one second
   * more per ten that wait) if nobody wakes it.
   */
  | { readonly kind: 'wait'; readonly lease: Lease; readonly waitlist: string }
  | Sleep;

/** What ends a sleep before its time: the nth signal of a name, from 1 on; or the answer of a called task, by its name. */
export type AwaitedEvent = { readonly signal: string; readonly n: number } | { readonly answer: string };

/**
 * The handler goes on later: the task is in `scheduled` until `wakeAt` (Unix seconds), or until what it waits for comes. When that is
 * there already, it goes to the front of its queue. The attempt is not counted.
 */
export interface Sleep {
  readonly kind: 'sleep';
  readonly lease: Lease;
  readonly wakeAt: number;
  /** In place of the stored one: a task that has begun does not expire. */
  readonly message?: TaskMessage | undefined;
  /** What is stored of the step in which it sleeps, unless it was stored before. */
  readonly checkpoint?: { readonly name: string; readonly bytes: Buffer } | undefined;
  /** What ends the sleep; the first of these that comes does. An answer to a step of which nothing is stored (Redis has lost it) ends it at once. */
  readonly awaits?: readonly AwaitedEvent[] | undefined;
  /** It goes to the front of its queue at once. Only with a checkpoint. */
  readonly atOnce?: true | undefined;
  readonly attempt?: AttemptNote | undefined;
}

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
   * Milliseconds, at least 1. See {@link StartLimit}.
   */
  readonly window: number;
}

export interface ExchangeRequest {
  readonly settle: readonly Settlement[];
  /**
   * How many tasks to claim at most; 0 only settles and counts. A claim may end at MAX_CALL_BYTES, with at
   * least one task.
   */
  readonly take: number;
  readonly limits?: QueueLimits;
  /**
   * Waitlists by the types of the tasks that are put into them, as by a settlement `wait`, instead of being claimed: up to MAX_ASIDE of
   * those that are next. Not in a fair queue.
   */
  readonly aside?: ReadonlyMap<string, string>;
  /**
   * Waitlists, each with how many of its tasks are claimed before pending ones, the longest waiting first. None while the queue is paused.
   * When one has fewer, as many pending tasks are claimed that would be put into it (`aside`). Not in a fair queue.
   */
  readonly held?: ReadonlyMap<string, number>;
  /** So many of these are claimed beside `take`, the others are a part of it. Default 0. */
  readonly ahead?: number;
  /**
   * For how many milliseconds after the call the tasks may wait for their start: those that a rate counts, of the queue or of a key, are
   * counted at the end of that time. Default 0: they start when they are taken.
   */
  readonly allowance?: number;
  /**
   * Also return since when each task was pending, which reads one more field per task. Default
   * false.
   */
  readonly since?: boolean;
  /** Also tell which tasks are bare, which counts the fields of each. Default false. */
  readonly bare?: boolean;
}

/** With what it has caused, for the relay, when the queue has links. */
export interface ExchangeReply extends Partial<Caused> {
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
  /** Only of a fair queue: milliseconds until a key that its own limit holds back may have room, 0 when there is none. */
  readonly opensIn?: number;
  /** For when rates have counted the starts of these tasks, at the earliest: milliseconds since the epoch. Only with an `allowance`. */
  readonly countedAt?: number;
  /** How many tasks of each type were put aside; left out when none was. */
  readonly aside?: ReadonlyMap<string, number>;
  /** What came of each waitlist that was asked for tasks; left out when nothing could be claimed. Their tasks are the first of `tasks`. */
  readonly held?: ReadonlyMap<string, ClaimedHeld>;
}

export interface ClaimedHeld {
  readonly claimed: number;
  /** How many still wait there. */
  readonly left: number;
}

/** How many tasks one call puts aside. */
export const MAX_ASIDE = 250;

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
