import 'reflect-metadata';
import { InvalidHandlerError } from '../../errors.js';
import { NEST_METADATA } from '../names/nest.constants.js';
import { notAMethod, onStaticMethod, unnamedMethod } from '../names/nest.messages.js';

/** `Class.method`, for messages. */
export const nameOf = (target: object, key: string | symbol | undefined): string => {
  const owner = typeof target === 'function' ? target.name : target.constructor.name;
  return key === undefined ? owner : `${owner}.${String(key)}`;
};

/** @throws InvalidHandlerError unless the decorator is on an instance method with a string name */
export function requireMethod(
  decorator: string,
  target: object,
  key: string | symbol | undefined,
  descriptor?: PropertyDescriptor,
): object {
  const what = nameOf(target, key);
  if (typeof descriptor?.value !== 'function') throw new InvalidHandlerError(notAMethod(what, decorator));
  if (typeof target === 'function') throw new InvalidHandlerError(onStaticMethod(what, decorator));
  if (typeof key !== 'string') throw new InvalidHandlerError(unnamedMethod(what, decorator));
  return descriptor.value as object;
}

/** Adds the metadata of one decorator to that of others of its kind, in the order of the source. */
export function addMetadata<M>(key: string, method: object, metadata: M): void {
  const others = (Reflect.getOwnMetadata(key, method) ?? []) as M[];
  Reflect.defineMetadata(key, [metadata, ...others], method);
}

/**
 * {@link addMetadata} for methods that handle tasks.
 *
 * @param target the prototype that has the method
 */
export function addMethodMetadata<M>(key: string, target: object, method: object, metadata: M): void {
  addMetadata(key, method, metadata);
  // With this mark request-scoped global enhancers apply to the handlers of this class, as they do to controllers.
  Reflect.defineMetadata(NEST_METADATA.entryProvider, true, target.constructor);
}
