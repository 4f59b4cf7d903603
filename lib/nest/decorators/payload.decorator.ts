import { InvalidHandlerError } from '../../errors.js';
import type { TaskDefinition } from '../../task/definition.js';
import { circleHint, describe, isBlank } from '../../validation.js';
import { PARAM_TYPE } from '../names/nest.constants.js';
import { noField, notADefinition } from '../names/nest.messages.js';
import { nameOf } from './handler-method.js';
import { handlerParameter, type PipeLike } from './handler-parameter.js';
import type { PayloadFieldName, PayloadFieldDecorator } from './payload-field-types.js';

/**
 * Injects the decoded payload, after the pipes of the parameter, the method, the class and the application. If a pipe refuses it
 * (with an HttpException of status 4xx, as ValidationPipe does), the task is archived at once; see the module option
 * `invalidPayload`.
 * A parameter of type Buffer or Uint8Array gets the stored bytes, undecoded.
 */
export function Payload(...pipes: PipeLike[]): ParameterDecorator;
/** Injects one field of the decoded payload, or `undefined`. With a definition before it, the compiler checks the name. */
export function Payload(field: string, ...pipes: PipeLike[]): ParameterDecorator;
/**
 * Injects one field of the payload of a definition, which is the one that `@TaskHandler` has. It compiles when the payload has such a
 * field, and the parameter takes it: see {@link PayloadFieldDecorator}.
 *
 * @example welcome(\@Payload(Welcome, 'userId') userId: number) { … }
 *
 * @throws InvalidHandlerError when the handler is of another task type
 */
export function Payload<Received, Field extends PayloadFieldName<Received>>(
  task: TaskDefinition<unknown, unknown, Received>,
  field: Field,
): PayloadFieldDecorator<Received, Field>;
/** The same through pipes, which may make something else of it: the compiler checks the name alone. */
export function Payload<Received>(
  task: TaskDefinition<unknown, unknown, Received>,
  field: PayloadFieldName<Received>,
  ...pipes: PipeLike[]
): ParameterDecorator;
export function Payload(...given: unknown[]): ParameterDecorator {
  return (target, key, index) => {
    const { field, pipes, task } = read(given, nameOf(target, key));
    handlerParameter('Payload', PARAM_TYPE.payload, field, pipes as PipeLike[], task)(target, key, index);
  };
}

interface Parts {
  readonly pipes: readonly unknown[];
  readonly field?: string | undefined;
  /** The task type of the definition that was given. */
  readonly task?: string;
}

function read([first, ...others]: readonly unknown[], what: string): Parts {
  if (typeof first === 'string') return { field: first, pipes: others };
  const [field, ...pipes] = others;
  if (isDefinition(first)) {
    if (typeof field !== 'string' || isBlank(field)) {
      throw new InvalidHandlerError(noField(what, first.type, describe(field)));
    }
    return { field, pipes, task: first.type };
  }
  if (typeof field === 'string') {
    throw new InvalidHandlerError(notADefinition(what, field, describe(first)) + circleHint(first));
  }
  return { pipes: first === undefined ? others : [first, ...others] };
}

const isDefinition = (value: unknown): value is TaskDefinition =>
  typeof value === 'object' && value !== null && 'type' in value && 'options' in value && !('transform' in value);
