import type { Broker } from '../broker/broker.js';
import { type ListingRole, MAX_PAGE_SIZE, type TaskLocation, type MoveAction } from '../broker/inspection.js';
import { ArchiveFullError, InvalidOptionError } from '../errors.js';
import { isAllowed } from '../task/actions.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import type { TaskState } from '../wire/states.js';
import { type ArchiveLimit, requireArchiveLimit } from './archive-limit.js';
import { requireProgressOptions } from './delete-queue.js';
import { requireQueue } from './known-queue.js';
import { toLocation } from './list-options.js';
import { type EndNotice, notifyOfEnds } from './waits.js';

/** States whose tasks can be moved. Not every state allows every action: a pending task cannot be run, nor an archived one archived. */
export type MovableState = Exclude<TaskState, 'active'>;

export interface BulkProgress {
  /** Tasks handled so far. */
  readonly done: number;
  readonly total: number;
}

export interface BulkOptions {
  /** The group; required for `aggregating`, refused for other states. */
  readonly group?: string;
  /** Called after every batch. */
  readonly onProgress?: (progress: BulkProgress) => void;
  /** Stops between two batches: the call rejects with the signal's reason; tasks already moved stay so. */
  readonly signal?: AbortSignal;
}

export interface BulkResult {
  /** Tasks that were run, archived or deleted. */
  readonly moved: number;
  /** Tasks that had left the state before their turn, or are damaged. */
  readonly skipped: number;
}

export interface BulkArchiveOptions extends BulkOptions, ArchiveLimit {}

interface Bulk extends Omit<BulkArchiveOptions, 'group'> {
  readonly location: TaskLocation;
}

/** Tasks moved at a time: a script run of two or three milliseconds. */
const BATCH_SIZE = 200;

function toBulk(action: MoveAction, state: MovableState, options: BulkArchiveOptions): Bulk {
  requireObject(options, `the options of ${action}AllTasks`, InvalidOptionError);
  const known = ['group', 'onProgress', 'signal', ...(action === 'archive' ? ['maxArchived'] : [])];
  rejectUnknownKeys(options, known, `option of ${action}AllTasks`, InvalidOptionError);
  requireArchiveLimit(options);
  const { group, onProgress, signal, maxArchived } = options;
  const location = toLocation(state, group);
  if (location.state === 'active') {
    throw new InvalidOptionError(`active tasks cannot be moved (${action}); cancel them with cancelProcessing`);
  }
  if (!isAllowed(action, state)) throw new InvalidOptionError(`cannot ${action} tasks that are ${state} already`);
  requireProgressOptions(onProgress, signal);
  return { location, onProgress, signal, maxArchived };
}

/**
 * Acts on the tasks that are in the state when the call begins. It first reads all ids, page by page (about 60 MB of memory for a
 * million), then moves each task that is still in the state. Later tasks are left alone, so the call ends however fast others
 * enqueue, and no step blocks Redis for more than a few milliseconds.
 */
export async function moveAll(
  broker: Pick<Broker, 'inspection' | 'listing' | 'administration' | 'links'>,
  relay: EndNotice['relay'],
  queue: string,
  action: MoveAction,
  state: MovableState,
  options: BulkArchiveOptions = {},
): Promise<BulkResult> {
  const { location, onProgress, signal, maxArchived } = toBulk(action, state, options);
  await requireQueue(broker.inspection, queue);
  const pages = await readIds(broker.listing, queue, location, signal);
  const total = pages.reduce((sum, ids) => sum + ids.length, 0);
  let moved = 0;
  let done = 0;
  for (const ids of pages) {
    for (let first = 0; first < ids.length; first += BATCH_SIZE) {
      signal?.throwIfAborted();
      const some = ids.slice(first, first + BATCH_SIZE);
      const statuses = await broker.administration.moveTasks(queue, action, some, location, maxArchived);
      const changed = some.filter((_, index) => statuses[index] === 'moved');
      if (action !== 'run') await notifyOfEnds({ broker, relay }, queue, changed);
      moved += changed.length;
      done += statuses.length;
      if (statuses.includes('full')) throw new ArchiveFullError(queue, maxArchived ?? 0, moved);
      onProgress?.({ done, total });
    }
  }
  return { moved, skipped: total - moved };
}

async function readIds(
  listing: ListingRole,
  queue: string,
  location: TaskLocation,
  signal: AbortSignal | undefined,
): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    signal?.throwIfAborted();
    const page = await listing.listIds(queue, { ...location, size: MAX_PAGE_SIZE, cursor });
    pages.push(page.ids);
    cursor = page.cursor;
  }
  return pages;
}
