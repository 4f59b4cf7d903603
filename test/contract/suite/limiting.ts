import { describe, expect, it } from 'vitest';
import type { LeasedTask, QueueLimits, Settlement } from '../../../lib/broker/broker.js';
import { ClosedError } from '../../../lib/errors.js';
import type { Driver } from '../driver.js';

const SLICE = 1_000;
const WINDOW = 16 * SLICE;

/** Takes up to `take` tasks and settles `done`; how many it got, and how long a limit holds the others back. */
async function take(driver: Driver, limits: QueueLimits, settle: readonly LeasedTask[] = [], wanted = 10) {
  const done = settle.map(({ lease }): Settlement => ({ kind: 'done', lease, uniqueKey: '' }));
  return driver.broker.exchange('default', { settle: done, take: wanted, limits });
}

export function exerciseLimiting(current: () => Driver): void {
  describe('limits of a queue', () => {
    it('let no more tasks run than they say, those of others included', async () => {
      const driver = current();
      for (let index = 0; index < 9; index++) await driver.add();
      const limits = { active: 3, rate: 0, window: 1 };
      const { tasks: others } = await driver.broker.exchange('default', { settle: [], take: 1 });
      const first = await take(driver, limits);
      expect(first).toMatchObject({ tasks: { length: 2 }, backlog: 6, limitedFor: 100 });
      expect(await take(driver, limits)).toMatchObject({ tasks: [], backlog: 6, limitedFor: 100 });
      const next = await take(driver, limits, [...first.tasks, ...others]);
      expect(next).toMatchObject({ tasks: { length: 3 }, backlog: 3, limitedFor: 100 });
      expect(await take(driver, limits, next.tasks)).toMatchObject({ tasks: { length: 3 }, backlog: 0, limitedFor: 0 });
    });

    it('are no limit where they are not reached', async () => {
      const driver = current();
      await driver.add();
      const reply = await take(driver, { active: 3, rate: 3, window: WINDOW });
      expect(reply).toMatchObject({ tasks: { length: 1 }, limitedFor: 0 });
      expect(await take(driver, { active: 3, rate: 3, window: WINDOW }, reply.tasks)).toMatchObject({ limitedFor: 0 });
    });

    it('let no more tasks start in a window than they say', async () => {
      const driver = current();
      for (let index = 0; index < 12; index++) await driver.add();
      driver.clock.moveTo(Math.ceil(driver.clock.now() / WINDOW) * WINDOW); // where a slice begins
      const limits = { active: 0, rate: 5, window: WINDOW };
      expect(await take(driver, limits, [], 2)).toMatchObject({ tasks: { length: 2 }, limitedFor: 0 });
      driver.clock.advance(SLICE + 1);
      expect(await take(driver, limits)).toMatchObject({
        tasks: { length: 3 },
        backlog: 7,
        limitedFor: 16 * SLICE - 1,
      });
      driver.clock.advance(16 * SLICE - 2);
      expect(await take(driver, limits)).toMatchObject({ tasks: [], limitedFor: 1 });
      driver.clock.advance(1); // the first two no longer count, and with them went their time
      expect(await take(driver, limits)).toMatchObject({ tasks: { length: 2 }, backlog: 5, limitedFor: SLICE });
      driver.clock.advance(SLICE);
      expect(await take(driver, limits)).toMatchObject({ tasks: { length: 3 }, backlog: 2, limitedFor: 16 * SLICE });
      driver.clock.advance(WINDOW * 3);
      expect(await take(driver, limits)).toMatchObject({ tasks: { length: 2 }, backlog: 0, limitedFor: 0 });
    });

    it('settle all the same when nothing may start', async () => {
      const driver = current();
      for (let index = 0; index < 3; index++) await driver.add();
      const limits = { active: 0, rate: 2, window: WINDOW };
      const { tasks } = await take(driver, limits);
      const { settled, tasks: more } = await take(driver, limits, tasks);
      expect([settled, more]).toEqual([['settled', 'settled'], []]);
      expect((await driver.queue()).processed).toBe(2);
    });

    it('say nothing of a queue that is paused', async () => {
      const driver = current();
      for (let index = 0; index < 3; index++) await driver.add();
      await driver.broker.pauseQueue('default');
      const reply = await take(driver, { active: 1, rate: 1, window: WINDOW });
      expect(reply).toMatchObject({ tasks: [], backlog: 0, limitedFor: 0 });
    });

    it('that are both reached wait for the one that is in the way', async () => {
      const driver = current();
      for (let index = 0; index < 4; index++) await driver.add();
      await take(driver, { active: 2, rate: 2, window: WINDOW });
      // Already more than the rate have started; but with no slot free it is the running tasks that are in the way.
      expect(await take(driver, { active: 2, rate: 1, window: WINDOW })).toMatchObject({ tasks: [], limitedFor: 100 });
    });

    it('are counted for each window by itself', async () => {
      const driver = current();
      for (let index = 0; index < 4; index++) await driver.add();
      expect(await take(driver, { active: 0, rate: 1, window: WINDOW })).toMatchObject({ tasks: { length: 1 } });
      expect(await take(driver, { active: 0, rate: 1, window: WINDOW })).toMatchObject({ tasks: [] });
      expect(await take(driver, { active: 0, rate: 1, window: WINDOW + 16 })).toMatchObject({ tasks: { length: 1 } });
    });
  });

  describe('semaphore tokens', () => {
    it('are as many as there are, and come back when they are released', async () => {
      const { broker, now } = current();
      const acquire = (id: string): Promise<boolean> => broker.acquireToken('scope', id, 2, now + 60);
      expect([await acquire('a'), await acquire('b'), await acquire('c')]).toEqual([true, true, false]);
      expect(await broker.releaseToken('scope', 'b')).toBe(true);
      expect(await broker.releaseToken('scope', 'b')).toBe(false);
      expect([await acquire('c'), await acquire('d')]).toEqual([true, false]);
    });

    it('are kept by who has one and asks again, with the new deadline', async () => {
      const { broker, clock, now } = current();
      expect(await broker.acquireToken('scope', 'a', 1, now + 5)).toBe(true);
      expect(await broker.acquireToken('scope', 'a', 1, now + 9)).toBe(true);
      clock.advance(9_000);
      expect(await broker.acquireToken('scope', 'b', 1, now + 60)).toBe(false);
      clock.advance(1_000);
      expect(await broker.acquireToken('scope', 'b', 1, now + 60)).toBe(true);
    });

    it('come back when the deadline has passed, not at it', async () => {
      const { broker, clock, now } = current();
      await broker.acquireToken('scope', 'crashed', 1, now + 5);
      clock.advance(5_999);
      expect(await broker.acquireToken('scope', 'a', 1, now + 60)).toBe(false);
      clock.advance(1);
      expect(await broker.acquireToken('scope', 'a', 1, now + 60)).toBe(true);
      expect(await broker.releaseToken('scope', 'crashed')).toBe(false);
    });

    it('belong to their scope, whatever its name', async () => {
      const { broker, now } = current();
      const scopes = ['scope', 'Scope', 'ü {b}:c', ' '];
      for (const scope of scopes) expect(await broker.acquireToken(scope, 'a', 1, now + 60)).toBe(true);
      for (const scope of scopes) expect(await broker.acquireToken(scope, 'b', 1, now + 60)).toBe(false);
      expect(await broker.releaseToken('other', 'a')).toBe(false);
    });

    it('count against the number of the caller', async () => {
      const { broker, now } = current();
      for (const id of ['a', 'b', 'c']) await broker.acquireToken('scope', id, 3, now + 60);
      expect(await broker.acquireToken('scope', 'd', 2, now + 60)).toBe(false);
      expect(await broker.acquireToken('scope', 'd', 4, now + 60)).toBe(true);
    });

    it('are never more than there are, however many ask at once', async () => {
      const { broker, now } = current();
      const ids = Array.from({ length: 50 }, (_, index) => `t${index}`);
      const got = await Promise.all(ids.map((id) => broker.acquireToken('scope', id, 7, now + 60)));
      expect(got.filter(Boolean)).toHaveLength(7);
    });

    it('are not to be had from a closed broker', async () => {
      const { broker, now } = current();
      await broker.close();
      await expect(broker.acquireToken('scope', 'a', 1, now)).rejects.toThrow(ClosedError);
      await expect(broker.releaseToken('scope', 'a')).rejects.toThrow(ClosedError);
    });
  });
}
