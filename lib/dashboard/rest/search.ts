import { mapInTurns } from '../../async.js';
import type { DamagedEntry } from '../../broker/inspection.js';
import type { Duration } from '../../duration.js';
import type { TaskInfo } from '../../task/info.js';
import type { Dashboard } from '../dashboard.js';
import { listScopeOf, type TaskState } from './list-paths.js';
import { given, orderOf, positive } from './query.js';
import type { ApiRequest } from './route.js';
import { showListed, type Workers } from './shapes/listed-task.js';

const CRITERIA = ['type', 'id', 'payload', 'error', 'older_than'] as const;
type Criteria = Partial<Record<(typeof CRITERIA)[number], string>>;

const MOST_SCANNED = 10_000;
const DEFAULT_SCAN = 1_000;
/** Entries scanned between two checks of the reply's size. */
const STEP_ENTRIES = 500;
const FIRST_STEP_ENTRIES = 50;
/** Bytes of payloads searched before other requests get their turn. */
const STEP_BYTES = 64 * 1024;
/** Limits of tasks and characters per reply. */
const MAX_TASKS = 1_000;
const MAX_REPLY_LENGTH = 2_000_000;
/** Bytes of payloads per request: a search decodes them to find their visible parts. */
const MAX_SEARCHED_BYTES = 8 * 1024 * 1024;

type ListedTask = ReturnType<typeof showListed>;

/** The reply to a search, as it grows. */
interface SearchReply {
  readonly tasks: ListedTask[];
  readonly damaged: { readonly id: string; readonly error: string }[];
  scanned: number;
  next_cursor: string | null;
}

export const isSearch = (query: URLSearchParams): boolean => CRITERIA.some((name) => given(query, name) !== undefined);

/** How many entries to scan; `undefined`: the default, or not a search. */
export function scanOf(query: URLSearchParams): number | undefined {
  const scan = Math.min(positive(query, 'scan') ?? DEFAULT_SCAN, MOST_SCANNED);
  return isSearch(query) && scan !== DEFAULT_SCAN ? scan : undefined;
}

const criteriaOf = (query: URLSearchParams): Criteria =>
  Object.fromEntries(CRITERIA.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));

/**
 * Scans `scan` entries, or fewer if the reply reaches its limits. Results are converted at once, so
 * that no more is held than is sent. Only visible results count, so that the end of a page says
 * nothing about hidden ones.
 */
export async function search(
  dashboard: Dashboard,
  state: TaskState,
  request: ApiRequest,
  workers: Workers,
): Promise<SearchReply> {
  const { query, params } = request;
  const criteria = criteriaOf(query);
  const scan = scanOf(query) ?? DEFAULT_SCAN;
  const { group } = listScopeOf(state, request);
  const reply: SearchReply = { tasks: [], damaged: [], scanned: 0, next_cursor: given(query, 'cursor') ?? null };
  let text = 0;
  const searched = { bytes: 0 };
  const { type, id, older_than: olderThan } = criteria;
  const where = {
    type,
    id,
    olderThan: olderThan as Duration | undefined,
    where: visibleMatch(dashboard, criteria, searched),
  };
  do {
    const step = Math.min(stepOf(criteria, reply.scanned, searched.bytes), scan - reply.scanned);
    const options = { ...where, scan: step, cursor: reply.next_cursor ?? undefined, group, ...orderOf(query) };
    const found = await dashboard.inspector.searchTasks(params.queue!, state, options);
    const shown = await mapInTurns(found.tasks, (task) => showListed(dashboard, task, workers));
    reply.tasks.push(...shown);
    reply.damaged.push(...found.damaged.map(showDamaged));
    for (const task of shown) text += lengthOf(task);
    reply.scanned += found.scanned;
    reply.next_cursor = found.cursor ?? null;
  } while (
    reply.next_cursor !== null &&
    reply.scanned < scan &&
    reply.tasks.length < MAX_TASKS &&
    text < MAX_REPLY_LENGTH &&
    searched.bytes < MAX_SEARCHED_BYTES
  );
  return reply;
}

/** Payloads are searched without a pause. The first ones give an estimate of their size. */
function stepOf({ payload }: Criteria, scanned: number, bytes: number): number {
  if (payload === undefined) return STEP_ENTRIES;
  if (scanned === 0) return FIRST_STEP_ENTRIES;
  return Math.max(1, Math.min(STEP_ENTRIES, Math.floor((STEP_BYTES * scanned) / Math.max(1, bytes))));
}

const lengthOf = (task: ListedTask): number => JSON.stringify(task).length;

export const showDamaged = ({ id, error }: DamagedEntry) => ({ id, error: error.message });

/**
 * A filter for the visible part of payloads and errors. Hidden parts are not read, so neither
 * results nor timing reveal them. `undefined` if neither is searched.
 *
 * @param searched counts the bytes searched
 */
function visibleMatch(
  { presenter }: Dashboard,
  { payload, error }: Criteria,
  searched: { bytes: number },
): ((task: TaskInfo) => boolean) | undefined {
  if (payload === undefined && error === undefined) return undefined;
  return (task) => {
    if (error !== undefined && !presenter.presentError({ ...task, error: task.lastErr }).includes(error)) return false;
    if (payload === undefined) return true;
    searched.bytes += task.payload.length;
    return presenter.isInPayload(task, payload);
  };
}
