import { type ListRequest, MAX_PAGE_SIZE, type TaskLocation } from '../broker/inspection.js';
import { requireForward } from '../broker/cursor.js';
import { InvalidOptionError } from '../errors.js';
import {
  describe,
  nearest,
  rejectUnknownKeys,
  requireInteger,
  requireNonBlank,
  requireObject,
  requirePositiveInteger,
} from '../validation.js';
import { TASK_STATES, type TaskState } from '../wire/states.js';

export interface ListOptions {
  /** The most tasks to return, 1 to 1000; default 30. Fewer are returned if they are large (4 MB in all). */
  readonly size?: number;
  /** The `cursor` of the page before. */
  readonly cursor?: string;
  /** Instead of a cursor: the number of the page, from 1. Tasks that come and go shift pages; prefer the cursor. */
  readonly page?: number;
  /** The group to list; required for `aggregating`, refused for other states. */
  readonly group?: string;
  /** Only pending tasks of this key of a fair queue; '' for those without one. Not with `page`. */
  readonly fairnessKey?: string;
  /**
   * Highest time first: the last archived first, or the last to run. Completed tasks are ordered by the time of their deletion. Not
   * for `pending` and `active`. Default: that of the cursor, else false, as in Go.
   */
  readonly newestFirst?: boolean;
}

const DEFAULT_PAGE_SIZE = 30;
const KNOWN: readonly (keyof ListOptions)[] = ['size', 'cursor', 'page', 'group', 'fairnessKey', 'newestFirst'];

/** @throws InvalidOptionError */
export function toListRequest(state: TaskState, options: ListOptions = {}): ListRequest {
  requireObject(options, 'the options of a list', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN, 'list option', InvalidOptionError);
  const { size = DEFAULT_PAGE_SIZE, cursor, page, group, newestFirst, fairnessKey } = options;
  requireInteger(size, 'size', InvalidOptionError, { least: 1, most: MAX_PAGE_SIZE });
  const location = { ...toLocation(state, group, fairnessKey), ...toDirection(state, newestFirst) };
  if (cursor !== undefined && page !== undefined) {
    throw new InvalidOptionError('give a cursor or a page, not both: they contradict each other');
  }
  if (cursor !== undefined) return { ...location, size, cursor: requireNonBlank(cursor, 'cursor', InvalidOptionError) };
  if (page === undefined) return { ...location, size };
  if (fairnessKey !== undefined) {
    throw new InvalidOptionError('tasks of a fairnessKey have no page numbers; give the cursor of the page before');
  }
  return { ...location, size, offset: size * (requirePositiveInteger(page, 'page', InvalidOptionError) - 1) };
}

/** @throws InvalidOptionError */
export function toDirection(state: TaskState, newestFirst: unknown): Pick<ListRequest, 'reverse'> {
  if (newestFirst === undefined) return {};
  if (typeof newestFirst !== 'boolean') {
    throw new InvalidOptionError(`newestFirst must be true or false, not ${describe(newestFirst)}`);
  }
  requireForward(state, isUnordered(state) && newestFirst);
  return { reverse: newestFirst };
}

/** These lists are in the order of arrival, without times. */
const isUnordered = (state: TaskState): boolean => state === 'pending' || state === 'active';

export type PageOptions = Pick<ListOptions, 'size' | 'page'>;

/** @throws InvalidOptionError */
export function toRange(options: PageOptions = {}): { offset: number; size: number } {
  requireObject(options, 'the options of a list', InvalidOptionError);
  rejectUnknownKeys(options, ['size', 'page'], 'list option', InvalidOptionError);
  const { size = DEFAULT_PAGE_SIZE, page = 1 } = options;
  requireInteger(size, 'size', InvalidOptionError, { least: 1, most: MAX_PAGE_SIZE });
  return { size, offset: size * (requirePositiveInteger(page, 'page', InvalidOptionError) - 1) };
}

/** @throws InvalidOptionError */
export function toLocation(state: TaskState, group: string | undefined, fairnessKey?: unknown): TaskLocation {
  requireState(state);
  if (fairnessKey !== undefined) return { ...toLocation(state, group), fairnessKey: requireKey(state, fairnessKey) };
  if (state === 'aggregating') {
    if (group === undefined) throw new InvalidOptionError(groupMissing);
    return { state, group: requireNonBlank(group, 'group', InvalidOptionError) };
  }
  if (group === undefined) return { state };
  throw new InvalidOptionError(`only aggregating tasks are listed by group, not those that are ${state}`);
}

function requireKey(state: TaskState, key: unknown): string {
  if (state !== 'pending') {
    throw new InvalidOptionError(
      `fairnessKey is for pending tasks, which wait in the line of their key, not for those that are ${state}`,
    );
  }
  if (typeof key === 'string') return key;
  throw new InvalidOptionError(`fairnessKey must be a text, not ${describe(key)}`);
}

const groupMissing =
  'aggregating tasks are kept by group: give the option group; AsynqInspector.groups(queue) returns the groups';

function requireState(state: unknown): void {
  if (TASK_STATES.some((known) => known === state)) return;
  const near = typeof state === 'string' ? nearest(state, TASK_STATES) : undefined;
  const remedy = near ? `did you mean "${near}"?` : `states are ${TASK_STATES.join(', ')}`;
  throw new InvalidOptionError(`${describe(state)} is not a task state; ${remedy}`);
}
