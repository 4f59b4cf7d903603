import { PARAM_TYPE } from '../names/nest.constants.js';
import { handlerParameter, type PipeLike } from './handler-parameter.js';

/**
 * Injects the decoded payload, after the pipes of the parameter, the method, the class and the application. If a pipe refuses it
 * (with an HttpException of status 4xx, as ValidationPipe does), the task is archived at once; see the module option
 * `invalidPayload`.
 * A parameter of type Buffer or Uint8Array gets the stored bytes, undecoded.
 */
export function Payload(...pipes: PipeLike[]): ParameterDecorator;
/** Injects one field of the decoded payload, or `undefined`. */
export function Payload(field: string, ...pipes: PipeLike[]): ParameterDecorator;
export function Payload(first?: string | PipeLike, ...others: PipeLike[]): ParameterDecorator {
  if (typeof first === 'string') return handlerParameter('Payload', PARAM_TYPE.payload, first, others);
  return handlerParameter('Payload', PARAM_TYPE.payload, undefined, first === undefined ? others : [first, ...others]);
}
