import { PREREQUISITE_FAILED } from '../../../task/links.js';
import type { Origin } from './place.js';

/** Why a task has failed, for those that waited for it, if nobody says more. The scripts say the same. */
export const REVOKED = 'revoked';
export const ARCHIVED = 'archived';
export const DELETED = 'deleted';
export const MISSING = 'it does not exist';
/** The error of a task that has waited for as long as it may. */
export const TIMED_OUT = 'asynq: waited for as long as it may, and not every prerequisite has succeeded';

/** The error of a task whose prerequisite failed. Of a chain of failures the first is named, not each. */
export function prerequisiteFailed({ from, of }: Origin, why: string): string {
  if (why.startsWith(PREREQUISITE_FAILED)) return why;
  const name = from.startsWith('~') ? `${from.slice(1)} "${of}"` : `task "${of}" of queue "${from}"`;
  return PREREQUISITE_FAILED + name + (why === '' ? '' : `: ${why}`);
}

/** Why a step of a run has failed whose task could not be created. */
export const DUPLICATE = 'its unique lock is held by another task';
export const CONFLICT = 'there is another task with its id';
/** Why a run was cancelled that had a deadline. */
export const LATE = 'it did not end in time';
