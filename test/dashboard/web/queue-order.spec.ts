import { describe, expect, it } from 'vitest';
import type { Queue, QueueRow, QueueSample } from '../../../lib/dashboard/web/api/types.js';
import type { Moment } from '../../../lib/dashboard/web/live/live.js';
import { troublesOf } from '../../../lib/dashboard/web/pages/queue-health.js';
import {
  BY_HEALTH,
  keepOrder,
  parseSorting,
  pressed,
  printSorting,
  sortQueues,
} from '../../../lib/dashboard/web/pages/queue-order.js';

const STATES = {
  active: 0,
  pending: 0,
  aggregating: 0,
  waiting: 0,
  held: 0,
  scheduled: 0,
  retry: 0,
  archived: 0,
  completed: 0,
};

const queue = (name: string, numbers: Partial<Queue> = {}): Queue => ({
  queue: name,
  ...STATES,
  memory_usage_bytes: 0,
  size: 0,
  groups: 0,
  oldest_pending_ms: 0,
  oldest_held_ms: 0,
  processed: 0,
  succeeded: 0,
  failed: 0,
  processed_total: 0,
  failed_total: 0,
  paused: false,
  ...numbers,
});

const moment = (t: number, name: string, numbers: Partial<QueueSample> = {}): Moment => ({
  t,
  queues: { [name]: { ...STATES, processed_total: 0, failed_total: 0, latency_ms: 0, ...numbers } },
});

const names = (rows: readonly QueueRow[]): string[] => rows.map((row) => row.queue);

describe('the trouble of a queue', () => {
  const start = [moment(0, 'mail', { processed_total: 100, failed_total: 10, archived: 3 })];
  const well = { processed_total: 100, failed_total: 10, archived: 3 };

  it.each<[string, Partial<Queue>, string[]]>([
    ['none', well, []],
    ['paused', { ...well, paused: true }, ['paused']],
    ['late', { ...well, pending: 1, oldest_pending_ms: 60_001 }, ['late']],
    ['not late at a minute', { ...well, pending: 1, oldest_pending_ms: 60_000 }, []],
    ['a tenth failed', { ...well, processed_total: 150, failed_total: 15 }, ['failing']],
    ['fewer failed', { ...well, processed_total: 151, failed_total: 15 }, []],
    ['four failures are no trend', { ...well, processed_total: 104, failed_total: 14 }, []],
    ['the archive grows', { ...well, archived: 4 }, ['archiving']],
    ['the archive shrinks', { ...well, archived: 2 }, []],
  ])('%s', (_, numbers, found) => {
    expect(troublesOf(queue('mail', numbers), start).map(({ name }) => name)).toEqual(found);
  });

  it('needs a sample to say that something grows', () => {
    const numbers = { processed_total: 50, failed_total: 50, archived: 50 };
    expect(troublesOf(queue('mail', numbers), [moment(0, 'other')])).toEqual([]);
  });

  it('is that it cannot be read', () => {
    expect(troublesOf({ queue: 'mail', error: 'WRONGTYPE' }, [])).toEqual([{ name: 'unreadable', text: 'WRONGTYPE' }]);
  });
});

describe('the order of queues', () => {
  const rows: QueueRow[] = [
    queue('b10', { failed: 1, processed: 10 }),
    queue('b9', { failed: 1, processed: 2, paused: true }),
    { queue: 'broken', error: 'WRONGTYPE' },
    queue('c', { pending: 7 }),
    queue('a', { pending: 7, oldest_pending_ms: 5 }),
  ];
  const known = {
    moments: [],
    favourites: new Set(['c', 'b9']),
    troubles: new Map(rows.map((row) => [row.queue, troublesOf(row, [])])),
  };
  const by = (text: string): string[] => names(sortQueues(rows, parseSorting(text), known));

  it('is unhealthy ones, favourites, others', () => {
    expect(by('')).toEqual(['b9', 'broken', 'c', 'a', 'b10']);
  });

  it('is by a column, equal ones by name, unreadable ones last', () => {
    expect(by('queue')).toEqual(['a', 'b9', 'b10', 'c', 'broken']);
    expect(by('-pending')).toEqual(['a', 'c', 'b9', 'b10', 'broken']);
    expect(by('pending')).toEqual(['b9', 'b10', 'a', 'c', 'broken']);
    expect(by('-failed')).toEqual(['b9', 'b10', 'a', 'c', 'broken']);
    expect(by('-oldest')).toEqual(['a', 'b9', 'b10', 'c', 'broken']);
  });

  it('is by the present rate', () => {
    const moments = [0, 1000, 2000].map((t) => moment(t, 'c', { processed_total: t }));
    expect(names(sortQueues(rows, parseSorting('-tasks/s'), { ...known, moments }))[0]).toBe('c');
  });

  it('turns when a column is pressed again', () => {
    const once = pressed('failed', BY_HEALTH);
    expect(printSorting(once)).toBe('-failed');
    expect(printSorting(pressed('failed', once))).toBe('failed');
    expect(printSorting(pressed('queue', once))).toBe('queue');
    expect(printSorting(parseSorting('-nonsense'))).toBeUndefined();
  });

  it('can be kept, with new queues at the end', () => {
    expect(names(keepOrder(rows, ['c', 'gone', 'a', 'b9']))).toEqual(['c', 'a', 'b9', 'b10', 'broken']);
  });
});
