import type { TaskState } from '../../wire/states.js';
import type { ExpiryPolicy } from '../../wire/expiry.js';
import type { PublishedLimits } from '../../broker/server-profile.js';
import type { KeyLimit } from '../fair-keys.js';
import type { HandlerStepInfo } from '../handler-step.js';
import type { WaitedFor } from '../waits.js';

/** A server as a reason names it. */
export interface ServerRef {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
}

/** What a limit counts: tasks at a time in each process, in the fleet, or starts per time. */
export type ReachedLimit = 'concurrency' | 'globalConcurrency' | 'rateLimit';

/** A task that has one of the places of a limit. */
export interface LimitHolder {
  /** Empty when it is not known: another program named the holder. */
  readonly queue: string;
  readonly id: string;
}

/** A task that is waited for and has not succeeded. */
export interface OpenPrerequisite extends WaitedFor {
  /** It is a task that has not ended, in a queue that no server serves now. False also when its queue is not known. */
  readonly unserved: boolean;
}

interface LimitState {
  readonly limits: PublishedLimits;
  /** Which of them are reached now; empty: none, and the task has its turn within seconds. */
  readonly reached: readonly ReachedLimit[];
  /** How many count for `globalConcurrency`, or else for `concurrency`. */
  readonly running: number;
  /** What is left of a rate whose tasks have costs. */
  readonly left?: number;
  /** When more may start, when `rateLimit` is reached. */
  readonly opensAt: Date | undefined;
}

/** A step of a handler that sleeps, waits for a signal or a task, or is to be tried again. */
export type SuspendedStep = Pick<HandlerStepInfo, 'name' | 'state' | 'wakeAt' | 'signal' | 'child'>;

