import 'reflect-metadata';
import type { PipeLike } from '../decorators/handler-parameter.js';
import { NEST_METADATA, PARAM_TYPE } from '../names/nest.constants.js';

/** Nest's metadata of a parameter, stored under `type:index`. */
export interface ParamMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes?: readonly PipeLike[];
}

/** One parameter of a handler, as its decorator declares it. */
export interface HandlerParam {
  readonly index: number;
  /** `whole`: the payload; `field`: one field of it; `custom`: a parameter decorator of the application. */
  readonly kind: 'whole' | 'field' | 'task' | 'steps' | 'custom';
  /** The name of the field. */
  readonly data: string | undefined;
  readonly pipes: readonly PipeLike[];
  /** The class of the parameter, as the compiler has written it down. */
  readonly metatype: unknown;
}

/** Without decorators the parameters are `(payload, context)`. */
const UNDECORATED: Readonly<Record<string, ParamMetadata>> = {
  [`${PARAM_TYPE.payload}:0`]: { index: 0, pipes: [] },
  [`${PARAM_TYPE.task}:1`]: { index: 1, pipes: [] },
};

/** @param owner the prototype that declares the method */
export function paramMetadata(owner: object, methodName: string): Readonly<Record<string, ParamMetadata>> {
  const key = NEST_METADATA.routeArguments;
  const declared = Reflect.getOwnMetadata(key, owner.constructor, methodName) as
    | Record<string, ParamMetadata>
    | undefined;
  return declared ?? UNDECORATED;
}

/**
 * The position, from 1, of the first parameter that would get nothing: others have a decorator, and it has none. One with a default value
 * does not count.
 */
export function undecorated(owner: object, methodName: string, parameters: number): number | undefined {
  const params = paramMetadata(owner, methodName);
  if (params === UNDECORATED) return undefined;
  const decorated = new Set(Object.values(params).map(({ index }) => index));
  for (let index = 0; index < parameters; index++) if (!decorated.has(index)) return index + 1;
  return undefined;
}

/** The classes of the parameters of a method, as far as the compiler has written them down. */
export const paramTypes = (owner: object, methodName: string): readonly unknown[] =>
  (Reflect.getMetadata(NEST_METADATA.parameterTypes, owner, methodName) ?? []) as unknown[];

export const typeOfKey = (key: string): number => Number(key.split(':')[0]);

/** The parameters of a handler, in their order. */
export function handlerParams(owner: object, methodName: string): HandlerParam[] {
  const types = paramTypes(owner, methodName);
  return Object.entries(paramMetadata(owner, methodName))
    .map(([key, { index, data, pipes = [] }]): HandlerParam => {
      const field = typeof data === 'string' ? data : undefined;
      return { index, kind: kindOf(typeOfKey(key), field), data: field, pipes, metatype: types[index] };
    })
    .sort((one, other) => one.index - other.index);
}

function kindOf(type: number, field: string | undefined): HandlerParam['kind'] {
  if (type === PARAM_TYPE.task) return 'task';
  if (type === PARAM_TYPE.steps) return 'steps';
  if (type !== PARAM_TYPE.payload) return 'custom';
  return field === undefined ? 'whole' : 'field';
}
