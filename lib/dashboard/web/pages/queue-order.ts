import { isUnreadable, type Queue, type QueueRow, type State } from '../api/types.js';
import type { Moment } from '../live/live.js';
import { rates, recent } from '../live/series.js';
import type { Trouble } from './queue-health.js';

export const STATE_COLUMNS: readonly State[] = [
  'pending',
  'active',
  'aggregating',
  'waiting',
  'held',
  'scheduled',
  'retry',
  'archived',
  'completed',
];

/** States that few applications have: without a task in them, their columns would push others out of a window. */
const RARE: ReadonlySet<State> = new Set(['aggregating', 'waiting', 'held']);

/** The states that a table of these queues has columns for. */
export const statesOf = (rows: readonly QueueRow[], sorting: Sorting): readonly State[] =>
  STATE_COLUMNS.filter(
    (state) => !RARE.has(state) || sorting.column === state || rows.some((row) => !isUnreadable(row) && row[state] > 0),
  );

/** The columns with numbers. */
const NUMBER_COLUMNS = ['tasks/s', ...STATE_COLUMNS, 'oldest', 'failed', 'memory'] as const;
export type Column = 'queue' | (typeof NUMBER_COLUMNS)[number];
export const COLUMNS: readonly Column[] = ['queue', ...NUMBER_COLUMNS];

export const columnName = (column: Column): string => (column === 'aggregating' ? 'grouped' : column);

/** By a column; `undefined`: by health. */
export interface Sorting {
  column: Column | undefined;
  descending: boolean;
}

export const BY_HEALTH: Sorting = { column: undefined, descending: false };

/** `failed`, or `-failed` for the highest first; anything else is by health. */
export function parseSorting(text: string | undefined = ''): Sorting {
  const descending = text.startsWith('-');
  const column = COLUMNS.find((one) => one === text.slice(descending ? 1 : 0));
  return column ? { column, descending } : BY_HEALTH;
}

export const printSorting = ({ column, descending }: Sorting): string | undefined =>
  column && `${descending ? '-' : ''}${column}`;

/** A column is sorted as one looks for it first: names from A, numbers from the highest; then the other way. */
export function pressed(column: Column, now: Sorting): Sorting {
  const first = column !== 'queue';
  return { column, descending: now.column === column ? !now.descending : first };
}

/** The last samples are enough for the present rate. */
const RECENT_MOMENTS = 6;

function valueOf(column: Column, row: Queue, moments: readonly Moment[]): number {
  switch (column) {
    case 'queue':
      return 0; // names are compared for all
    case 'tasks/s':
      return recent(rates(moments.slice(-RECENT_MOMENTS), (sample) => sample.processed_total, row.queue)) ?? 0;
    case 'oldest':
      return row.pending > 0 ? row.oldest_pending_ms : 0;
    case 'failed':
      return row.processed > 0 ? row.failed / row.processed : 0;
    case 'memory':
      return row.memory_usage_bytes;
    default:
      return row[column];
  }
}

interface Known {
  moments: readonly Moment[];
  favourites: ReadonlySet<string>;
  troubles: ReadonlyMap<string, readonly Trouble[]>;
}

/**
 * By health: those with trouble, then the favourites, then the others, each by name. By a column:
 * equal ones by name; those that cannot be read last.
 */
export function sortQueues(rows: readonly QueueRow[], sorting: Sorting, known: Known): QueueRow[] {
  const { column, descending } = sorting;
  const sign = descending ? -1 : 1;
  const rank = (row: QueueRow): number => {
    if (column) return isUnreadable(row) ? Number.POSITIVE_INFINITY : sign * valueOf(column, row, known.moments);
    if (known.troubles.get(row.queue)?.length) return 0;
    return known.favourites.has(row.queue) ? 1 : 2;
  };
  const names = new Intl.Collator('en', { numeric: true });
  const turned = column === 'queue' ? sign : 1;
  return rows
    .map((row) => ({ row, rank: rank(row) }))
    .sort((a, b) => (a.rank === b.rank ? turned * names.compare(a.row.queue, b.row.queue) : a.rank - b.rank))
    .map(({ row }) => row);
}

/** The rows in the order they had, new ones last. */
export function keepOrder(rows: readonly QueueRow[], names: readonly string[]): QueueRow[] {
  const places = new Map(names.map((name, place) => [name, place]));
  const place = ({ queue }: QueueRow): number => places.get(queue) ?? names.length;
  return [...rows].sort((a, b) => place(a) - place(b));
}
