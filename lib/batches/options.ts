import type { BatchCallback } from '../broker/batches.js';
import { parseDuration, type Duration } from '../duration.js';
import { refuseMarks } from '../enqueue/linked-task.js';
import { InvalidTaskError } from '../errors.js';
import { readRetention } from '../links/done-options.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';
import type { PayloadArguments } from '../task/payload-arguments.js';
import { describe, refuseBraces, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';

/** Of the options of a task, those that a callback may have: it starts when its time comes, once. */
export const CALLBACK_OPTION_NAMES = [
  'queue',
  'maxRetry',
  'timeout',
  'deadline',
  'retention',
  'headers',
] as const satisfies readonly (keyof TaskOptions)[];

export type CallbackOptions = Pick<TaskOptions, (typeof CALLBACK_OPTION_NAMES)[number]>;

/** What a callback is a task of. */
type AnyTask = string | TaskDefinition;

/** What comes behind a definition or a type; not a union for one of them, which the compiler could not explain. */
type CallbackArguments<T> = [T] extends [string]
  ? [payload?: unknown, options?: CallbackOptions]
  : [T] extends [TaskDefinition<infer P>]
    ? PayloadArguments<P, CallbackOptions>
    : [payload?: unknown, options?: CallbackOptions];

/** A task that is enqueued when something happens to a batch: a definition or a type, payload, options. */
export type BatchTask<T extends AnyTask = AnyTask> = readonly [task: T, ...rest: CallbackArguments<NoInfer<T>>];

export interface BatchOptions<S extends AnyTask = AnyTask, C extends AnyTask = AnyTask, D extends AnyTask = AnyTask> {
  /** What it is, for people. */
  name: string;
  /** Where the batch lives; its members and callbacks may be in any queue. Default `default`. */
  queue?: string;
  /** When every member has succeeded. A failed member that is run again and succeeds counts. Default: none. */
  onSuccess?: BatchTask<S>;
  /** When every member has succeeded or failed. Default: none. */
  onComplete?: BatchTask<C>;
  /** When the first member fails for good: it is archived, or was deleted, cancelled or revoked. Default: none. */
  onDeath?: BatchTask<D>;
  /** After this time the batch is closed if nobody has closed it. Default 1 hour, at least 1 second. */
  closeWithin?: Duration;
  /** How long the batch is kept after its end, at least 5 seconds. Its tasks have retentions of their own. Default 7 days. */
  retention?: Duration;
}

const OPTION_NAMES = [
  'name',
  'queue',
  'onSuccess',
  'onComplete',
  'onDeath',
  'closeWithin',
  'retention',
] as const satisfies readonly (keyof BatchOptions)[];

/** The options that are callbacks. */
export const CALLBACKS = {
  onSuccess: 'success',
  onComplete: 'complete',
  onDeath: 'death',
} as const satisfies Partial<Record<keyof BatchOptions, BatchCallback>>;

/** Longer names are cut off where they are shown. */
const MAX_NAME_LENGTH = 200;
const DEFAULT_CLOSE_WITHIN = '1h';
const DEFAULT_RETENTION = '7d';

export interface BatchSettings {
  readonly name: string;
  readonly queue: string;
  /** Milliseconds. */
  readonly closeWithin: number;
  /** Milliseconds. */
  readonly retention: number;
}

/** @throws InvalidTaskError for the first invalid option; callbacks are checked where they are prepared */
export function readBatchOptions(options: BatchOptions): BatchSettings {
  requireObject(options, 'options of openBatch', InvalidTaskError);
  rejectUnknownKeys(options, OPTION_NAMES, 'option of openBatch', InvalidTaskError);
  const { name, queue = 'default', closeWithin = DEFAULT_CLOSE_WITHIN, retention = DEFAULT_RETENTION } = options;
  return {
    name: checkedName(name),
    queue: checkedQueue(queue),
    closeWithin: atLeastOneSecond(closeWithin, 'closeWithin of a batch'),
    retention: readRetention(retention, 'retention of a batch', InvalidTaskError),
  };
}

/** @throws InvalidTaskError */
export function checkedQueue(queue: unknown): string {
  const name = requireNonBlank(queue, 'queue of a batch', InvalidTaskError);
  refuseMarks(name, 'queue of a batch');
  return refuseBraces(name, 'queue of a batch', InvalidTaskError);
}

function checkedName(name: unknown): string {
  const text = requireNonBlank(name, 'name of a batch', InvalidTaskError);
  if (text.length <= MAX_NAME_LENGTH) return text;
  throw new InvalidTaskError(`name of a batch must have at most ${MAX_NAME_LENGTH} characters, not ${text.length}`);
}

function atLeastOneSecond(value: unknown, what: string): number {
  const milliseconds = parseDuration(value, what, InvalidTaskError);
  if (milliseconds >= 1000) return milliseconds;
  throw new InvalidTaskError(`${what} must be at least 1 second, not ${describe(value)}`);
}
