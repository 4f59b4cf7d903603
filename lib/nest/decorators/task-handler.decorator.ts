import { InvalidHandlerError } from '../../errors.js';
import { FOREIGN } from '../../foreign-names.js';
import type { PayloadCodec } from '../../task/codec.js';
import type { IsFailure, RetryDelay } from '../../task/context.js';
import { requireCodec, type TaskDefinition } from '../../task/definition.js';
import type { ReadVersions } from '../../task/payload-versions.js';
import { readStepsOptions, type StepsOptions } from '../../task/steps-options.js';
import { pickLimits, TASK_LIMIT_NAMES, type TaskLimits } from '../../task/limits.js';
import {
  circleHint,
  describe,
  isBlank,
  rejectUnknownKeys,
  requireFunction,
  requireNonBlank,
  requireObject,
} from '../../validation.js';
import { DEFAULT_CONNECTION, TASK_HANDLER_METADATA } from '../names/nest.constants.js';
import {
  batchInThread,
  batchValidate,
  blankPattern,
  notATask,
  wildcardPattern,
  wrongThread,
  wrongValidate,
} from '../names/nest.messages.js';
import { type BatchHandlerOptions, resolveBatch, type ResolvedBatch } from './batch-option.js';
import type { BatchHandlerDecorator } from './batch-handler-types.js';
import type { PeriodicTaskOptions } from '../../scheduler/options.js';
import { addMethodMetadata, nameOf, requireMethod } from './handler-method.js';
import { requireOwnFields } from './handler-parameter.js';
import type { TaskHandlerDecorator } from './handler-types.js';

export interface TaskHandlerOptions<Received = unknown> extends TaskLimits<Received> {
  /** The `name` of the AsynqModule whose tasks these are. Default: the unnamed one. */
  connection?: string;
  /** Milliseconds until the next attempt. Default: the definition's, else the server's. */
  retryDelay?: RetryDelay;
  /** Whether an error counts as a failure. Default: the definition's, else the server's. */
  isFailure?: IsFailure;
  /** How the payload is decoded. Default: the definition's, else the module's, which is JSON. */
  codec?: PayloadCodec;
  /**
   * Where the pipes of the method, its class and its payload run: `handler`, before the handler; `both`: also where the task is called
   * as a method (`@InjectTasks`), which rejects with InvalidPayloadError and enqueues nothing when a pipe refuses the payload. What
   * they return there is not used. Default `handler`.
   */
  validate?: ValidatePolicy;
  /** How a handler with steps meets tasks that it has begun before a deploy. Default: the definition's. */
  steps?: StepsOptions;
  /**
   * Makes the method a batch handler: it is called with `(payloads, contexts)` of up to `size` tasks, and returns an array with a result
   * per task, in their order. Default: one call per task.
   */
  batch?: BatchHandlerOptions;
  /**
   * Runs the method in a thread of the pool (`server: { threads }`), so that work for the CPU does not keep others waiting, and ends with
   * its timeout. The thread has an application context of its own. Not with `batch` or `@Steps()`. Default false.
   */
  thread?: boolean;
}

const VALIDATE_POLICIES = ['handler', 'both'] as const;
export type ValidatePolicy = (typeof VALIDATE_POLICIES)[number];

/** The metadata of one `@TaskHandler`. */
export interface TaskHandlerMetadata {
  readonly pattern: string;
  /** What the decorator was given. */
  readonly task: string | TaskDefinition;
  readonly connection: string;
  readonly retryDelay?: RetryDelay;
  readonly isFailure?: IsFailure;
  readonly codec?: PayloadCodec;
  readonly validate?: ValidatePolicy | undefined;
  readonly batch?: ResolvedBatch | undefined;
  readonly steps?: StepsOptions | undefined;
  readonly thread?: true | undefined;
  readonly limits?: TaskLimits;
  readonly versions?: ReadVersions | undefined;
  /** Set by `@PeriodicTask`: when tasks for this handler are enqueued. */
  readonly periodic?: { readonly spec: string; readonly payload: unknown; readonly options: PeriodicTaskOptions };
}

export const HANDLER_OPTION_NAMES = [
  'connection',
  'retryDelay',
  'isFailure',
  'codec',
  'validate',
  'batch',
  'steps',
  'thread',
  ...TASK_LIMIT_NAMES,
] as const satisfies readonly (keyof TaskHandlerOptions)[];

