import type { Origin } from './place.js';

/** Why a task has failed, for those that waited for it. The scripts of Redis say the same. */
export const REVOKED = 'it was revoked';
export const ARCHIVED = 'it was archived';
export const DELETED = 'it was deleted';
/** The error of a task that has waited for as long as it may. */
export const TIMED_OUT = 'it waited for as long as it may, and not every prerequisite has succeeded';

/** The error of a task whose prerequisite failed. */
export const prerequisiteFailed = ({ from, of }: Origin, why: string): string =>
  from.startsWith('~')
    ? `the prerequisite of type "${from.slice(1)}" with the key "${of}" failed: ${why}`
    : `the prerequisite "${of}" in the queue "${from}" failed: ${why}`;
