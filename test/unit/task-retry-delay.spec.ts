import { describe, expect, it } from 'vitest';
import { defaultRetryDelay } from '../../lib/task/retry-delay.js';

describe('defaultRetryDelay', () => {
  // The ranges of wire-protocol 5.5, in seconds.
  it.each([
    [0, 15, 44],
    [1, 16, 74],
    [2, 31, 118],
    [3, 96, 212],
    [5, 640, 814],
    [10, 10_015, 10_334],
    [24, 331_791, 332_516],
  ])('lies where asynq has it after %i failures', (retried, least, most) => {
    expect(defaultRetryDelay(retried, () => 0)).toBe(least * 1000);
    expect(defaultRetryDelay(retried, () => 1 - Number.EPSILON)).toBe(most * 1000);
  });

  it('is spread at random', () => {
    const delays = Array.from({ length: 200 }, () => defaultRetryDelay(0));
    expect(new Set(delays).size).toBeGreaterThan(10);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(15_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(44_000);
  });

  it('stays within what Go can hold', () => {
    expect(defaultRetryDelay(2 ** 31 - 1)).toBe(9_223_372_036_000);
  });
});
