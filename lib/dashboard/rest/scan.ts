import type { SearchOptions, SearchResult } from '../../inspector/search.js';
import type { TaskInfo } from '../../task/info.js';
import type { Dashboard } from '../dashboard.js';
import { type Criteria, readsPayloads, toTaskCriteria } from './criteria.js';
import type { TaskState } from './list-paths.js';
import { positive } from './query.js';
import type { QueryParameter } from './route.js';

const MOST_SCANNED = 10_000;
const DEFAULT_SCAN = 1_000;
/** Entries scanned between two checks of the reply's size. */
const STEP_ENTRIES = 500;
const FIRST_STEP_ENTRIES = 50;
/** Bytes of payloads searched before other requests get their turn. */
const STEP_BYTES = 64 * 1024;
/** Bytes of payloads per request: a search decodes them to find their visible parts. */
const MAX_SEARCHED_BYTES = 8 * 1024 * 1024;

/** A part of a list that is read in one request. */
export interface Scan {
  readonly queue: string;
  readonly state: TaskState;
  readonly group?: string | undefined;
  readonly criteria: Criteria;
  /** Entries to read, 1 to 10,000; default 1,000. */
  readonly entries: number | undefined;
  readonly cursor?: string | undefined;
  readonly newestFirst?: boolean;
  /** Another condition, which costs nothing. */
  readonly also?: (task: TaskInfo) => boolean;
}

export const SCAN_PARAMETER: QueryParameter = {
  name: 'scan',
  description: 'entries that are read per request, 1 to 10,000; default 1,000. Fewer when it has read 8 MB of payloads',
  integer: true,
  canonical: (query) => {
    const scan = entriesOf(positive(query, 'scan'));
    return scan === DEFAULT_SCAN ? undefined : scan;
  },
};

const entriesOf = (given: number | undefined): number => Math.min(given ?? DEFAULT_SCAN, MOST_SCANNED);

/**
 * Reads a part of a list in steps, and yields the tasks that match. Only visible results count, so
 * that where it ends says nothing about hidden ones.
 */
export async function* scan(dashboard: Dashboard, request: Scan): AsyncGenerator<SearchResult> {
  const { queue, state, group, criteria, newestFirst, also } = request;
  const searched = { bytes: 0 };
  const { where, ...rest } = toTaskCriteria(dashboard, criteria, searched);
  const both = where && also ? (task: TaskInfo) => also(task) && where(task) : (where ?? also);
  const entries = entriesOf(request.entries);
  let scanned = 0;
  let cursor = request.cursor;
  do {
    const step = Math.min(stepOf(criteria, scanned, searched.bytes), entries - scanned);
    const options: SearchOptions = { ...rest, where: both, scan: step, cursor, group, newestFirst };
    const found = await dashboard.inspector.searchTasks(queue, state, options);
    scanned += found.scanned;
    cursor = found.cursor;
    yield found;
  } while (cursor !== undefined && scanned < entries && searched.bytes < MAX_SEARCHED_BYTES);
}

/** Payloads are searched without a pause. The first ones give an estimate of their size. */
function stepOf(criteria: Criteria, scanned: number, bytes: number): number {
  if (!readsPayloads(criteria)) return STEP_ENTRIES;
  if (scanned === 0) return FIRST_STEP_ENTRIES;
  return Math.max(1, Math.min(STEP_ENTRIES, Math.floor((STEP_BYTES * scanned) / Math.max(1, bytes))));
}
