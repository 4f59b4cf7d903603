import { InvalidTaskError } from '../../../errors.js';
import { describe } from '../../../validation.js';

/** The time of `pending_since`, as text: nanoseconds do not fit a JavaScript number. */
export const nanoseconds = (milliseconds: number): string => `${Math.floor(milliseconds)}000000`;

/**
 * Milliseconds since the epoch of `pending_since`, rounded down; `undefined` when it is not valid,
 * as anybody may have written it. Cut as text: 19 digits read as a number may be a millisecond too
 * early.
 */
export function readNanoseconds(text: string): number | undefined {
  const milliseconds = Number(text.slice(0, -6));
  return Number.isSafeInteger(milliseconds) && milliseconds > 0 ? milliseconds : undefined;
}

/**
 * A score or a TTL. Redis aborts a script half-way when it is no number, and some tools for asynq
 * fail on fractions.
 *
 * @throws InvalidTaskError
 */
export function requireSeconds(value: number, what: string, least = Number.MIN_SAFE_INTEGER): string {
  if (Number.isSafeInteger(value) && value >= least) return String(value);
  const expected = least > 0 ? `whole seconds, ${least} at least` : 'whole seconds';
  throw new InvalidTaskError(`${what} is ${describe(value)}; it must be ${expected}`);
}

/** A score as Redis spells it; infinite ones too, which `Number` does not read. */
export const readScore = (text: string): number =>
  text === 'inf' ? Infinity : text === '-inf' ? -Infinity : Number(text);