/**
 * Makes a method of a provider or controller the handler of a task type, or of all types with a prefix: the exact type wins, then
 * the longest prefix, as in asynq's mux. A method may have several of these decorators. The value it returns is the task's result.
 * After an error the task is retried; after `SkipRetry` it is archived, after `RevokeTask` deleted.
 *
 * Without parameter decorators it is called with `(payload, context)`; else see `@Payload()` and `@TaskCtx()`.
 *
 * With a definition the compiler refuses a method that returns another result, or takes another payload: see
 * {@link TaskHandlerDecorator}.
 *
 * With `batch` it is called for many tasks at once: each of them settles alone.
 *
 * @param task a task type, a prefix of types, or the result of `defineTask`
 * @throws InvalidHandlerError for a blank type, an unknown option, or on anything but an instance method
 */
export function TaskHandler<R, Received>(
  task: TaskDefinition<unknown, R, Received>,
  options: TaskHandlerOptions<NoInfer<Received>> & { batch: BatchHandlerOptions },
): BatchHandlerDecorator<R, Received>;
export function TaskHandler<R, Received>(
  task: TaskDefinition<unknown, R, Received>,
  options?: TaskHandlerOptions<NoInfer<Received>> & { batch?: undefined },
): TaskHandlerDecorator<R, Received>;
export function TaskHandler(task: string | TaskDefinition, options?: TaskHandlerOptions): MethodDecorator;
export function TaskHandler(task: string | TaskDefinition, options: TaskHandlerOptions = {}): MethodDecorator {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const method = requireMethod('TaskHandler', target, key, descriptor);
    const metadata = toMetadata(task, options, nameOf(target, key));
    requireOwnFields(target, key!, metadata.pattern);
    addMethodMetadata(TASK_HANDLER_METADATA, target, method, metadata);
  };
}

export function toMetadata(
  task: string | TaskDefinition,
  options: TaskHandlerOptions,
  what: string,
): TaskHandlerMetadata {
  const definition: Partial<TaskDefinition> | null = typeof task === 'string' ? { type: task } : task;
  if (typeof definition !== 'object' || typeof definition?.type !== 'string') {
    throw new InvalidHandlerError(notATask(what, describe(task)) + circleHint(task));
  }
  if (isBlank(definition.type)) throw new InvalidHandlerError(blankPattern(what));
  if (typeof task === 'string' && task.endsWith('*')) {
    throw new InvalidHandlerError(wildcardPattern(what, task, task.slice(0, -1)));
  }
  checkOptions(options, what);
  const limits = pickLimits(merged(definition.limits, options), what, InvalidHandlerError);
  return {
    pattern: definition.type,
    task,
    connection: options.connection ?? DEFAULT_CONNECTION,
    retryDelay: options.retryDelay ?? definition.retryDelay,
    isFailure: options.isFailure ?? definition.isFailure,
    codec: options.codec ?? definition.codec,
    validate: options.validate,
    batch: options.batch === undefined ? undefined : resolveBatch(options.batch, limits, what),
    steps: options.steps ?? definition.stepsOptions,
    thread: options.thread === true ? true : undefined,
    versions: definition.versions,
    limits,
  };
}

/** The limits of the handler; without them those of its definition. */
function merged(defined: TaskLimits | undefined, given: TaskLimits): TaskLimits {
  const limits = { ...defined };
  for (const name of TASK_LIMIT_NAMES) if (given[name] !== undefined) Object.assign(limits, { [name]: given[name] });
  return limits;
}

function checkOptions(options: TaskHandlerOptions, what: string): void {
  requireObject(options, `${what}: the options of @TaskHandler`, InvalidHandlerError);
  const { connection, retryDelay, isFailure, codec, validate, batch, steps, thread, ...rest } = options;
  const kind = `@TaskHandler option of ${what}:`;
  rejectUnknownKeys(rest, HANDLER_OPTION_NAMES, kind, InvalidHandlerError, FOREIGN.handler);
  if (connection !== undefined) requireNonBlank(connection, `${what}: connection`, InvalidHandlerError);
  if (retryDelay !== undefined)
    requireFunction(retryDelay, `${what}: retryDelay ((retried) => milliseconds)`, InvalidHandlerError);
  if (isFailure !== undefined) requireFunction(isFailure, `${what}: isFailure`, InvalidHandlerError);
  if (codec !== undefined) requireCodec(codec, `${what}: codec`);
  if (validate !== undefined && !VALIDATE_POLICIES.includes(validate)) {
    throw new InvalidHandlerError(wrongValidate(what, describe(validate)));
  }
  if (steps !== undefined) readStepsOptions(steps, what, InvalidHandlerError);
  if (thread !== undefined && typeof thread !== 'boolean') {
    throw new InvalidHandlerError(wrongThread(what, describe(thread)));
  }
  if (batch !== undefined && thread) throw new InvalidHandlerError(batchInThread(what));
  if (batch !== undefined && validate === 'both') throw new InvalidHandlerError(batchValidate(what));
}
