import { type ErrorClass, InvalidTaskError } from '../errors.js';
import { describe } from '../validation.js';
import type { Jsonify } from './jsonify.js';

/** The longest name of a step or of a signal. */
const MAX_STEP_NAME_LENGTH = 100;

/** A signal with the type of what it brings: made once by {@link defineSignal}, used by those who send and who wait. */
export interface SignalDefinition<P = undefined> {
  readonly name: string;
  /** Never set: it only carries the type. */
  readonly __payload?: P;
}

/** What a handler gets of a signal: its payload as JSON leaves it. */
export type SignalOf<S> = S extends SignalDefinition<infer P> ? Jsonify<P> : never;

/**
 * Names a signal for handlers that wait for one.
 *
 * @example export const Approval = defineSignal<{ by: string }>('approval');
 *
 * @param name 1 to 100 characters, without control characters
 * @throws InvalidTaskError
 */
export function defineSignal<P = undefined>(name: string): SignalDefinition<P> {
  return Object.freeze({ name: requireStepName(name, 'name of a signal') });
}

/** @param what as in `name of a signal`. @throws `Failure` */
export function requireStepName(name: unknown, what: string, Failure: ErrorClass = InvalidTaskError): string {
  const isName = typeof name === 'string' && name.length > 0 && name.length <= MAX_STEP_NAME_LENGTH;
  if (isName && !/[\p{Cc}\p{Cs}#]/u.test(name)) return name;
  throw new Failure(`${what} ${describe(name)} must be 1 to ${MAX_STEP_NAME_LENGTH} characters without controls and #`);
}
