import type { Duration } from '../duration.js';
import type { TaskOptions } from './options.js';

export const FAILURE_POLICIES = ['cancel', 'run', 'wait'] as const;
/** What a task does when a prerequisite has failed. */
export type FailurePolicy = (typeof FAILURE_POLICIES)[number];

export const TIMEOUT_POLICIES = ['archive', 'run'] as const;
/** What a task does that has waited for as long as it may. */
export type TimeoutPolicy = (typeof TIMEOUT_POLICIES)[number];

export const MISSING_POLICIES = ['succeeded', 'failed'] as const;
/** How a prerequisite counts that cannot be found. */
export type MissingPolicy = (typeof MISSING_POLICIES)[number];

/**
 * How a wait has ended. `released`: what it waited for has ended as it was to; `cancelled`: a prerequisite has failed;
 * `timedOut`: it has waited for as long as it may; `revived`: it was cancelled, and that prerequisite has succeeded after all.
 */
export type WaitEnd = 'released' | 'cancelled' | 'timedOut' | 'revived';

/** At most this many prerequisites of one task. */
export const MAX_PREREQUISITES = 1_000;

/**
 * Seconds that a linked task without a retention is kept after a success, if a Go server ran it:
 * until the keeper has seen its end. Our servers take exactly this number as no retention.
 */
export const TECHNICAL_RETENTION = 604_801;

/** How the error of a task begins whose prerequisite failed; what that is, and its error, follow. */
export const PREREQUISITE_FAILED = 'asynq: prerequisite failed: ';

/** How the error of a task begins that has waited for as long as it may; some of those that it waited for follow. */
export const TIMED_OUT = 'asynq: waited for as long as it may, and not every prerequisite has succeeded';

/** The business id of a task. Text, not blank, at most 1,000 characters. */
export type KeyFunction<P> = (payload: P) => string;

/** Options of a definition: how its tasks are known to tasks that wait for them. */
export interface TaskIdentity<P> {
  /**
   * The business id of a task, from its payload: `(payment) => payment.orderId`. Called once per
   * enqueue, in the process that enqueues. Default: none.
   */
  key?: KeyFunction<P>;
  /**
   * How long the end of a task is remembered for tasks that wait for its key and are enqueued
   * later; at least 1 second, in whole seconds, rounded up. It needs `key`, and excludes `group`.
   * Default: not remembered, so that no definition can wait for this one.
   */
  rememberFor?: Duration;
}

/** What the tasks of a definition are known by: see TaskDefinition. */
export interface DefinedTask {
  readonly type: string;
  readonly options: Readonly<TaskOptions>;
  readonly links?: LinkSettings | undefined;
}

/**
 * A prerequisite by its definition, which needs `key` and `rememberFor`: the task of that type with
 * the same key. With `key`, the task with that key.
 */
export type DefinedPrerequisite<P> =
  | DefinedTask
  | { readonly task: DefinedTask; readonly key?: KeyFunction<P> | undefined };

/** A prerequisite that is one task: a TaskInfo, or its queue and id. */
export interface TaskPrerequisite {
  readonly queue: string;
  readonly id: string;
}

/** How a task waits. Options of a definition are the defaults of its tasks. */
export interface WaitOptions {
  /**
   * What to do when a prerequisite has failed, that is, was archived, revoked, deleted or cancelled
   * for good. `cancel`: the task is archived with the reason; it waits again, or runs, when a rerun
   * of that prerequisite succeeds. `run`: it counts as done. `wait`: go on waiting for a rerun.
   * Default `cancel`.
   */
  onFailure?: FailurePolicy;
  /** How long the task may wait; in whole seconds, rounded up. Default `7d`. */
  waitAtMost?: Duration;
  /** What to do after that: archive the task with the reason, or run it. Default `archive`. */
  onTimeout?: TimeoutPolicy;
  /**
   * How a prerequisite counts that is one task and cannot be found: it is over and gone, or never
   * was. Default: the enqueue rejects with PrerequisiteNotFoundError. It also says how one counts
   * that a Go server had begun before, without a retention, as nobody sees its end; default there:
   * it has failed.
   */
  missing?: MissingPolicy;
}

/** What the tasks of a definition wait for. */
export interface DefinitionLinks<P> extends TaskIdentity<P>, WaitOptions {
  /**
   * What must succeed before a task runs, in whatever order and process the tasks are enqueued. At
   * most 1,000. Excludes `group`. Default: nothing.
   */
  after?: DefinedPrerequisite<P> | readonly DefinedPrerequisite<P>[];
}

/** What one task waits for: these options replace those of its definition, one by one. */
export interface CallLinks<P> extends WaitOptions {
  /**
   * The business id of this task, in place of that which `key` of its definition finds. Text, not blank, at most 1,000 characters. It
   * needs something that uses it: `once`, `debounce`, `throttle`, `latest`, `supersede`, `unique` by key, or `rememberFor`.
   */
  key?: string;
  /**
   * What must succeed before the task runs: definitions, or single tasks by TaskInfo or by queue and
   * id. Replaces `after` of the definition; an empty list waits for nothing. At most 1,000. Excludes
   * `group`.
   */
  after?: DefinedPrerequisite<P> | TaskPrerequisite | readonly (DefinedPrerequisite<P> | TaskPrerequisite)[];
}

/** The end of the task of a type; `key` finds its key in the payload of the one that waits. */
export interface TypePrerequisite {
  readonly task: DefinedTask;
  readonly key: KeyFunction<never>;
  /** Whether that is the key of the waiting task itself. */
  readonly sameKey: boolean;
}

/** The options about links of a kind of task after all checks, in the units of the store. */
export interface LinkSettings {
  readonly key: KeyFunction<never> | undefined;
  /** Seconds; 0: not remembered. */
  readonly rememberFor: number;
  readonly after: readonly (TypePrerequisite | TaskPrerequisite)[];
  readonly onFailure: FailurePolicy;
  /** Milliseconds. */
  readonly waitAtMost: number;
  readonly onTimeout: TimeoutPolicy;
  readonly missing: MissingPolicy | undefined;
}

const WAIT_NAMES = [
  'after',
  'onFailure',
  'waitAtMost',
  'onTimeout',
  'missing',
] as const satisfies readonly (keyof CallLinks<unknown>)[];

export const CALL_LINK_NAMES: readonly string[] = [
  'key',
  ...WAIT_NAMES,
] as const satisfies readonly (keyof CallLinks<unknown>)[];
export const DEFINITION_LINK_NAMES: readonly string[] = [
  'key',
  'rememberFor',
  ...WAIT_NAMES,
] as const satisfies readonly (keyof DefinitionLinks<unknown>)[];
