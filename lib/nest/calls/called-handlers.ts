import { InvalidHandlerError } from '../../errors.js';
import type { TaskDefinition } from '../../task/definition.js';
import { readPeriodicOptions } from '../../scheduler/options.js';
import type { TaskHandlerMetadata } from '../decorators/task-handler.decorator.js';
import { HandlerMetadataAccessor } from '../discovery/handler.metadata-accessor.js';
import { methodsOf, type DeclaredMethod } from '../discovery/methods-of.js';
import {
  batchNotCalled,
  manyTypes,
  noHandlersIn,
  notAHandler,
  payloadInParts,
  payloadNotFirst,
  reservedName,
} from '../names/nest.messages.js';
import { handlerParams } from '../execution/handler-params.js';
import { RESERVED_NAMES, type TasksClass } from './tasks-of.js';

/** A method of a class as it is called to enqueue. */
export interface CalledHandler extends DeclaredMethod {
  /** `Class.method`, for messages. */
  readonly label: string;
  readonly metadata: TaskHandlerMetadata;
  /** What a call enqueues. */
  readonly task: string | TaskDefinition;
}

const accessor = new HandlerMetadataAccessor();

/**
 * All methods of a class by name, but those that Nest calls: the handler; or, as text, why a call of this method cannot enqueue.
 *
 * @throws InvalidHandlerError when there is no handler, or one with a reserved name
 */
export function calledMethods(tasks: TasksClass): ReadonlyMap<string, CalledHandler | string> {
  const declared = methodsOf(tasks.prototype as object);
  const handlers = declared.filter(({ method }) => accessor.handlersOf(method).length > 0);
  if (handlers.length === 0) throw new InvalidHandlerError(noHandlersIn(tasks.name));
  const reserved = handlers.find(isReserved);
  if (reserved) throw new InvalidHandlerError(reservedName(labelOf(tasks, reserved)));
  const names = handlers.map(({ methodName }) => methodName);
  const callable = declared.filter((one) => !isReserved(one));
  return new Map(callable.map((one) => [one.methodName, calledHandler(labelOf(tasks, one), one, names)]));
}

const labelOf = ({ name }: TasksClass, { methodName }: DeclaredMethod): string => `${name}.${methodName}`;

const isReserved = ({ methodName }: DeclaredMethod): boolean =>
  (RESERVED_NAMES as readonly string[]).includes(methodName);

function calledHandler(label: string, one: DeclaredMethod, handlers: readonly string[]): CalledHandler | string {
  const [metadata, ...others] = accessor.handlersOf(one.method);
  if (!metadata) return notAHandler(label, handlers);
  if (others.length > 0)
    return manyTypes(
      label,
      [metadata, ...others].map(({ pattern }) => pattern),
    );
  if (metadata.batch) return batchNotCalled(label);
  return wrongParameters(label, one) ?? { ...one, label, metadata, task: taskOf(metadata) };
}

/** The type of a call is that of the first parameter that is no context, so this must be the payload. */
function wrongParameters(label: string, { owner, methodName }: DeclaredMethod): string | undefined {
  const params = handlerParams(owner, methodName).filter(({ kind }) => kind !== 'task');
  if (params.length === 0 || params[0]!.kind === 'whole') return undefined;
  return params.some(({ kind }) => kind === 'whole') ? payloadNotFirst(label) : payloadInParts(label);
}

/** The definition, with the options of `@PeriodicTask` and with the codec that the handler has of its own. */
function taskOf({ pattern, task, codec, periodic }: TaskHandlerMetadata): string | TaskDefinition {
  if (typeof task !== 'string' && task.codec === codec) return task;
  if (typeof task !== 'string') return Object.freeze({ ...task, codec });
  const options = periodic ? readPeriodicOptions(periodic.options).task : {};
  return codec || periodic ? Object.freeze({ type: pattern, options, codec }) : pattern;
}
