import { types } from 'node:util';

import { requireKey } from './fairness.js';
import type { TaskLimits } from './limits.js';

/**
 * The key whose limits hold for a task.
 *
 * @param type of the task, for messages
 * @throws Failure when the function throws, or returns no such key
 */
export function limitKeyOf(
  limitBy: NonNullable<TaskLimits['limitBy']>,
  payload: unknown,
  type: string,
  Failure: new (message: string, options?: ErrorOptions) => Error,
): string {
  const what = `the key that limitBy of task "${type}" returned`;
  let key: unknown;
  try {
    key = limitBy(payload);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Failure(`limitBy of task "${type}" threw: ${reason}`, { cause: error });
  }
  if (types.isPromise(key)) key.catch(() => undefined);
  return requireKey(key, what, Failure);
}

/** Names the semaphore, the rate and the waitlists of a key. */
export const scopeOfKey = (scope: string, key: string): string => `${scope}:${key}`;
