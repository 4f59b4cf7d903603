import { describe, expect } from 'vitest';
import type { CostCorrection } from '../../../lib/broker/limiting.js';
import { ClosedError } from '../../../lib/errors.js';
import type { Driver, DriverTest } from '../driver.js';

const PART = 1_000;
const WINDOW = 40 * PART;

/** A scope that may cost 100 per window, and the time at the begin of a part. */
function scopeOf(driver: Driver) {
  const { broker, clock } = driver;
  clock.moveTo(Math.ceil(clock.now() / WINDOW) * WINDOW);
  return {
    take: (...costs: number[]) => broker.limiting.takeCosts('scope', { max: 100, window: WINDOW }, costs),
    correct: (...corrections: CostCorrection[]) => broker.limiting.correctCosts('scope', WINDOW, corrections),
    countedAt: clock.now(),
    pass: (milliseconds: number) => clock.advance(milliseconds),
  };
}

export function exerciseCosts(it: DriverTest): void {
  describe('costs of a scope', () => {
    it('never exceed their limit in a window', async ({ driver }) => {
      const { take, pass, countedAt } = scopeOf(driver);
      expect(await take(40, 30)).toEqual({ granted: 2, retryIn: 0, countedAt, least: 0 });
      pass(PART);
      expect(await take(30)).toEqual({ granted: 1, retryIn: 0, countedAt: countedAt + PART, least: 0 });
      expect(await take(1)).toEqual({ granted: 0, retryIn: 39 * PART, countedAt: countedAt + PART, least: 1 });
      pass(39 * PART - 1);
      expect(await take(70)).toMatchObject({ granted: 0 });
      pass(1);
      expect(await take(70)).toMatchObject({ granted: 1, retryIn: 0 });
      expect(await take(1)).toMatchObject({ granted: 0 });
    });

    it('are granted in their order, and say when the first that does not fit has room', async ({ driver }) => {
      const { take, pass, countedAt } = scopeOf(driver);
      await take(30);
      pass(PART);
      await take(30);
      pass(PART);
      // The first two parts must leave the window before there is room for 90.
      expect(await take(10, 90, 5)).toEqual({
        granted: 1,
        retryIn: 39 * PART,
        countedAt: countedAt + 2 * PART,
        least: 90,
      });
      pass(40 * PART);
      expect(await take(90)).toMatchObject({ granted: 1 });
    });

    it('that are low do not take the room of one that waits', async ({ driver }) => {
      const { take, pass } = scopeOf(driver);
      await take(80);
      expect(await take(50)).toMatchObject({ granted: 0, least: 50 });
      expect(await take(20)).toMatchObject({ granted: 0, retryIn: 40 * PART, least: 50 });
      pass(40 * PART);
      expect(await take(20, 50)).toMatchObject({ granted: 0, retryIn: 100, least: 50 });
      expect(await take(50, 20)).toMatchObject({ granted: 2, least: 0 });
      expect(await take(20)).toMatchObject({ granted: 1 });
    });

    it('that are low wait two seconds at most for one that does not come back', async ({ driver }) => {
      const { take, pass } = scopeOf(driver);
      await take(80);
      await take(50);
      pass(40 * PART + 2_000);
      expect(await take(20)).toMatchObject({ granted: 0 });
      pass(1);
      expect(await take(20)).toMatchObject({ granted: 1 });
    });

    it('are corrected: what was not spent is room at once, what was spent beyond counts', async ({ driver }) => {
      const { take, correct, countedAt } = scopeOf(driver);
      await take(60, 40);
      await correct({ countedAt, by: -50 });
      expect(await take(50)).toMatchObject({ granted: 1 });
      await correct({ countedAt, by: -20 }, { countedAt, by: 30 });
      expect(await take(1)).toMatchObject({ granted: 0 });
    });

    it('above the limit after a correction hold others back until all of it has left the window', async ({
      driver,
    }) => {
      const { take, correct, pass, countedAt } = scopeOf(driver);
      await take(90);
      pass(PART);
      await correct({ countedAt, by: 100 });
      pass(39 * PART);
      expect(await take(10)).toMatchObject({ granted: 0, retryIn: PART }); // 90 have left, and 100 count
      pass(PART);
      expect(await take(10)).toMatchObject({ granted: 1 });
    });

    it('that have left the window are not given back to others', async ({ driver }) => {
      const { take, correct, pass, countedAt } = scopeOf(driver);
      await take(100);
      pass(40 * PART);
      await take(100);
      await correct({ countedAt, by: -100 });
      expect(await take(1)).toMatchObject({ granted: 0 });
    });

    it('keep what is noted for one that waits when they are corrected', async ({ driver }) => {
      const { take, correct, countedAt } = scopeOf(driver);
      await take(80);
      await take(50);
      await correct({ countedAt, by: 5 });
      expect(await take(10)).toMatchObject({ granted: 0, least: 50 });
    });

    it('count in their scope and window, whatever the name', async ({ driver }) => {
      const { broker } = driver;
      const limit = { max: 5, window: WINDOW };
      for (const scope of ['a', 'A', 'ü {b}:c'])
        expect(await broker.limiting.takeCosts(scope, limit, [5])).toMatchObject({ granted: 1 });
      expect(await broker.limiting.takeCosts('a', { max: 5, window: 2 * WINDOW }, [5])).toMatchObject({ granted: 1 });
      expect((await broker.limiting.takeStarts('a', limit, 1)).granted).toBe(0);
    });

    it('are refused by a closed broker', async ({ driver }) => {
      const { take, correct, countedAt } = scopeOf(driver);
      await driver.broker.close();
      await expect(take(1)).rejects.toThrow(ClosedError);
      await expect(correct({ countedAt, by: 1 })).rejects.toThrow(ClosedError);
    });
  });
}
