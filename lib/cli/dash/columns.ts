import type { GroupSize } from '../../broker/inspection.js';
import { toDate } from '../../clock.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { TaskDetails } from '../../task/info.js';
import type { TaskState } from '../../wire/states.js';
import { errorRate } from '../output/words.js';
import { formatBytes } from '../../words/bytes.js';
import { excerpt, formatCount, formatDistance, formatSpan } from './format.js';
import type { GridColumn } from './grid.js';
import { type Row, STATES } from './model.js';
import type { Style } from './styled-line.js';
import { STATE_STYLES, styleOfCount } from './state-styles.js';

/** A queue; without figures until they are read. */
export interface QueueRow {
  readonly name: string;
  readonly info: QueueInfo | undefined;
}

/** On a narrow screen the states that need attention stay longest. */
const STATE_RANKS: Readonly<Record<TaskState, number>> = {
  pending: 3,
  active: 4,
  retry: 5,
  archived: 6,
  scheduled: 10,
  completed: 13,
  aggregating: 14,
  waiting: 15,
  held: 5,
};

const number = (
  title: string,
  rank: number,
  value: (info: QueueInfo) => number,
  style?: Style,
): GridColumn<QueueRow> => ({
  title,
  rank,
  right: true,
  cell: ({ info }) => (info ? formatCount(value(info)) : '…'),
  style: ({ info }) => (info ? styleOfCount(value(info), style) : 'dim'),
});

const text = (title: string, rank: number, value: (info: QueueInfo) => string): GridColumn<QueueRow> => ({
  title,
  rank,
  right: true,
  cell: ({ info }) => (info ? value(info) : '…'),
});

export const QUEUE_COLUMNS: readonly GridColumn<QueueRow>[] = [
  { title: 'QUEUE', rank: 0, least: 12, cell: ({ name }) => name },
  {
    title: 'STATUS',
    rank: 1,
    cell: ({ info }) => (info?.paused ? 'paused' : info ? 'running' : '…'),
    style: ({ info }) => (info?.paused ? 'warning' : 'dim'),
  },
  number('SIZE', 2, ({ size }) => size),
  ...STATES.map((state) => number(state.toUpperCase(), STATE_RANKS[state], (info) => info[state], STATE_STYLES[state])),
  text('LATENCY', 7, ({ latency }) => formatSpan(latency)),
  text('MEMORY', 12, ({ memoryUsage }) => formatBytes(memoryUsage)),
  number('PROCESSED', 9, ({ processed }) => processed),
  number('FAILED', 8, ({ failed }) => failed, 'bad'),
  {
    ...text('ERRORS', 11, ({ processed, failed }) => errorRate(processed, failed)),
    style: ({ info }) => (info && info.failed > 0 ? 'bad' : 'dim'),
  },
];

/** The tasks of a state, and their share of all. */
export interface StateRow {
  readonly state: TaskState;
  readonly count: number | undefined;
  readonly note: string;
  readonly share: number;
}

const BAR_WIDTH = 24;

export const STATE_COLUMNS: readonly GridColumn<StateRow>[] = [
  { title: 'STATE', rank: 0, cell: ({ state }) => state },
  {
    title: 'TASKS',
    rank: 1,
    right: true,
    cell: ({ count }) => (count === undefined ? '…' : formatCount(count)),
    style: ({ state, count }) => styleOfCount(count ?? 0, STATE_STYLES[state]),
  },
  {
    title: '',
    rank: 3,
    cell: ({ share }) => '█'.repeat(share > 0 ? Math.max(1, Math.round(share * BAR_WIDTH)) : 0).padEnd(BAR_WIDTH),
    style: ({ state }) => STATE_STYLES[state] ?? 'dim',
  },
  { title: '', rank: 2, cell: ({ note }) => note, style: () => 'dim' },
];

export const GROUP_COLUMNS: readonly GridColumn<GroupSize>[] = [
  { title: 'GROUP', rank: 0, least: 8, cell: ({ group }) => group },
  { title: 'TASKS', rank: 1, right: true, cell: ({ size }) => formatCount(size) },
];

const column = (
  title: string,
  rank: number,
  value: (task: TaskDetails) => string,
  more: Partial<GridColumn<Row>> = {},
): GridColumn<Row> => ({ title, rank, cell: ({ task }) => (task ? value(task) : ''), ...more });

const ID: GridColumn<Row> = { title: 'ID', rank: 0, least: 20, cell: (row) => row.id };

const TYPE: GridColumn<Row> = {
  title: 'TYPE',
  rank: 1,
  least: 10,
  cell: ({ task, damage }) => task?.type ?? `damaged: ${damage}`,
  style: ({ task }) => (task ? undefined : 'bad'),
};

const PAYLOAD = column('PAYLOAD', 7, (task) => excerpt(task.payload), { least: 16 });
const RESULT = column('RESULT', 3, ({ result }) => excerpt(result), { least: 16 });
const ERROR = column('LAST ERROR', 3, ({ lastErr }) => lastErr.slice(0, 300), { least: 16, style: () => 'bad' });
const LEASE = column('LEASE', 2, ({ isOrphaned }) => (isOrphaned ? 'orphaned' : 'held'), {
  style: ({ task }) => (task?.isOrphaned ? 'bad' : 'dim'),
});

const retries = (rank: number): GridColumn<Row> =>
  column('RETRIED', rank, ({ retried, maxRetry }) => `${retried}/${maxRetry}`, { right: true });

/** Columns of tasks, by what matters in their state. */
export function taskColumns(state: TaskState, now: number): readonly GridColumn<Row>[] {
  const time = (title: string, rank: number, timeOf: (task: TaskDetails) => Date | undefined): GridColumn<Row> =>
    column(title, rank, (task) => formatDistance(timeOf(task), now));
  const columns: Readonly<Record<TaskState, readonly GridColumn<Row>[]>> = {
    pending: [time('PENDING', 2, ({ pendingSince }) => pendingSince)],
    active: [LEASE],
    scheduled: [time('PROCESS', 2, ({ nextProcessAt }) => nextProcessAt)],
    retry: [time('NEXT TRY', 2, ({ nextProcessAt }) => nextProcessAt), retries(5), ERROR],
    archived: [time('LAST FAILED', 5, ({ lastFailedAt }) => lastFailedAt), retries(6), ERROR],
    completed: [time('COMPLETED', 2, ({ completedAt }) => completedAt), time('EXPIRES', 5, expiryOf), RESULT],
    aggregating: [],
    waiting: [time('WAITS UNTIL', 2, ({ nextProcessAt }) => nextProcessAt)],
    held: [
      column('HELD BY', 2, ({ heldBy = '' }) => heldBy, { least: 12 }),
      time('HELD', 3, ({ heldSince }) => heldSince),
    ],
  };
  return [ID, TYPE, ...columns[state], PAYLOAD];
}

/** When a completed task is removed; `undefined` for other tasks. */
export const expiryOf = ({ completedAt, retention }: TaskDetails): Date | undefined =>
  completedAt && toDate(completedAt.getTime() + retention);
