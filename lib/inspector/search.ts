import type { DamagedEntry, InspectorBroker, ListedTask, ListRequest, Place } from '../broker/inspection.js';
import { InvalidOptionError } from '../errors.js';
import type { TaskInfo } from '../task/info.js';
import { rejectUnknownKeys, requireFunction, requireInteger, requireNonBlank, requireObject } from '../validation.js';
import type { TaskState } from '../wire/states.js';
import { toDirection, toPlace } from './list-options.js';

/** What to look for: at least one of the first five. A task must fit all that are given. */
export interface SearchOptions {
  /** How the type begins: `email:` finds `email:welcome`. */
  readonly type?: string;
  /** How the id begins. */
  readonly id?: string;
  /** Text in the payload, as it is stored. */
  readonly payload?: string;
  /** Text in the last error. */
  readonly error?: string;
  /** Anything else: it is asked about every task that fits so far, and must not take long. What it throws ends the search. */
  readonly where?: (task: TaskInfo) => boolean;
  /** The group; required for `aggregating`, and for nothing else. */
  readonly group?: string;
  /** How many tasks to look at, 1 to 10,000; default 1,000. Fewer, when they have more than some 16 MB. */
  readonly scan?: number;
  /** Where the search before ended: its `cursor`. */
  readonly cursor?: string;
  /** Highest time first, as in a list. Default: as the cursor does, else false. */
  readonly newestFirst?: boolean;
}

export interface SearchResult {
  /** All that fit, of those looked at. */
  readonly tasks: TaskInfo[];
  /** Entries without a readable message whose id fits, when nothing but the id was asked for. */
  readonly damaged: readonly DamagedEntry[];
  /** How many entries were looked at. */
  readonly scanned: number;
  /** Pass it to go on; `undefined` when all were looked at. */
  readonly cursor: string | undefined;
}

const CRITERIA = ['type', 'id', 'payload', 'error'] as const;
const KNOWN_OPTIONS = [...CRITERIA, 'where', 'group', 'scan', 'cursor', 'newestFirst'];
const DEFAULT_SCANNED_TASKS = 1_000;
const MAX_SCANNED_TASKS = 10_000;
/** Tasks read in one step: a script of two or three milliseconds. */
const SCAN_BATCH_SIZE = 500;
/**
 * Bytes of payloads and results after which a call ends: what it finds is held in memory. Counted of all that is looked at, as
 * otherwise the place where a search ends would tell what it found.
 */
const MAX_BATCH_BYTES = 16 * 1024 * 1024;

interface Search {
  readonly place: Place & Pick<ListRequest, 'reverse'>;
  readonly scan: number;
  readonly cursor: string | undefined;
  readonly fits: (task: ListedTask) => boolean;
  readonly where: (task: TaskInfo) => boolean;
  readonly fitsDamaged: (entry: DamagedEntry) => boolean;
}

/** @throws InvalidOptionError */
export function toSearch(state: TaskState, options: SearchOptions): Search {
  requireObject(options, 'the options of a search', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN_OPTIONS, 'search option', InvalidOptionError);
  const { type = '', id = '', payload = '', error = '', where, group } = options;
  const { scan = DEFAULT_SCANNED_TASKS, cursor, newestFirst } = options;
  const given = CRITERIA.filter((name) => options[name] !== undefined);
  for (const name of given) requireNonBlank(options[name], name, InvalidOptionError);
  if (where !== undefined) requireFunction(where, 'where', InvalidOptionError);
  if (given.length === 0 && !where) {
    throw new InvalidOptionError(`nothing to search for; give one of ${CRITERIA.join(', ')}, where`);
  }
  if (cursor !== undefined) requireNonBlank(cursor, 'cursor', InvalidOptionError);
  return {
    place: { ...toPlace(state, group), ...toDirection(state, newestFirst) },
    scan: requireInteger(scan, 'scan', InvalidOptionError, { least: 1, most: MAX_SCANNED_TASKS }),
    cursor,
    fits: ({ message }) =>
      message.type.startsWith(type) &&
      message.id.startsWith(id) &&
      message.payload.includes(payload) &&
      message.errorMsg.includes(error),
    where: where ?? (() => true),
    fitsDamaged: (entry) => given.length === 1 && !where && id !== '' && entry.id.startsWith(id),
  };
}

/** Reads the list page by page until so many entries have been looked at: the work of one call is bounded. */
export async function search(
  broker: InspectorBroker,
  queue: string,
  { place, scan, fits, where, fitsDamaged, cursor }: Search,
  view: (task: ListedTask) => TaskInfo,
): Promise<SearchResult> {
  const found: { tasks: TaskInfo[]; damaged: DamagedEntry[] } = { tasks: [], damaged: [] };
  let scanned = 0;
  let bytes = 0;
  let next = cursor;
  do {
    const page = await broker.listTasks(queue, {
      ...place,
      size: Math.min(SCAN_BATCH_SIZE, scan - scanned),
      cursor: next,
    });
    found.tasks.push(...page.tasks.filter(fits).map(view).filter(where));
    found.damaged.push(...page.damaged.filter(fitsDamaged));
    scanned += page.tasks.length + page.damaged.length;
    for (const { message, result } of page.tasks) bytes += message.payload.length + (result?.length ?? 0);
    next = page.cursor;
  } while (next !== undefined && scanned < scan && bytes < MAX_BATCH_BYTES);
  return { ...found, scanned, cursor: next };
}
