import { types } from 'node:util';
import { isThenable } from '../../async.js';
import { InvalidBatchResultError } from '../../errors.js';
import { FailedTask } from '../../server/index.js';
import { describe } from '../../validation.js';
import { wrongBatchResults } from '../names/nest.messages.js';

/**
 * An entry per task from what a batch handler returned: its result, or a FailedTask for an Error, a rejected promise, or a rejected entry
 * of `Promise.allSettled`. Nothing returned is no result for all.
 *
 * @throws InvalidBatchResultError for anything but one entry per task
 */
export async function batchResults(returned: unknown, tasks: number, label: string): Promise<readonly unknown[]> {
  if (returned === undefined) return new Array<undefined>(tasks).fill(undefined);
  if (!Array.isArray(returned)) {
    throw new InvalidBatchResultError(wrongBatchResults(label, describe(returned), tasks));
  }
  const count = returned.length;
  if (count !== tasks) throw new InvalidBatchResultError(wrongBatchResults(label, `an array of ${count}`, tasks));
  const entries: unknown[] = returned.some(isThenable) ? await Promise.allSettled(returned) : returned;
  if (entries.every(isSettled)) {
    return entries.map((entry) =>
      entry.status === 'rejected' ? new FailedTask(entry.reason) : failedIfError(entry.value),
    );
  }
  return entries.map(failedIfError);
}

const failedIfError = (entry: unknown): unknown =>
  entry instanceof Error || types.isNativeError(entry) ? new FailedTask(entry) : entry;

/** An entry of what `Promise.allSettled` returns. */
function isSettled(entry: unknown): entry is PromiseSettledResult<unknown> {
  if (typeof entry !== 'object' || entry === null) return false;
  const { status } = entry as { status?: unknown };
  if (Object.keys(entry).length !== 2) return false;
  return (status === 'fulfilled' && 'value' in entry) || (status === 'rejected' && 'reason' in entry);
}
