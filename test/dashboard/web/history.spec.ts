import { describe, expect, it } from 'vitest';
import { figureOf, readHistory, refusalOf } from '../../../lib/dashboard/web/history/responses.js';
import { rangeOf } from '../../../lib/dashboard/web/history/ranges.js';

type Values = [number, string][];
const matrix = (...result: [queue: string, values: Values][]) => ({
  status: 'success',
  data: { result: result.map(([queue, values]) => ({ metric: { queue, instance: 'i' }, values })) },
});

describe('what Prometheus answers', () => {
  it('is a line for each queue, with gaps where nothing was measured, or is no number', () => {
    const answer = matrix(
      ['b', [[10, '1'], [20, '2'], [50, '5']]], // prettier-ignore
      ['a', [[20, 'NaN'], [50, '+Inf']]], // prettier-ignore
    );
    expect(readHistory(answer)).toEqual({
      times: [10_000, 20_000, 30_000, 40_000, 50_000],
      lines: [
        { queue: 'a', values: Array(5).fill(undefined) },
        { queue: 'b', values: [1, 2, undefined, undefined, 5] },
      ],
    });
  });

  it('counts once what several processes have measured: the highest', () => {
    const { lines } = readHistory(matrix(['a', [[10, '3'], [20, 'NaN']]], ['a', [[10, '2'], [20, '4']]])); // prettier-ignore
    expect(lines).toEqual([{ queue: 'a', values: [3, 4] }]);
  });

  it('may be nothing, one value, or without a queue', () => {
    expect(readHistory(matrix())).toEqual({ times: [], lines: [] });
    expect(readHistory({ status: 'success' })).toEqual({ times: [], lines: [] });
    expect(readHistory(matrix(['a', [[10, '3']]]))).toEqual({ times: [10_000], lines: [{ queue: 'a', values: [3] }] });
    expect(readHistory({ status: 'success', data: { result: [{ values: [[1, '1']] }] } }).lines[0]?.queue).toBe('');
  });

  it('is summed, or its highest, where anything is known', () => {
    const lines = [{ queue: 'a', values: [1, 2, undefined] }, { queue: 'b', values: [5] }, { queue: 'c', values: [undefined] }]; // prettier-ignore
    expect([figureOf(lines, 'sum'), figureOf(lines, 'highest')]).toEqual([7, 5]);
    expect(figureOf(lines.slice(2), 'sum')).toBeUndefined();
  });

  it.each([
    [{ status: 'success' }, undefined],
    [{ status: 'error', errorType: 'timeout', error: 'too slow' }, 'too slow'],
    [{ status: 'error', errorType: 'timeout' }, 'timeout'],
    [{ status: 'odd' }, 'it answered with the status “odd”'],
  ])('%j is refused for %s', (answer, reason) => expect(refusalOf(answer)).toBe(reason));

  it('is of the last day, unless an address says otherwise', () => {
    expect([undefined, 'nonsense', '7 days'].map((given) => rangeOf(given).duration)).toEqual([
      86_400, 86_400, 604_800,
    ]);
  });
});