/** Why a task does not run, or that it does. */
export type TaskReason =
  /** The queue has no such task. `similar`: a queue of a similar name, when there is no such queue. */
  | { readonly kind: 'missing'; readonly hasQueue: boolean; readonly similar: string | undefined }
  /** Its message cannot be decoded. */
  | { readonly kind: 'damaged'; readonly error: string }
  /** It has succeeded. */
  | { readonly kind: 'completed'; readonly at: Date | undefined }
  /**
   * It is over. `cause`: its servers died too often; all its retries failed; it failed for good or was archived after a failure; what it waits for failed; it expired and
   * has not run; somebody has archived it before it failed.
   */
  | {
      readonly kind: 'archived';
      readonly cause: 'crashes' | 'retries' | 'failure' | 'prerequisite' | 'expiry' | 'action';
      readonly error: string;
      readonly failedAt: Date | undefined;
      readonly retried: number;
      readonly maxRetry: number;
    }
  /** A server runs it; `undefined` while none has published that yet. */
  | {
      readonly kind: 'running';
      readonly server: ServerRef | undefined;
      readonly since: Date | undefined;
      readonly deadline: Date | undefined;
      readonly leaseUntil: Date;
    }
  /** Its server is gone, or does not extend the lease. Another one recovers it after `recoverableAt`. */
  | { readonly kind: 'leaseExpired'; readonly leaseUntil: Date | undefined; readonly recoverableAt: Date }
  | { readonly kind: 'scheduled'; readonly at: Date }
  /** Its handler sleeps, or waits, in these steps. It is called again at `at` at the latest. */
  | { readonly kind: 'suspended'; readonly at: Date; readonly steps: readonly SuspendedStep[] }
  | {
      readonly kind: 'retry';
      readonly at: Date;
      readonly retried: number;
      readonly maxRetry: number;
      readonly error: string;
      readonly failedAt: Date | undefined;
    }
  /** Its time has come, and no server has moved it to the pending ones yet. */
  | { readonly kind: 'due'; readonly at: Date }
  /** It is in a group. `aggregated`: whether a server aggregates groups; `undefined` when that is not known. */
  | { readonly kind: 'aggregating'; readonly group: string; readonly aggregated: boolean | undefined }
  /** It waits for tasks. `open`: those that have not succeeded. `follows`: it is the one that `latest` lets wait for the one before it. */
  | {
      readonly kind: 'waiting';
      readonly open: readonly OpenPrerequisite[];
      readonly prerequisites: number;
      readonly follows: boolean;
      readonly until: Date | undefined;
    }
  | { readonly kind: 'queuePaused' }
  /** No server takes tasks of its queue. `servers`: how many there are at all. */
  | { readonly kind: 'notServed'; readonly servers: number }
  /** All servers of its queue drain or shut down. */
  | { readonly kind: 'draining'; readonly servers: readonly ServerRef[] }
  /** Servers of its queue that have no handler for it: there it fails. `others`: those that have one, or may have one. */
  | { readonly kind: 'noHandler'; readonly servers: readonly ServerRef[]; readonly others: number }
  /** Servers of its queue of which nobody knows what they handle: Go's, or of older releases. */
  | { readonly kind: 'handlersUnknown'; readonly servers: readonly ServerRef[] }
  /** It expired before it began, or its deadline has passed: a server that takes it archives or drops it. */
  | {
      readonly kind: 'tooLate';
      readonly at: Date;
      readonly limit: 'expiry' | 'deadline';
      readonly outcome: ExpiryPolicy;
    }
  /** Its payload is newer than all servers know. `deferred`: it waits for one that knows it. */
  | {
      readonly kind: 'payloadTooNew';
      readonly version: number;
      readonly known: number;
      readonly deferred: boolean;
      readonly retryAt: Date | undefined;
    }
  /**
   * A limit of its handler. `deferred`: it waits for room, behind `ahead` others, and tries again at `retryAt`, if it is not woken
   * before; `scope` is `undefined` when no running server has published the limit.
   */
  | (LimitState & {
      readonly kind: 'handlerLimit';
      readonly scope: string | undefined;
      /** Some of those that run. */
      readonly holders: readonly LimitHolder[];
      readonly deferred: boolean;
      readonly ahead: number;
      readonly retryAt: Date | undefined;
    })
  /** A limit of its queue is reached. */
  | (LimitState & { readonly kind: 'queueLimit' })
  /**
   * A limit of its key in a fair queue is reached, or was, so that it is looked at again at `opensAt`. `running`: how many tasks have a slot of
   * the key. `opensAt` is `undefined` when a slot must get free. `rate.per` in milliseconds. The key of tasks without one is ''.
   */
  | {
      readonly kind: 'keyLimit';
      readonly key: string;
      readonly reached: readonly KeyLimit[];
      readonly concurrency: number | undefined;
      readonly rate: { readonly max: number; readonly per: number } | undefined;
      readonly running: number;
      /** Some of those with a slot, when `concurrency` is reached. */
      readonly holders: readonly LimitHolder[];
      readonly opensAt: Date | undefined;
    }
  /** It waits in the line of its key, behind `ahead` tasks of it; the key takes turns with `others`. */
  | { readonly kind: 'keyTurn'; readonly key: string; readonly ahead: number; readonly others: number }
  /** Queues that all its servers take tasks of first. */
  | { readonly kind: 'priority'; readonly queues: readonly { readonly queue: string; readonly pending: number }[] }
  /** Pending tasks that are claimed before it; `undefined`: more than 20,000. */
  | { readonly kind: 'behind'; readonly ahead: number | undefined }
  /** The servers of its queue have no free slot. */
  | { readonly kind: 'serversFull'; readonly running: number; readonly slots: number; readonly servers: number }
  /** The clock of a server of its queue differs from that of Redis: `ahead` in milliseconds, negative when it is behind. */
  | { readonly kind: 'clock'; readonly server: ServerRef; readonly ahead: number }
  /** Nothing is in its way: a server takes it at once. */
  | { readonly kind: 'ready' };

/** A reason, and how it is said. */
export type ExplainedReason = TaskReason & {
  /** One or two sentences. */
  readonly text: string;
};

/** Why a task does not run: see AsynqInspector.explain. */
export interface TaskExplanation {
  readonly queue: string;
  readonly id: string;
  /** `undefined` when there is no such task, or its message cannot be decoded. */
  readonly type: string | undefined;
  readonly state: TaskState | undefined;
  /** The text of the first reason. */
  readonly summary: string;
  /** What keeps it from running, that first which holds it now; then what would hold it after that. At least one. */
  readonly reasons: readonly ExplainedReason[];
  readonly timestamp: Date;
}
