import { InvalidHandlerError } from '../../errors.js';
import { notAMethod, onStaticMethod, unnamedMethod } from '../nest.messages.js';

/** `Class.method`, for messages. */
export const nameOf = (target: object, key: string | symbol | undefined): string => {
  const owner = typeof target === 'function' ? target.name : target.constructor.name;
  return key === undefined ? owner : `${owner}.${String(key)}`;
};

/** @throws InvalidHandlerError unless the decorator stands on an instance method with a text name */
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
