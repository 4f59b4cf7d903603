import type { DailyStats, QueueInfo } from '../../inspector/views.js';
import { errorRate } from '../output/words.js';
import { formatBytes } from '../../words/bytes.js';
import type { StateRow } from './columns.js';
import { formatCount, formatSpan } from './format.js';
import { type QueueView, STATES } from './model.js';
import { type Line, lineOf, type Segment, type Style } from './styled-line.js';
import { layOut, type GridColumn } from './grid.js';

/** The rows of a queue's view. */
export const statesOf = ({ info }: QueueView): readonly StateRow[] =>
  STATES.map((state) => ({
    state,
    count: info?.[state],
    note: state === 'aggregating' && info && info.groups > 0 ? countGroups(info.groups) : '',
    share: info && info.size > 0 ? info[state] / info.size : 0,
  }));

const countGroups = (count: number): string => (count === 1 ? 'in 1 group' : `in ${formatCount(count)} groups`);

const DAY_COLUMNS: readonly GridColumn<DailyStats>[] = [
  { title: 'DAY (UTC)', rank: 0, cell: ({ date }) => date },
  { title: 'PROCESSED', rank: 1, right: true, cell: ({ processed }) => formatCount(processed) },
  { title: 'FAILED', rank: 2, right: true, cell: ({ failed }) => formatCount(failed) },
  { title: 'ERRORS', rank: 3, right: true, cell: ({ processed, failed }) => errorRate(processed, failed) },
];

/** The figures of a queue besides its states, and its last days. */
export function aboutQueue(info: QueueInfo, days: readonly DailyStats[]): Line[] {
  const { head, rows } = layOut(DAY_COLUMNS, days, Infinity);
  const about: Segment[][] = [
    named('status', info.paused ? 'paused' : 'running', info.paused ? 'warning' : 'good'),
    named('size', formatCount(info.size)),
    named('latency', formatSpan(info.latency)),
    named('memory', `about ${formatBytes(info.memoryUsage)}`),
    named('all time', `${formatCount(info.processedTotal)} processed, ${formatCount(info.failedTotal)} failed`),
  ];
  const indented = [head, ...rows].map((segments): Line => ({ segments: [{ text: '  ' }, ...segments] }));
  return [lineOf(''), ...about.map((segments) => ({ segments })), lineOf(''), ...(days.length > 0 ? indented : [])];
}

const named = (title: string, text: string, style?: Style): Segment[] => [
  { text: `  ${title.padEnd(12)}`, style: 'dim' },
  { text, style },
];
