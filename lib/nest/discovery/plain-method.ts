import 'reflect-metadata';
import { InvalidHandlerError } from '../../errors.js';
import { NEST_METADATA } from '../names/nest.constants.js';
import type { Discovered } from './handler.explorer.js';

/** The error texts for decorators that do not apply. */
interface Wording {
  readonly enhanced: (label: string, kind: string) => string;
  readonly decorated: (label: string) => string;
}

/**
 * For methods that are called without Nest's pipeline: silently ignoring a guard would be worse than having none.
 *
 * @throws InvalidHandlerError
 */
export function rejectEnhancers({ label, method, owner, methodName }: Discovered<unknown>, wording: Wording): void {
  for (const kind of ['guards', 'interceptors', 'pipes', 'filters'] as const) {
    if (Reflect.hasMetadata(NEST_METADATA[kind], method)) throw new InvalidHandlerError(wording.enhanced(label, kind));
  }
  if (Reflect.hasOwnMetadata(NEST_METADATA.routeArguments, owner.constructor, methodName)) {
    throw new InvalidHandlerError(wording.decorated(label));
  }
}
