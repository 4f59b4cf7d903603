import type { DamagedEntry, ListedTask, ListingRole, ListRequest, TaskLocation } from '../broker/inspection.js';
import { InvalidOptionError } from '../errors.js';
import type { TaskInfo } from '../task/info.js';
import { rejectUnknownKeys, requireInteger, requireNonBlank, requireObject } from '../validation.js';
import type { TaskState } from '../wire/states.js';
import { CRITERIA, type Criteria, type TaskCriteria, toCriteria } from './criteria.js';
import { toDirection, toLocation } from './list-options.js';

/** At least one of the criteria. A task must match all that are given. */
export interface SearchOptions extends TaskCriteria {
  /** The group; required for `aggregating`, refused for other states. */
  readonly group?: string;
  /** Only pending tasks of this key of a fair queue; '' for those without one. */
  readonly fairnessKey?: string;
  /** How many tasks to read, 1 to 10,000; default 1,000. The call ends earlier after some 16 MB. */
  readonly scan?: number;
  /** The `cursor` of the search before. */
  readonly cursor?: string;
  /** Highest time first, as in a list. Default: that of the cursor, else false. */
  readonly newestFirst?: boolean;
}

export interface SearchResult {
  /** The tasks that match, of those read. */
  readonly tasks: TaskInfo[];
  /** Damaged tasks whose id matches, when the id is the only criterion. */
  readonly damaged: readonly DamagedEntry[];
  /** How many entries were read. */
  readonly scanned: number;
  /** Pass it to continue; `undefined` at the end of the list. */
  readonly cursor: string | undefined;
}

const KNOWN_OPTIONS = [...CRITERIA, 'group', 'fairnessKey', 'scan', 'cursor', 'newestFirst'];
const DEFAULT_SCANNED_TASKS = 1_000;
const MAX_SCANNED_TASKS = 10_000;
/** Tasks read at a time: a script run of two or three milliseconds. */
const SCAN_BATCH_SIZE = 500;
/**
 * Bytes of payloads and results after which a call ends, since what it finds stays in memory. All tasks that were read count:
 * otherwise the end of a search would reveal what hidden values match.
 */
const MAX_CALL_BYTES = 16 * 1024 * 1024;

interface Search {
  readonly location: TaskLocation & Pick<ListRequest, 'reverse'>;
  readonly scan: number;
  readonly cursor: string | undefined;
  readonly criteria: Criteria;
  readonly matchesDamaged: (entry: DamagedEntry) => boolean;
}

/** @throws InvalidOptionError */
export async function toSearch(
  broker: Parameters<typeof toCriteria>[0],
  state: TaskState,
  options: SearchOptions,
): Promise<Search> {
  requireObject(options, 'the options of a search', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN_OPTIONS, 'search option', InvalidOptionError);
  const { id = '', group, fairnessKey, scan = DEFAULT_SCANNED_TASKS, cursor, newestFirst } = options;
  const location = { ...toLocation(state, group, fairnessKey), ...toDirection(state, newestFirst) };
  requireInteger(scan, 'scan', InvalidOptionError, { least: 1, most: MAX_SCANNED_TASKS });
  if (cursor !== undefined) requireNonBlank(cursor, 'cursor', InvalidOptionError);
  const criteria = await toCriteria(broker, state, options);
  if (criteria.given.length === 0) {
    throw new InvalidOptionError(`nothing to search for; give one of ${CRITERIA.join(', ')}`);
  }
  const isById = criteria.given.length === 1 && id !== '';
  return { location, scan, cursor, criteria, matchesDamaged: (entry) => isById && entry.id.startsWith(id) };
}

/** Reads the list page by page until `scan` entries are read, so that the work of one call is bounded. */
export async function search(
  listing: ListingRole,
  queue: string,
  { location, scan, criteria: { matches, where }, matchesDamaged, cursor }: Search,
  view: (task: ListedTask) => TaskInfo,
): Promise<SearchResult> {
  const found: { tasks: TaskInfo[]; damaged: DamagedEntry[] } = { tasks: [], damaged: [] };
  let scanned = 0;
  let bytes = 0;
  let next = cursor;
  do {
    const page = await listing.listTasks(queue, {
      ...location,
      size: Math.min(SCAN_BATCH_SIZE, scan - scanned),
      cursor: next,
    });
    found.tasks.push(
      ...page.tasks
        .filter(matches)
        .map(view)
        .filter(where ?? (() => true)),
    );
    found.damaged.push(...page.damaged.filter(matchesDamaged));
    scanned += page.tasks.length + page.damaged.length;
    for (const { message, result } of page.tasks) bytes += message.payload.length + (result?.length ?? 0);
    next = page.cursor;
  } while (next !== undefined && scanned < scan && bytes < MAX_CALL_BYTES);
  return { ...found, scanned, cursor: next };
}
