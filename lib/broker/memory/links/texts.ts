import { PREREQUISITE_FAILED, TIMED_OUT } from '../../../task/links.js';
import type { Origin, WaitRecord } from './place.js';

/** Why a task has failed, for those that waited for it, if nobody says more. The scripts say the same. */
export const REVOKED = 'revoked';
export const ARCHIVED = 'archived';
export const DELETED = 'deleted';
export const MISSING = 'it does not exist';
/** The error of a task whose prerequisite failed. Of a chain of failures the first is named, not each. */
export function prerequisiteFailed({ from, of }: Origin, why: string): string {
  if (why.startsWith(PREREQUISITE_FAILED)) return why;
  return PREREQUISITE_FAILED + nameOf({ from, of }) + (why === '' ? '' : `: ${why}`);
}

/** How many of those that have not succeeded in time are named at most. */
const NAMED = 3;

/** The error of a task that has waited for as long as it may. */
export function timedOut({ edges, onFailure }: WaitRecord): string {
  const missing = edges.filter(({ state }) => state === 'waiting' || (state === 'failed' && onFailure !== 'run'));
  const names = missing.slice(0, NAMED).map((one) => nameOf(one) + (one.state === 'failed' ? ' (failed)' : ''));
  const more = missing.length - names.length;
  return `${TIMED_OUT}: ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const nameOf = ({ from, of }: Origin): string =>
  from.startsWith('~') ? `${from.slice(1)} "${of}"` : `task "${of}" of queue "${from}"`;

/** Why a step of a run has failed whose task could not be created. */
export const DUPLICATE = 'its unique lock is held by another task';
export const CONFLICT = 'there is another task with its id';
/** Why a run was cancelled that had a deadline. */
export const LATE = 'it did not end in time';
