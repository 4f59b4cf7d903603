import { describe, expect, it } from 'vitest';
import type { Moment } from '../../../lib/dashboard/web/live/live.js';
import { rates, recent, sums } from '../../../lib/dashboard/web/live/series.js';
import { meanRates, sumDays } from '../../../lib/dashboard/web/pages/sum-days.js';
import {
  between,
  bytes,
  compact,
  duration,
  instant,
  percent,
  rate,
  relative,
} from '../../../lib/dashboard/web/text/format.js';
import { linePath, niceTime, niceTop, runs, stacked } from '../../../lib/dashboard/web/ui/chart-geometry.js';
import { thin } from '../../../lib/dashboard/web/ui/series.js';
import { batchResult, allResult } from '../../../lib/dashboard/web/list/bulk-actions.js';

const sample = (processed_total: number, pending = 0) => ({
  active: 0,
  pending,
  aggregating: 0,
  waiting: 0,
  held: 0,
  scheduled: 0,
  retry: 0,
  archived: 0,
  completed: 0,
  processed_total,
  failed_total: 0,
  latency_ms: 0,
});

describe('numbers of the console', () => {
  it('are short', () => {
    expect([0, 999, 9999, 12_345, 712_345, 1_234_567].map(compact)).toEqual([
      '0',
      '999',
      '9,999',
      '12.3k',
      '712k',
      '1.23M',
    ]);
    expect([0, 0.04, 0.44, 99.94, 1234].map(rate)).toEqual(['0', '<0.1', '0.4', '99.9', '1,234']);
    expect([0, 999, 1000, 1500, 999_400, 999_600, 1_048_567, 5e9, 12_345_678, 9e18].map(bytes)).toEqual([
      '0 B',
      '999 B',
      '1.00 kB',
      '1.50 kB',
      '999 kB',
      '1.00 MB',
      '1.05 MB',
      '5.00 GB',
      '12.3 MB',
      '9000 PB',
    ]);
    expect([percent(0, 0), percent(1, 5000), percent(1, 3), percent(1, 40)]).toEqual(['0%', '<0.1%', '33%', '2.5%']);
  });

  it('say no more of a time between than its whole seconds tell', () => {
    expect([1_900, 2_000, 14_000, 3_602_000].map((to) => between(1_900, Math.floor(to / 1000) * 1000))).toEqual([
      'up to 1 s',
      '1 s',
      '13 s',
      '1h',
    ]);
    expect(between(5_000, 3_000)).toBe('up to 1 s'); // clocks differ
  });

  it('show durations by their two largest units', () => {
    expect([0, 0.34, 4.29, 59.9, 200, 3600, 90_000].map(duration)).toEqual([
      '0 s',
      '340 ms',
      '4.2 s',
      '59 s',
      '3m 20s',
      '1h',
      '1d 1h',
    ]);
    expect(relative(1000, 61_000)).toBe('1m ago');
    expect(relative(5500, 1000)).toBe('in 4 s');
  });

  it('knows how asynq writes "no time"', () => {
    expect(['', '-', '0001-01-01T00:00:00Z', null, 'nonsense'].map(instant)).toEqual(Array(5).fill(undefined));
    expect(instant('1970-01-01T00:00:01Z')).toBe(1000);
  });
});

