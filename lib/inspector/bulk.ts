import { mapConcurrent } from '../async.js';
import type { Broker } from '../broker/broker.js';
import {
  type IdPage,
  type ListRequest,
  MAX_PAGE_SIZE,
  type MoveAction,
  type TaskLocation,
} from '../broker/inspection.js';
import { ArchiveFullError, InvalidOptionError } from '../errors.js';
import { isAllowed } from '../task/actions.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import { TASK_STATES, type TaskState } from '../wire/states.js';
import { type ArchiveLimit, requireArchiveLimit } from './archive-limit.js';
import { cancel } from './cancel.js';
import { type CancelOptions, toCancellation } from './cancel-options.js';
import { CRITERIA, type Criteria, type TaskCriteria, toCriteria } from './criteria.js';
import { requireProgressOptions } from './delete-queue.js';
import { requireQueue } from './known-queue.js';
import { toLocation } from './list-options.js';
import { viewTask } from './views.js';
import { type EndNotice, notifyOfEnds } from './waits.js';

/** States whose tasks can be moved. Not every state allows every action: a pending task cannot be run, nor an archived one archived. */
export type MovableState = Exclude<TaskState, 'active'>;

export interface BulkProgress {
  /** Tasks handled so far. */
  readonly done: number;
  readonly total: number;
}

/** All tasks of the state, or those that match the criteria. A task is judged when it is read, and left alone once it has left the state. */
export interface CountOptions extends TaskCriteria {
  /** The group; required for `aggregating`, refused for other states. */
  readonly group?: string;
  /** Only pending tasks of this key of a fair queue; '' for those without one. */
  readonly fairnessKey?: string;
  /** Stops between two batches: the call rejects with the signal's reason; tasks already moved stay so. */
  readonly signal?: AbortSignal;
}

export interface BulkOptions extends CountOptions {
  /** Called after every batch. */
  readonly onProgress?: (progress: BulkProgress) => void;
}

export interface BulkResult {
  /** Tasks that were run, archived or deleted. */
  readonly moved: number;
  /** Tasks that had left the state before their turn, or are damaged. */
  readonly skipped: number;
}

export interface BulkArchiveOptions extends BulkOptions, ArchiveLimit {}

/** Tasks moved at a time: a script run of two or three milliseconds. */
const BATCH_SIZE = 200;
/** Tasks read at a time to compare them. */
const SCAN_SIZE = 500;
const CANCELS_AT_ONCE = 16;

type ReadingBroker = Pick<Broker, 'inspection' | 'listing' | 'publications' | 'clock'>;

interface Bulk {
  readonly location: TaskLocation;
  readonly criteria: Criteria;
}

/** @throws InvalidOptionError, QueueNotFoundError */
async function toBulk(
  broker: ReadingBroker,
  method: string,
  queue: string,
  state: TaskState,
  options: BulkOptions,
  further: readonly string[],
): Promise<Bulk> {
  const known = [...CRITERIA, 'group', 'fairnessKey', 'signal', ...further];
  rejectUnknownKeys(options, known, `option of ${method}:`, InvalidOptionError, {
    grace: "here it is olderThan, as in olderThan: '7d'",
  });
  requireProgressOptions(options.onProgress, options.signal);
  const location = toLocation(state, options.group, options.fairnessKey);
  const criteria = await toCriteria(broker, state, options);
  await requireQueue(broker.inspection, queue);
  return { location, criteria };
}

function requireMovable(action: MoveAction, state: TaskState): void {
  if (state === 'active') {
    throw new InvalidOptionError(`active tasks cannot be moved (${action}); cancel them with cancelAllTasks`);
  }
  if (TASK_STATES.includes(state) && !isAllowed(action, state)) {
    throw new InvalidOptionError(`cannot ${action} tasks that are ${state} already`);
  }
}

/**
 * Acts on the tasks that are in the state when the call begins. It first reads all ids, page by page (about 60 MB of memory for a
 * million), then moves each task that is still in the state. Later tasks are left alone, so the call ends however fast others
 * enqueue, and no step blocks Redis for more than a few milliseconds.
 */
export async function moveAll(
  broker: ReadingBroker & Pick<Broker, 'administration' | 'links'>,
  relay: EndNotice['relay'],
  queue: string,
  action: MoveAction,
  state: MovableState,
  options: BulkArchiveOptions = {},
): Promise<BulkResult> {
  requireObject(options, `the options of ${action}AllTasks`, InvalidOptionError);
  requireMovable(action, state);
  requireArchiveLimit(options);
  const further = ['onProgress', ...(action === 'archive' ? ['maxArchived'] : [])];
  const { location, criteria } = await toBulk(broker, `${action}AllTasks`, queue, state, options, further);
  const { onProgress, signal, maxArchived } = options;
  const pages = await readIds(broker, queue, location, criteria, signal);
  const total = pages.reduce((sum, ids) => sum + ids.length, 0);
  let moved = 0;
  let done = 0;
  for (const ids of pages) {
    for (let first = 0; first < ids.length; first += BATCH_SIZE) {
      signal?.throwIfAborted();
      const some = ids.slice(first, first + BATCH_SIZE);
      const changed = await moveSome({ broker, relay }, { queue, action, location, maxArchived }, some, moved);
      moved += changed;
      done += some.length;
      onProgress?.({ done, total });
    }
  }
  return { moved, skipped: total - moved };
}

