import type { WorkflowInfo } from '../../inspector/workflows.js';
import type { BatchInfo } from '../../task/batch.js';
import type { StepLine } from '../output/step-tree.js';
import { formatCount, formatDistance } from './format.js';
import type { GridColumn } from './grid.js';
import { styleOfCount } from './state-styles.js';
import type { Style } from './styled-line.js';

const STYLES: Readonly<Record<string, Style>> = {
  failed: 'bad',
  completed: 'warning',
  cancelled: 'dim',
  waiting: 'dim',
};

const count = <Row>(title: string, rank: number, value: (row: Row) => number, style?: Style): GridColumn<Row> => ({
  title,
  rank,
  right: true,
  cell: (row) => formatCount(value(row)),
  style: (row) => styleOfCount(value(row), style),
});

const state = <Row extends { readonly state: string }>(): GridColumn<Row> => ({
  title: 'STATE',
  rank: 1,
  cell: (row) => row.state,
  style: (row) => (row.state.includes('late') ? 'warning' : STYLES[row.state.split(' ')[0]!]),
});

export const runColumns = (now: number): readonly GridColumn<WorkflowInfo>[] => [
  { title: 'RUN', rank: 0, least: 16, cell: ({ id }) => id },
  state(),
  count('STEPS', 3, ({ steps }) => steps),
  count('OPEN', 2, ({ open }) => open),
  count('FAILED', 2, ({ failed }) => failed, 'bad'),
  { title: 'STARTED', rank: 4, cell: ({ startedAt }) => formatDistance(startedAt, now) },
  { title: 'ENDED', rank: 5, cell: ({ endedAt }) => formatDistance(endedAt, now) },
  { title: 'QUEUE', rank: 6, cell: ({ queue }) => queue },
];

export const batchColumns = (now: number): readonly GridColumn<BatchInfo>[] => [
  { title: 'BATCH', rank: 0, least: 16, cell: ({ name, id }) => name || id },
  state(),
  count('TOTAL', 3, ({ total }) => total),
  count('PENDING', 2, ({ pending }) => pending),
  count('SUCCEEDED', 4, ({ succeeded }) => succeeded),
  count('FAILED', 2, ({ failed }) => failed, 'bad'),
  { title: 'OPENED', rank: 5, cell: ({ openedAt }) => formatDistance(openedAt, now) },
  { title: 'ENDED', rank: 6, cell: ({ endedAt }) => formatDistance(endedAt, now) },
  { title: 'QUEUE', rank: 7, cell: ({ queue }) => queue },
];

export const STEP_COLUMNS: readonly GridColumn<StepLine>[] = [
  { title: 'STEP', rank: 0, least: 12, cell: ({ name }) => name },
  state(),
  { title: 'TOOK', rank: 2, right: true, cell: ({ took }) => took },
  { title: 'TASK', rank: 4, least: 8, cell: ({ task }) => task },
  { title: 'ALSO AFTER', rank: 5, least: 8, cell: ({ after }) => after },
  { title: 'ERROR', rank: 3, least: 16, cell: ({ error }) => error, style: () => 'bad' },
];
