import { type InspectorBroker, MAX_PAGE, type Place, type MoveAction } from '../broker/inspection.js';
import { ArchiveFullError, InvalidOptionError } from '../errors.js';
import { isAllowed } from '../task/actions.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import type { TaskState } from '../wire/states.js';
import { type ArchiveLimit, requireArchiveLimit } from './archive-limit.js';
import { requireSteering } from './delete-queue.js';
import { requireQueue } from './known-queue.js';
import { toPlace } from './list-options.js';

/** States whose tasks can be moved. Not every state fits every action: pending tasks cannot be run, nor archived ones archived. */
export type MovableState = Exclude<TaskState, 'active'>;

export interface BulkProgress {
  /** Tasks dealt with so far. */
  readonly done: number;
  readonly total: number;
}

export interface BulkOptions {
  /** The group; required for `aggregating`, and for nothing else. */
  readonly group?: string;
  /** Told after every step. */
  readonly onProgress?: (progress: BulkProgress) => void;
  /** Stops between two steps; the call then rejects with its reason, and what is done stays done. */
  readonly signal?: AbortSignal;
}

export interface BulkResult {
  /** Tasks that were run, archived or deleted. */
  readonly moved: number;
  /** Tasks that had left the state when it was their turn, or are damaged. */
  readonly skipped: number;
}

export interface BulkArchiveOptions extends BulkOptions, ArchiveLimit {}

interface Bulk extends Omit<BulkArchiveOptions, 'group'> {
  readonly place: Place;
}

/** Tasks moved in one step: a script of two or three milliseconds. */
const BATCH_SIZE = 200;

function toBulk(action: MoveAction, state: MovableState, options: BulkArchiveOptions): Bulk {
  requireObject(options, `the options of ${action}AllTasks`, InvalidOptionError);
  const known = ['group', 'onProgress', 'signal', ...(action === 'archive' ? ['maxArchived'] : [])];
  rejectUnknownKeys(options, known, `option of ${action}AllTasks`, InvalidOptionError);
  requireArchiveLimit(options);
  const { group, onProgress, signal, maxArchived } = options;
  const place = toPlace(state, group);
  if (place.state === 'active') {
    throw new InvalidOptionError(`active tasks cannot be moved (${action}); cancel them with cancelProcessing`);
  }
  if (!isAllowed(action, state))
    throw new InvalidOptionError(`${action} is nothing for tasks that are ${state} already`);
  requireSteering(onProgress, signal);
  return { place, onProgress, signal, maxArchived };
}

/**
 * Acts on what is there when it begins. The ids are read first, page by page (some 60 MB for a million, for as long as the call
 * takes), and then acted upon, each only if it is still in the place: what comes later is not touched, so that the call ends
 * however fast others enqueue, and no step holds Redis for more than a few milliseconds.
 */
export async function moveAll(
  broker: InspectorBroker,
  queue: string,
  action: MoveAction,
  state: MovableState,
  options: BulkArchiveOptions = {},
): Promise<BulkResult> {
  const { place, onProgress, signal, maxArchived } = toBulk(action, state, options);
  await requireQueue(broker, queue);
  const pages = await readIds(broker, queue, place, signal);
  const total = pages.reduce((sum, ids) => sum + ids.length, 0);
  let moved = 0;
  let done = 0;
  for (const ids of pages) {
    for (let first = 0; first < ids.length; first += BATCH_SIZE) {
      signal?.throwIfAborted();
      const statuses = await broker.moveTasks(queue, action, ids.slice(first, first + BATCH_SIZE), place, maxArchived);
      moved += statuses.filter((status) => status === 'moved').length;
      done += statuses.length;
      if (statuses.includes('full')) throw new ArchiveFullError(queue, maxArchived ?? 0, moved);
      onProgress?.({ done, total });
    }
  }
  return { moved, skipped: total - moved };
}

async function readIds(
  broker: InspectorBroker,
  queue: string,
  place: Place,
  signal: AbortSignal | undefined,
): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    signal?.throwIfAborted();
    const page = await broker.listIds(queue, { ...place, size: MAX_PAGE, cursor });
    pages.push(page.ids);
    cursor = page.cursor;
  }
  return pages;
}
