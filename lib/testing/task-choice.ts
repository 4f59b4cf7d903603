import { TestingError } from '../errors.js';
import { type CalledHandler, calledMethods } from '../nest/calls/called-handlers.js';
import type { TasksClass, TasksOf } from '../nest/calls/tasks-of.js';
import type { PayloadCodec } from '../task/codec.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskInfo } from '../task/info.js';
import { nearest } from '../validation.js';
import type { TaskFilter } from './task-filter.js';
import { noSuchHandler, otherConnection } from './testing.messages.js';

/** A task type by its name or its definition. */
export type TaskName<Received = unknown> = string | TaskDefinition<unknown, unknown, Received>;

/** The names of the methods of a class that can be called to enqueue, as far as types see it. */
export type MethodName<C extends object> = Exclude<keyof TasksOf<C>, 'with' | 'call'> & string;

/** What a handler is called with to enqueue. */
export type MethodPayload<C extends object, M extends MethodName<C>> = TasksOf<C>[M] extends (
  ...args: infer A
) => unknown
  ? A[0]
  : never;

/** What a handler returns. */
export type MethodResult<C extends object, M extends MethodName<C>> = TasksOf<C>[M] extends (
  ...args: never[]
) => Promise<TaskInfo<infer R>>
  ? R
  : never;

/** Which tasks a test asks for: a type and a filter, or a class, one of its handlers and a filter. */
export type ChoiceArguments =
  | readonly [task?: TaskName, filter?: TaskFilter]
  | readonly [tasks: TasksClass, method: string, filter?: TaskFilter];

export interface Choice {
  /** `undefined`: any. */
  readonly type: string | undefined;
  readonly codec: PayloadCodec | undefined;
  readonly filter: TaskFilter | undefined;
}

/**
 * @param connection that of the tester
 * @throws TestingError when the class has no such handler, or it is for another connection
 */
export function readChoice([first, second, third]: readonly unknown[], connection: string): Choice {
  if (typeof first === 'function') {
    const { metadata } = handlerOf(first as TasksClass, second as string, connection);
    return { type: metadata.pattern, codec: metadata.codec, filter: third as TaskFilter | undefined };
  }
  const task = first as TaskName | undefined;
  const filter = second as TaskFilter | undefined;
  return typeof task === 'object'
    ? { type: task.type, codec: task.codec, filter }
    : { type: task, codec: undefined, filter };
}

/**
 * @param connection that of the tester
 * @throws TestingError when the class has no such handler, or it is for another connection
 */
export function handlerOf(tasks: TasksClass, method: string, connection: string): CalledHandler {
  const methods = calledMethods(tasks);
  const found = methods.get(method);
  if (found === undefined) {
    throw new TestingError(
      noSuchHandler(`${tasks.name}.${method}`, nearest(method, methods.keys()), [...methods.keys()].join(', ')),
    );
  }
  if (typeof found === 'string') throw new TestingError(found);
  const { label, metadata } = found;
  if (metadata.connection !== connection) throw new TestingError(otherConnection(label, metadata.connection));
  return found;
}
