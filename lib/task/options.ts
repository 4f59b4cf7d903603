import type { Duration } from '../duration.js';

/**
 * Options of a task: asynq's, by asynq's names. Given with a definition they are its defaults; given with a call they win,
 * option by option (headers: name by name). An option that is `undefined` counts as not given.
 */
export interface TaskOptions {
  /** The queue, exactly as written. Default `default`. Blank, or with a brace (`{`, `}`): InvalidTaskError. */
  queue?: string;
  /** Retries after the first attempt. Default 25; 0 means one attempt; negative counts as 0. At most 2147483647. */
  maxRetry?: number;
  /**
   * How long one attempt may take; stored in whole seconds, rounded up. 0 is asynq's NoTimeout, which is the same as no timeout
   * given: 30 minutes, unless a deadline is given. With both, the earlier end counts. An attempt without any limit does not exist in
   * asynq: give a long timeout (`'365d'`).
   */
  timeout?: Duration;
  /** When the task must have ended, whatever the attempt; stored in whole seconds, rounded down. Default: none, so `timeout` counts alone. */
  deadline?: Date;
  /**
   * Makes the task unique for this long, at least 1 second: as long as the lock lives, another with the same queue, type and
   * payload is refused (DuplicateTaskError). The lock ends early when the task succeeds. For a delayed task the
   * wait is added. In whole seconds, rounded up. Default: not unique.
   */
  unique?: Duration;
  /** When to start at the earliest; whole seconds, rounded up. Not later than now: at once. Excludes `processIn`. */
  processAt?: Date;
  /** How long to wait before the start, counted from the call. 0 or negative: at once. Excludes `processAt`. */
  processIn?: Duration;
  /** The id, exactly as written, without braces; taken as long as any task has it (TaskIdConflictError). Default: a UUID v4. */
  taskId?: string;
  /** How long to keep the task and its result after success; whole seconds, rounded up. Default 0: deleted at once. */
  retention?: Duration;
  /** Collect the task in this group, a name without braces, instead of running it alone. A task that is delayed, too, joins the group when it is due. */
  group?: string;
  /** Text by name, carried with the task. Seen by handlers; servers older than asynq v0.26 drop it on a retry. */
  headers?: Readonly<Record<string, string>>;
}

export const TASK_OPTION_NAMES = [
  'queue',
  'maxRetry',
  'timeout',
  'deadline',
  'unique',
  'processAt',
  'processIn',
  'taskId',
  'retention',
  'group',
  'headers',
] as const satisfies readonly (keyof TaskOptions)[];
