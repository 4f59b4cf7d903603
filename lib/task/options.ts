import type { Duration } from '../duration.js';
import type { ExpiryPolicy } from '../wire/expiry.js';
import type { DebounceOptions, UniqueOptions } from './repeats.js';

/**
 * Options of a task, with asynq's names. In a definition they are the defaults of its tasks; in a
 * call they override these, option by option (headers: name by name). An option that is `undefined`
 * is not set; `false` turns off what the definition, or the client, has under this name.
 */
export interface TaskOptions {
  /**
   * The queue, exactly as written. Default `default`. Blank, or with a brace (`{`, `}`):
   * InvalidTaskError.
   */
  queue?: string;
  /**
   * Retries after the first attempt. Default 25; 0 means one attempt. At most 2147483647.
   */
  maxRetry?: number;
  /**
   * How long one attempt may take; stored in whole seconds, rounded up, so that a number is 0 or at least 1000. 0 is asynq's NoTimeout, the
   * same as no timeout. With a deadline, too, the earlier end counts. asynq has no attempt without a limit: set a long timeout (`'365d'`).
   * Default: 30 minutes, unless there is a deadline.
   */
  timeout?: Duration;
  /**
   * When the task must end, in any attempt; stored in whole seconds, rounded down. A task that fails after it is archived, whatever
   * retries are left; Go servers retry it. Default: none, only `timeout` counts.
   */
  deadline?: Date | false;
  /**
   * How long the task may wait for its first attempt: from the call on, or from its time when it is delayed. Waiting for other tasks
   * counts, too. A server that claims it later does not run it; see `onExpiry`. Retries do not expire, nor does a task that somebody runs by hand after that. Go servers
   * run it late. Not together with `group`. Default 0: it does not expire.
   */
  expiresIn?: Duration | false;
  /**
   * What becomes of a task that has expired: `'archive'`: it is archived, with an error that says so; `'drop'`: it is deleted. For
   * those who wait for it, it has failed. Default `'archive'`.
   */
  onExpiry?: ExpiryPolicy;
  /**
   * Makes the task unique for this long, at least 1 second: while the lock lasts, another task with
   * the same queue, type and payload is refused (DuplicateTaskError). The lock ends when the task
   * succeeds. The wait of a delayed task is added, and `waitAtMost` of one that waits for others. In
   * whole seconds, rounded up. An object says more: see UniqueOptions. Default: not unique. Excludes the five options below.
   */
  unique?: Duration | UniqueOptions | false;
  /**
   * At most one task of this type and key, and no other until so long after it has succeeded; at least 1 second, in whole seconds, rounded
   * up. A further call returns the one that exists, with `created: false`. It needs `key`. It sets the id of the task and, if that is
   * longer, its retention. Default: not.
   */
  once?: Duration | false;
  /**
   * The task runs `wait` after the last call with its key, with the payload of that call, and `maxWait` after the first at the latest. A duration
   * is a `wait` without a `maxWait`. It needs `key`. Default: not debounced.
   */
  debounce?: Duration | DebounceOptions | false;
  /**
   * The first task runs; others of its key, or without a key of its payload, are dropped within that time: the call returns the first, with
   * `created: false`. At least 1 second, in whole seconds, rounded up. Default: not throttled.
   */
  throttle?: Duration | false;
  /**
   * While a task of this key runs, one more follows, with the payload of the last call. One that has not started gets that payload. It
   * needs `key`. Default `false`.
   */
  latest?: boolean;
  /**
   * A new task cancels the one of its key that runs, which is deleted then; one that has not started gets the new payload. It needs `key`. Default
   * `false`.
   */
  supersede?: boolean;
  /**
   * The earliest start; whole seconds, rounded up. Not later than now: at once. Excludes
   * `processIn`. Default: at once.
   */
  processAt?: Date;
  /**
   * How long to wait before the start, from the call on. 0: at once, and so is a negative number, such as the difference to a time that
   * has passed. A negative text is refused. Excludes `processAt`. Default 0.
   */
  processIn?: Duration;
  /**
   * The id, exactly as written, without braces; in use while any task has it (TaskIdConflictError).
   * Default: a UUID v7, whose first bits are the time of the call (`TaskInfo.enqueuedAt`).
   */
  taskId?: string;
  /**
   * How long the task and its result are kept after success; whole seconds, rounded up, so that a number is 0 or at least 1000.
   * Default 0: deleted at once.
   */
  retention?: Duration;
  /**
   * The group, a name without braces, in which the task waits instead of running alone. A delayed
   * task joins the group when it is due. Default: none.
   */
  group?: string | false;
  /**
   * Texts by name, which handlers get with the task. Go servers before asynq v0.26 drop them on a
   * retry. Default: none.
   */
  headers?: Readonly<Record<string, string>>;
}

export const TASK_OPTION_NAMES = [
  'queue',
  'maxRetry',
  'timeout',
  'deadline',
  'expiresIn',
  'onExpiry',
  'unique',
  'once',
  'debounce',
  'throttle',
  'latest',
  'supersede',
  'processAt',
  'processIn',
  'taskId',
  'retention',
  'group',
  'headers',
] as const satisfies readonly (keyof TaskOptions)[];
