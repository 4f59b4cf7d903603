import { describe, expect, it } from 'vitest';
import { figureOf, readHistory, refusalOf } from '../../../lib/dashboard/web/history/responses.js';
import { rangeOf } from '../../../lib/dashboard/web/history/ranges.js';

type Values = [number, string][];
const matrix = (...result: [queue: string, values: Values][]) => ({
  status: 'success',
  data: { result: result.map(([queue, values]) => ({ metric: { queue, instance: 'i' }, values })) },
});

describe('responses of Prometheus', () => {
  it('make a line per queue, with gaps for missing values', () => {
    const reply = matrix(
      ['b', [[10, '1'], [20, '2'], [50, '5']]], // oxfmt-ignore
      ['a', [[20, 'NaN'], [50, '+Inf']]], // oxfmt-ignore
    );
    expect(readHistory(reply)).toEqual({
      times: [10_000, 20_000, 30_000, 40_000, 50_000],
      lines: [
        { queue: 'a', values: Array(5).fill(undefined) },
        { queue: 'b', values: [1, 2, undefined, undefined, 5] },
      ],
    });
  });

  it("count the highest of several processes' values", () => {
    const { lines } = readHistory(matrix(['a', [[10, '3'], [20, 'NaN']]], ['a', [[10, '2'], [20, '4']]])); // oxfmt-ignore
    expect(lines).toEqual([{ queue: 'a', values: [3, 4] }]);
  });

  it('may be empty, have one value, or no queue', () => {
    expect(readHistory(matrix())).toEqual({ times: [], lines: [] });
    expect(readHistory({ status: 'success' })).toEqual({ times: [], lines: [] });
    expect(readHistory(matrix(['a', [[10, '3']]]))).toEqual({ times: [10_000], lines: [{ queue: 'a', values: [3] }] });
    expect(readHistory({ status: 'success', data: { result: [{ values: [[1, '1']] }] } }).lines[0]?.queue).toBe('');
  });

  it('are summed, or give the highest value, if any is known', () => {
    const lines = [{ queue: 'a', values: [1, 2, undefined] }, { queue: 'b', values: [5] }, { queue: 'c', values: [undefined] }]; // oxfmt-ignore
    expect([figureOf(lines, 'sum'), figureOf(lines, 'highest')]).toEqual([7, 5]);
    expect(figureOf(lines.slice(2), 'sum')).toBeUndefined();
  });

  it.each([
    [{ status: 'success' }, undefined],
    [{ status: 'error', errorType: 'timeout', error: 'too slow' }, 'too slow'],
    [{ status: 'error', errorType: 'timeout' }, 'timeout'],
    [{ status: 'odd' }, 'it responded with the status “odd”'],
  ])('%j is refused for %s', (reply, reason) => expect(refusalOf(reply)).toBe(reason));

  it('cover one day unless the address has a range', () => {
    expect([undefined, 'nonsense', '7 days'].map((given) => rangeOf(given).duration)).toEqual([
      86_400, 86_400, 604_800,
    ]);
  });
});