interface Mover {
  readonly broker: Pick<Broker, 'administration' | 'links'>;
  readonly relay: EndNotice['relay'];
}

export interface Move {
  readonly queue: string;
  readonly action: MoveAction;
  readonly location: TaskLocation;
  readonly maxArchived?: number;
}

/** Moves tasks that were found before, where they still are in the place. @throws ArchiveFullError */
export async function moveThese(mover: Mover, move: Move, ids: readonly string[]): Promise<BulkResult> {
  let moved = 0;
  for (let first = 0; first < ids.length; first += BATCH_SIZE) {
    moved += await moveSome(mover, move, ids.slice(first, first + BATCH_SIZE), moved);
  }
  return { moved, skipped: ids.length - moved };
}

/** @param before how many were moved before, for the error */
async function moveSome(mover: Mover, move: Move, ids: readonly string[], before: number): Promise<number> {
  const { queue, action, location, maxArchived } = move;
  const statuses = await mover.broker.administration.moveTasks(queue, action, ids, location, maxArchived);
  const changed = ids.filter((_, index) => statuses[index] === 'moved');
  if (action !== 'run') await notifyOfEnds(mover, queue, changed);
  if (statuses.includes('full')) throw new ArchiveFullError(queue, maxArchived ?? 0, before + changed.length);
  return changed.length;
}

/** How many tasks of the state match. It reads all of them, some hundred at a time. */
export async function countTasks(
  broker: ReadingBroker,
  queue: string,
  state: TaskState,
  options: CountOptions = {},
): Promise<number> {
  requireObject(options, 'the options of countTasks', InvalidOptionError);
  const { location, criteria } = await toBulk(broker, 'countTasks', queue, state, options, []);
  const pages = await readIds(broker, queue, location, criteria, options.signal);
  return pages.reduce((sum, ids) => sum + ids.length, 0);
}

export interface CancelAllOptions extends Omit<BulkOptions, 'group' | 'fairnessKey'>, CancelOptions {}

/** Asks the servers to cancel the tasks that match. Returns for how many. */
export async function cancelAll(
  broker: ReadingBroker & Pick<Broker, 'cancellation'>,
  queue: string,
  options: CancelAllOptions = {},
): Promise<number> {
  requireObject(options, 'the options of cancelAllTasks', InvalidOptionError);
  const further = ['onProgress', 'reason', 'outcome'];
  const { location, criteria } = await toBulk(broker, 'cancelAllTasks', queue, 'active', options, further);
  const { reason, outcome, onProgress, signal } = options;
  toCancellation('checked', { reason, outcome }, broker.clock.now());
  const ids = (await readIds(broker, queue, location, criteria, signal)).flat();
  for (let first = 0; first < ids.length; first += BATCH_SIZE) {
    signal?.throwIfAborted();
    const some = ids.slice(first, first + BATCH_SIZE);
    await mapConcurrent(some, CANCELS_AT_ONCE, (id) => cancel(broker, id, { reason, outcome }));
    onProgress?.({ done: first + some.length, total: ids.length });
  }
  return ids.length;
}

async function readIds(
  broker: Pick<Broker, 'listing' | 'clock'>,
  queue: string,
  location: TaskLocation,
  criteria: Criteria,
  signal: AbortSignal | undefined,
): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    signal?.throwIfAborted();
    const page = await readPage(broker, queue, { ...location, cursor }, criteria);
    pages.push(page.ids);
    cursor = page.cursor;
  }
  return pages;
}

/** Where everything is meant, the tasks are not read. */
async function readPage(
  { listing, clock }: Pick<Broker, 'listing' | 'clock'>,
  queue: string,
  from: Omit<ListRequest, 'size'>,
  { given, matches, where }: Criteria,
): Promise<IdPage> {
  if (given.length === 0) return listing.listIds(queue, { ...from, size: MAX_PAGE_SIZE });
  const { tasks, cursor } = await listing.listTasks(queue, { ...from, size: SCAN_SIZE });
  const wanted = tasks.filter((task) => matches(task) && (!where || where(viewTask(task, clock))));
  return { ids: wanted.map(({ message }) => message.id), cursor };
}
