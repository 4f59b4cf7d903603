import { InvalidHandlerError } from '../../errors.js';
import type { PayloadCodec } from '../../task/codec.js';
import { requireCodec } from '../../task/definition.js';
import { describe, isBlank, rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';
import { DEFAULT_CONNECTION, TASK_AGGREGATOR_METADATA } from '../names/nest.constants.js';
import { blankGroup } from '../names/nest.messages.js';
import { addMethodMetadata, nameOf, requireMethod } from './handler-method.js';

export interface TaskAggregatorOptions {
  /** The `name` of the AsynqModule whose groups these are. Default: the unnamed one. */
  connection?: string;
  /** How the payloads of grouped tasks are decoded. Default: the module's, which is JSON. */
  codec?: PayloadCodec;
}

/** The metadata of one `@TaskAggregator`. */
export interface TaskAggregatorMetadata {
  /** A prefix of group names; empty = every group. */
  readonly pattern: string;
  readonly connection: string;
  readonly codec?: PayloadCodec;
}

const KNOWN_OPTIONS: readonly (keyof TaskAggregatorOptions)[] = ['connection', 'codec'];

/**
 * Makes a method of a provider or controller combine the tasks of a group into one task when the group is due (see the server options
 * `groupGracePeriod`, `groupMaxDelay`, `groupMaxSize`). It is called with `(group, tasks)`, the tasks as {@link GroupedTask} in the
 * order in which they joined (to the second), and returns the task to enqueue as an item of `enqueueMany` (see
 * {@link AggregatedTask}), or a promise of it. That task always goes to the queue of the group. If the method throws, the tasks
 * return to their group after 2 minutes. A task whose payload cannot be decoded is archived.
 *
 * Guards, interceptors, pipes and filters do not apply: the method runs for a group, not for a task.
 *
 * @param groups a prefix of group names; the longest match wins. Default: every group without another aggregator
 * @throws InvalidHandlerError for a blank prefix, an unknown option, or on anything but an instance method
 */
export function TaskAggregator(groups?: string, options?: TaskAggregatorOptions): MethodDecorator;
export function TaskAggregator(options: TaskAggregatorOptions): MethodDecorator;
export function TaskAggregator(
  first: string | TaskAggregatorOptions = {},
  second: TaskAggregatorOptions = {},
): MethodDecorator {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const method = requireMethod('TaskAggregator', target, key, descriptor);
    const [groups, options] = typeof first === 'string' ? [first, second] : [undefined, first];
    addMethodMetadata(TASK_AGGREGATOR_METADATA, target, method, toMetadata(groups, options, nameOf(target, key)));
  };
}

function toMetadata(groups: string | undefined, options: TaskAggregatorOptions, what: string): TaskAggregatorMetadata {
  if (groups !== undefined && isBlank(groups)) throw new InvalidHandlerError(blankGroup(what));
  requireObject(options, `${what}: the options of @TaskAggregator (got ${describe(options)})`, InvalidHandlerError);
  rejectUnknownKeys(options, KNOWN_OPTIONS, `@TaskAggregator option of ${what}`, InvalidHandlerError);
  const { connection, codec } = options;
  if (connection !== undefined) requireNonBlank(connection, `${what}: connection`, InvalidHandlerError);
  if (codec !== undefined) requireCodec(codec, `${what}: codec`);
  return { pattern: groups ?? '', connection: connection ?? DEFAULT_CONNECTION, codec };
}
