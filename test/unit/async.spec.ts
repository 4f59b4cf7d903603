import { describe, expect, it } from 'vitest';
import { backoff, finishesWithin, mapConcurrent, settleAll, withTimeout } from '../../lib/async.js';
import { ManualClock } from '../../lib/clock.js';

/** Lets promise callbacks run; no time passes. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A promise together with the functions that settle it. */
function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

describe('withTimeout', () => {
  it('returns the result of work that ends in time, and leaves no timer', async () => {
    const clock = new ManualClock(0);
    expect(await withTimeout(Promise.resolve('done'), 100, clock)).toBe('done');
    expect(clock.nextDue()).toBeUndefined();
  });

  it('throws what the work throws in time, and leaves no timer', async () => {
    const clock = new ManualClock(0);
    await expect(withTimeout(Promise.reject(new Error('away')), 100, clock)).rejects.toThrow('away');
    expect(clock.nextDue()).toBeUndefined();
  });

  it('returns undefined, or what onTimeout returns, when the work takes longer', async () => {
    const clock = new ManualClock(0);
    const never = new Promise<string>(() => {});
    const results = Promise.all([withTimeout(never, 100, clock), withTimeout(never, 100, clock, () => [])]);
    clock.advance(100);
    expect(await results).toEqual([undefined, []]);
  });

  it('throws what onTimeout throws', async () => {
    const clock = new ManualClock(0);
    const result = withTimeout(new Promise(() => {}), 100, clock, () => {
      throw new Error('too late');
    });
    clock.advance(100);
    await expect(result).rejects.toThrow('too late');
  });

  it('ignores work that fails after the timeout', async () => {
    const clock = new ManualClock(0);
    const work = deferred<string>();
    const result = withTimeout(work.promise, 100, clock);
    clock.advance(100);
    work.reject(new Error('after the timeout'));
    expect(await result).toBeUndefined();
    await settle(); // an unhandled rejection would fail the test
  });
});

describe('finishesWithin', () => {
  it('returns whether the work resolves in time', async () => {
    const clock = new ManualClock(0);
    expect(await finishesWithin(Promise.resolve(), 100, clock)).toBe(true);
    const late = finishesWithin(new Promise(() => {}), 100, clock);
    clock.advance(100);
    expect(await late).toBe(false);
  });
});

describe('backoff', () => {
  it('doubles from 100 ms with jitter in the upper half, up to the longest', () => {
    expect(backoff(1, { random: () => 0 })).toBe(50);
    expect(backoff(1, { random: () => 1 })).toBe(100);
    expect(backoff(3, { random: () => 1 })).toBe(400);
    expect(backoff(1_000, { random: () => 1 })).toBe(5_000);
  });

  it('draws from the shortest delay on, where one is given', () => {
    expect(backoff(5, { shortest: 20, random: () => 0 })).toBe(20);
    expect(backoff(5, { shortest: 20, random: () => 1 })).toBe(1_600);
  });
});

describe('settleAll', () => {
  it('returns all results in order', async () => {
    expect(await settleAll([Promise.resolve(1), Promise.resolve(2)])).toEqual([1, 2]);
  });

  it('waits for the others when one fails, and throws the first error', async () => {
    const other = deferred<void>();
    let over = false;
    const all = settleAll([Promise.reject(new Error('first')), other.promise, Promise.reject(new Error('second'))]);
    void all.catch(() => (over = true));
    await settle();
    expect(over).toBe(false);
    other.resolve();
    await expect(all).rejects.toThrow('first');
  });
});

describe('mapConcurrent', () => {
  it('works on a bounded number of items at a time, and returns the results in the order of the items', async () => {
    const items = [30, 10, 20, 0];
    const work = items.map(() => deferred<void>());
    const begun: number[] = [];
    const results = mapConcurrent(items, 2, async (item) => {
      begun.push(item);
      await work[items.indexOf(item)]!.promise;
      return item / 10;
    });
    expect(begun).toEqual([30, 10]);
    work[1]!.resolve();
    await settle();
    expect(begun).toEqual([30, 10, 20]);
    for (const { resolve } of work) resolve();
    expect(await results).toEqual([3, 1, 2, 0]);
  });

  it('throws the first error', async () => {
    await expect(mapConcurrent([1, 2], 2, () => Promise.reject(new Error('away')))).rejects.toThrow('away');
    expect(await mapConcurrent([], 4, () => Promise.reject(new Error('not called')))).toEqual([]);
  });
});