describe('series of the charts', () => {
  it('are differences per second, without a peak when a queue appears, disappears or restarts', () => {
    const moments: Moment[] = [
      { t: 0, queues: { a: sample(100), b: sample(10) } },
      { t: 2000, queues: { a: sample(120), b: sample(10) } },
      { t: 4000, queues: { a: sample(0), c: sample(900) } },
      { t: 6000, queues: { a: sample(2), c: sample(910) } },
    ];
    const pick = ({ processed_total }: { processed_total: number }) => processed_total;
    expect(rates(moments, pick)).toEqual([undefined, 10, 0, 6]);
    expect(rates(moments, pick, 'c')).toEqual([undefined, 0, 0, 5]);
    expect(sums(moments, pick, 'b')).toEqual([10, 10, undefined, undefined]);
    expect(recent([undefined, 4, undefined, 8])).toBe(6);
    expect([recent([]), recent([undefined])]).toEqual([undefined, undefined]);
  });

  it('are reduced to means, which keep gaps', () => {
    const times = Array.from({ length: 480 }, (_, index) => index * 1000);
    const values = times.map((_, index) => (index < 8 ? undefined : index % 2));
    const { times: fewer, series } = thin(times, [{ name: 'n', color: 't', values }]);
    expect(fewer).toHaveLength(120);
    expect(series[0]?.values.slice(0, 4)).toEqual([undefined, undefined, 0.5, 0.5]);
  });

  it.each(['constructor', '__proto__'])(
    'are none of a queue that is not there yet, whatever it is called: %s',
    (name) => {
      const at = (t: number, queues: [string, number][]): Moment => ({
        t,
        queues: Object.fromEntries(queues.map(([queue, total]) => [queue, sample(total)])),
      });
      const moments = [at(0, [['a', 0]]), at(1000, [['a', 3], [name, 9]]), at(2000, [['a', 3], [name, 11]])]; // oxfmt-ignore
      const pick = (one: { processed_total: number }): number => one.processed_total;
      expect(rates(moments, pick)).toEqual([undefined, 3, 2]);
      expect(sums(moments, pick, name)).toEqual([undefined, 9, 11]);
    },
  );

  it('of days start with the first activity, but show a minimum of days', () => {
    const days = Array.from({ length: 40 }, (_, index) => ({
      queue: 'q',
      failed: 0,
      processed: index === 25 ? 3 : 0,
      date: new Date(Date.UTC(2026, 0, index + 1)).toISOString().slice(0, 10),
    }));
    expect(sumDays({ a: days, b: days }).map(({ processed }) => processed)).toEqual([6, ...Array(14).fill(0)]);
    expect(sumDays({ a: days.slice(30) })).toHaveLength(10);
  });

  it('end their axes at round numbers', () => {
    expect([0, 3, 10, 11, 240, 2600].map(niceTop)).toEqual([1, 5, 10, 20, 250, 5000]);
    expect([90_000, 700_000, 100 * 3600_000].map(niceTime)).toEqual([120_000, 900_000, 5 * 86_400_000]);
  });

  it('are drawn with gaps, and stacked', () => {
    const scale = { from: 0, to: 3, top: 10 };
    expect(runs([0, 1, 2, 3], [1, undefined, 2, 3])).toEqual([[[0, 1]], [[2, 2], [3, 3]]]); // oxfmt-ignore
    expect(linePath([[0, 0], [3, 10]], scale)).toBe('M0.0 120.0L600.0 0.0'); // oxfmt-ignore
    expect(stacked([[1, undefined], [2, 3]])).toEqual([[1, undefined], [3, 3]]); // oxfmt-ignore
  });
});

describe('results of batches', () => {
  it('report a partial success', () => {
    expect(batchResult('archive', { archived_ids: ['a', 'b'], error_ids: [] })).toEqual(['2 tasks archived.', false]);
    const [text, failed] = batchResult('delete', { deleted_ids: ['a'], failed_ids: ['b', 'c', 'd', 'e'] });
    expect(failed).toBe(true);
    expect(text).toContain('1 task deleted, 4 not: b, c, d, …');
    expect(batchResult('run', { pending_ids: null as never, error_ids: [] })).toEqual(['0 tasks made pending.', false]);
  });

  it('report a number if the server does', () => {
    expect(allResult('run', { scheduled: 12 })).toBe('12 tasks made pending.');
    expect(allResult('cancel', undefined)).toBe('All tasks asked to stop.');
  });
});

describe('the mean of the stored counters', () => {
  const now = Date.parse('2026-11-28T12:00:00Z');
  const day = (date: string, processed: number, failed = 0) => ({ queue: 'a', date, processed, failed });

  it('is of today and yesterday, by their seconds', () => {
    const days = [day('2026-11-26', 9_999), day('2026-11-27', 86_400, 43_200), day('2026-11-28', 43_200)];
    expect(meanRates(days, now)).toEqual({ processed: 1, failed: 43_200 / 129_600 });
  });

  it('is not known when nothing was done', () => {
    expect(meanRates([day('2026-11-26', 5)], now)).toBeUndefined();
  });
});
