import 'reflect-metadata';
import { InvalidHandlerError } from '../../errors.js';
import { DECLARED_CLASSES_METADATA, DECLARED_METADATA, NEST_METADATA } from '../names/nest.constants.js';
import { notAMethod, onStaticMethod, standardDecorators, unnamedMethod } from '../names/nest.messages.js';

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
  if (typeof key === 'object') throw new InvalidHandlerError(standardDecorators(decorator)); // the context of TC39
  const what = nameOf(target, key);
  if (typeof descriptor?.value !== 'function') throw new InvalidHandlerError(notAMethod(what, decorator));
  if (typeof target === 'function') throw new InvalidHandlerError(onStaticMethod(what, decorator));
  if (typeof key !== 'string') throw new InvalidHandlerError(unnamedMethod(what, decorator));
  declare(decorator, target, key, descriptor.value as object);
  return descriptor.value as object;
}

/** A method as it was when a decorator of ours was applied. */
export interface DeclaredHandler {
  readonly decorator: string;
  readonly methodName: string;
  readonly method: object;
}

function declare(decorator: string, target: object, methodName: string, method: object): void {
  const others = declaredOn(target);
  Reflect.defineMetadata(DECLARED_METADATA, [...others, { decorator, methodName, method }], target);
  declaredClasses().add(target.constructor);
}

/** What decorators of ours were applied to, on this prototype and none of its ancestors. */
export const declaredOn = (prototype: object): readonly DeclaredHandler[] =>
  (Reflect.getOwnMetadata(DECLARED_METADATA, prototype) ?? []) as readonly DeclaredHandler[];

/** The classes of this process whose methods have decorators of ours. */
export function declaredClasses(): Set<object> {
  const known = Reflect.getOwnMetadata(DECLARED_CLASSES_METADATA, globalThis) as Set<object> | undefined;
  const classes = known ?? new Set<object>();
  if (!known) Reflect.defineMetadata(DECLARED_CLASSES_METADATA, classes, globalThis);
  return classes;
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
