import { describe, expect } from 'vitest';
import type { Broker, LeasedTask, QueueLimits, Settlement } from '../../../lib/broker/broker.js';
import { ClosedError } from '../../../lib/errors.js';
import { request } from '../../support/messages.js';
import type { Driver, DriverTest } from '../driver.js';

const SLICE = 1_000;
const WINDOW = 40 * SLICE;

const acquire = async (broker: Broker, scope: string, id: string, max: number, deadline: number): Promise<boolean> =>
  (await broker.limiting.acquireTokens(scope, max, deadline, [id]))[0]!;

const release = async (broker: Broker, scope: string, id: string): Promise<boolean> =>
  (await broker.limiting.releaseTokens(scope, [id])) === 1;

/**
 * Takes up to `take` tasks and settles `done`; returns the taken tasks, and for how long a limit
 * delays the others.
 */
async function take(driver: Driver, limits: QueueLimits, settle: readonly LeasedTask[] = [], wanted = 10) {
  const done = settle.map(({ lease }): Settlement => ({ kind: 'done', lease, uniqueKey: '' }));
  return driver.broker.consumer.exchange('default', { settle: done, take: wanted, limits });
}

export function exerciseLimiting(it: DriverTest): void {
  describe('limits of a queue', () => {
    it('let no more tasks run than allowed, the tasks of other servers included', async ({ driver }) => {
      for (let index = 0; index < 9; index++) await driver.add();
      const limits = { active: 3, rate: 0, window: 1 };
      const { tasks: others } = await driver.broker.consumer.exchange('default', { settle: [], take: 1 });
      const first = await take(driver, limits);
      expect(first).toMatchObject({ tasks: { length: 2 }, backlog: 6, limitedFor: 100 });
      expect(await take(driver, limits)).toMatchObject({ tasks: [], backlog: 6, limitedFor: 100 });
      const next = await take(driver, limits, [...first.tasks, ...others]);
      expect(next).toMatchObject({ tasks: { length: 3 }, backlog: 3, limitedFor: 100 });
      expect(await take(driver, limits, next.tasks)).toMatchObject({ tasks: { length: 3 }, backlog: 0, limitedFor: 0 });
    });

    it('have no effect where they are not reached', async ({ driver }) => {
      await driver.add();
      const reply = await take(driver, { active: 3, rate: 3, window: WINDOW });
      expect(reply).toMatchObject({ tasks: { length: 1 }, limitedFor: 0 });
      expect(await take(driver, { active: 3, rate: 3, window: WINDOW }, reply.tasks)).toMatchObject({ limitedFor: 0 });
    });

    it('let no more tasks start in a window than allowed', async ({ driver }) => {
      for (let index = 0; index < 12; index++) await driver.add();
      driver.clock.moveTo(Math.ceil(driver.clock.now() / WINDOW) * WINDOW); // where a slice begins
      const limits = { active: 0, rate: 5, window: WINDOW };
      expect(await take(driver, limits, [], 2)).toMatchObject({ tasks: { length: 2 }, limitedFor: 0 });
      driver.clock.advance(SLICE + 1);
      expect(await take(driver, limits)).toMatchObject({
        tasks: { length: 3 },
        backlog: 7,
        limitedFor: 39 * SLICE - 1,
      });
      driver.clock.advance(39 * SLICE - 2);
      expect(await take(driver, limits)).toMatchObject({ tasks: [], limitedFor: 1 });
      driver.clock.advance(1); // the first two no longer count, and with them went their time
      expect(await take(driver, limits)).toMatchObject({ tasks: { length: 2 }, backlog: 5, limitedFor: SLICE + 1 });
      driver.clock.advance(SLICE + 1);
      expect(await take(driver, limits)).toMatchObject({
        tasks: { length: 3 },
        backlog: 2,
        limitedFor: 39 * SLICE - 1,
      });
      driver.clock.advance(WINDOW * 3);
      expect(await take(driver, limits)).toMatchObject({ tasks: { length: 2 }, backlog: 0, limitedFor: 0 });
    });

    it('do not prevent settlements when no task may start', async ({ driver }) => {
      for (let index = 0; index < 3; index++) await driver.add();
      const limits = { active: 0, rate: 2, window: WINDOW };
      const { tasks } = await take(driver, limits);
      const { settled, tasks: more } = await take(driver, limits, tasks);
      expect([settled, more]).toEqual([['settled', 'settled'], []]);
      expect((await driver.queue()).processed).toBe(2);
    });

    it('are not reported for a paused queue', async ({ driver }) => {
      for (let index = 0; index < 3; index++) await driver.add();
      await driver.broker.administration.pauseQueue('default');
      const reply = await take(driver, { active: 1, rate: 1, window: WINDOW });
      expect(reply).toMatchObject({ tasks: [], backlog: 0, limitedFor: 0 });
    });

    it('that are both reached: the limit of active tasks decides', async ({ driver }) => {
      for (let index = 0; index < 4; index++) await driver.add();
      await take(driver, { active: 2, rate: 2, window: WINDOW });
      // More tasks than the rate allows have started; but no slot is free, so the active tasks
      // decide.
      expect(await take(driver, { active: 2, rate: 1, window: WINDOW })).toMatchObject({ tasks: [], limitedFor: 100 });
    });

    it('are counted for each window separately', async ({ driver }) => {
      for (let index = 0; index < 4; index++) await driver.add();
      expect(await take(driver, { active: 0, rate: 1, window: WINDOW })).toMatchObject({ tasks: { length: 1 } });
      expect(await take(driver, { active: 0, rate: 1, window: WINDOW })).toMatchObject({ tasks: [] });
      expect(await take(driver, { active: 0, rate: 1, window: WINDOW + 16 })).toMatchObject({ tasks: { length: 1 } });
    });
  });

  describe('semaphore tokens', () => {
    it('are limited in number, and are free again when they are released', async ({ driver }) => {
      const { broker, now } = driver;
      const get = (id: string): Promise<boolean> => acquire(broker, 'scope', id, 2, now + 60);
      expect([await get('a'), await get('b'), await get('c')]).toEqual([true, true, false]);
      expect(await release(broker, 'scope', 'b')).toBe(true);
      expect(await release(broker, 'scope', 'b')).toBe(false);
      expect([await get('c'), await get('d')]).toEqual([true, false]);
    });

    it('stay with a holder that asks again, with the new deadline', async ({ driver }) => {
      const { broker, clock, now } = driver;
      expect(await acquire(broker, 'scope', 'a', 1, now + 5)).toBe(true);
      expect(await acquire(broker, 'scope', 'a', 1, now + 9)).toBe(true);
      clock.advance(9_000);
      expect(await acquire(broker, 'scope', 'b', 1, now + 60)).toBe(false);
      clock.advance(1_000);
      expect(await acquire(broker, 'scope', 'b', 1, now + 60)).toBe(true);
    });

    it('are free again after the deadline, not at it', async ({ driver }) => {
      const { broker, clock, now } = driver;
      await acquire(broker, 'scope', 'crashed', 1, now + 5);
      clock.advance(5_999);
      expect(await acquire(broker, 'scope', 'a', 1, now + 60)).toBe(false);
      clock.advance(1);
      expect(await acquire(broker, 'scope', 'a', 1, now + 60)).toBe(true);
      expect(await release(broker, 'scope', 'crashed')).toBe(false);
    });

    it('belong to their scope, whatever its name', async ({ driver }) => {
      const { broker, now } = driver;
      const scopes = ['scope', 'Scope', 'ü {b}:c', ' '];
      for (const scope of scopes) expect(await acquire(broker, scope, 'a', 1, now + 60)).toBe(true);
      for (const scope of scopes) expect(await acquire(broker, scope, 'b', 1, now + 60)).toBe(false);
      expect(await release(broker, 'other', 'a')).toBe(false);
    });

    it('are counted against the number that the caller names', async ({ driver }) => {
      const { broker, now } = driver;
      for (const id of ['a', 'b', 'c']) await acquire(broker, 'scope', id, 3, now + 60);
      expect(await acquire(broker, 'scope', 'd', 2, now + 60)).toBe(false);
      expect(await acquire(broker, 'scope', 'd', 4, now + 60)).toBe(true);
    });

    it('never exceed their number, however many tasks ask at once', async ({ driver }) => {
      const { broker, now } = driver;
      const ids = Array.from({ length: 50 }, (_, index) => `t${index}`);
      const got = await Promise.all(ids.map((id) => acquire(broker, 'scope', id, 7, now + 60)));
      expect(got.filter(Boolean)).toHaveLength(7);
    });

    it('are given to several tasks in one call, in order, until none is left', async ({ driver }) => {
      const { broker, now } = driver;
      await acquire(broker, 'scope', 'b', 3, now + 60);
      expect(await broker.limiting.acquireTokens('scope', 3, now + 60, ['a', 'b', 'c', 'd'])).toEqual([
        true,
        true,
        true,
        false,
      ]);
      expect(await broker.limiting.releaseTokens('scope', ['a', 'c', 'd'])).toBe(2);
      expect(await broker.limiting.acquireTokens('scope', 1, now + 60, ['d', 'b'])).toEqual([false, true]);
    });

    it('pass to another holder with a new deadline, however often the call is made', async ({ driver }) => {
      const { broker, clock, now } = driver;
      await acquire(broker, 'scope', 'a', 1, now + 5);
      const moves = [
        { from: 'a', to: 'b' },
        { from: 'nobody', to: 'c' },
      ];
      expect(await broker.limiting.moveTokens('scope', now + 9, moves)).toEqual([true, false]);
      expect(await broker.limiting.moveTokens('scope', now + 9, moves)).toEqual([true, false]);
      expect(await broker.obstacles.heldTokens('scope')).toEqual({
        count: 1,
        holders: [{ holder: 'b', until: now + 9 }],
      });
      clock.advance(9_000);
      expect(await acquire(broker, 'scope', 'd', 1, now + 60)).toBe(false);
      clock.advance(1_000);
      expect(await acquire(broker, 'scope', 'd', 1, now + 60)).toBe(true);
    });

    it('are asked for by one server at a time, for three seconds', async ({ driver }) => {
      const { limiting } = driver.broker;
      expect(await limiting.tokenRequest('scope')).toBeUndefined();
      expect(await limiting.requestToken('scope', 'one')).toBe(true);
      expect(await limiting.requestToken('scope', 'other')).toBe(false);
      expect(await limiting.requestToken('scope', 'one')).toBe(true);
      expect(await limiting.requestToken('ü {b}:c', 'other')).toBe(true);
      expect(await limiting.tokenRequest('scope')).toBe('one');
    });

    it('are refused by a closed broker', async ({ driver }) => {
      const { broker, now } = driver;
      await broker.close();
      await expect(acquire(broker, 'scope', 'a', 1, now)).rejects.toThrow(ClosedError);
      await expect(release(broker, 'scope', 'a')).rejects.toThrow(ClosedError);
    });
  });

  describe('starts of a scope', () => {
    const limit = { max: 5, window: WINDOW };

    it('never exceed their limit in a window, whoever asks', async ({ driver }) => {
      const { broker, clock } = driver;
      clock.moveTo(Math.ceil(clock.now() / WINDOW) * WINDOW);
      expect(await broker.limiting.takeStarts('scope', limit, 2)).toEqual({
        granted: 2,
        retryIn: 0,
        countsFor: WINDOW,
        left: 3,
        countedAt: clock.now(),
      });
      clock.advance(SLICE + 1);
      expect(await broker.limiting.takeStarts('scope', limit, 9)).toEqual({
        granted: 3,
        retryIn: 39 * SLICE - 1,
        countsFor: WINDOW,
        left: 0,
        countedAt: clock.now(),
      });
      clock.advance(39 * SLICE - 2);
      expect(await broker.limiting.takeStarts('scope', limit, 1)).toEqual({
        granted: 0,
        retryIn: 1,
        countsFor: 0,
        left: 0,
        countedAt: 0,
      });
      clock.advance(1);
      expect(await broker.limiting.takeStarts('scope', limit, 2)).toMatchObject({ granted: 2, retryIn: SLICE + 1 });
    });

    it('are given back when the tasks do not start', async ({ driver }) => {
      const { limiting } = driver.broker;
      const { countedAt } = await limiting.takeStarts('scope', limit, 5);
      await limiting.correctCosts('scope', WINDOW, [{ countedAt, by: -2 }]);
      expect(await limiting.takeStarts('scope', limit, 5)).toMatchObject({ granted: 2 });
    });

    it('count from the latest time at which they may begin', async ({ driver }) => {
      const { broker, clock } = driver;
      const late = { ...limit, allowance: 500 };
      expect(await broker.limiting.takeStarts('scope', late, 5)).toMatchObject({ granted: 5, left: 0 });
      clock.advance(WINDOW);
      expect(await broker.limiting.takeStarts('scope', late, 1)).toMatchObject({ granted: 0 });
      clock.advance(500);
      expect(await broker.limiting.takeStarts('scope', late, 1)).toMatchObject({ granted: 1 });
    });

    it('no longer count when a queue has counted them and the tasks go back unstarted', async ({ driver }) => {
      await driver.enqueue(['a', 'b', 'c'].map((id) => request({ id })));
      const limits = { active: 0, rate: 2, window: 1_600 };
      const claim = (settle: Settlement[]) =>
        driver.broker.consumer.exchange('default', { settle, take: 9, limits, allowance: 10 });
      const ids = ({ tasks }: { tasks: readonly LeasedTask[] }) => tasks.map(({ lease }) => lease.id);
      const first = await claim([]);
      expect(ids(first)).toEqual(['a', 'b']);
      driver.clock.advance(700);
      const [one, other] = first.tasks.map(({ lease }) => lease);
      const again = await claim([{ kind: 'requeue', lease: one!, countedAt: first.countedAt }]);
      expect(ids(again)).toEqual(['a']);
      // Without the time it has started, and goes on counting: so does one that comes after half the window.
      expect(ids(await claim([{ kind: 'requeue', lease: other! }]))).toEqual([]);
      driver.clock.advance(815);
      const late: Settlement = { kind: 'requeue', lease: again.tasks[0]!.lease, countedAt: again.countedAt };
      expect(ids(await claim([late]))).toEqual([]);
      driver.clock.advance(110);
      expect(ids(await claim([]))).toEqual(['a']);
    });

    it('are counted by scope and by window', async ({ driver }) => {
      const { broker } = driver;
      const one = { max: 1, window: WINDOW };
      for (const scope of ['a', 'A', 'ü {b}:c'])
        expect((await broker.limiting.takeStarts(scope, one, 1)).granted).toBe(1);
      expect((await broker.limiting.takeStarts('a', one, 1)).granted).toBe(0);
      expect((await broker.limiting.takeStarts('a', { max: 1, window: WINDOW * 2 }, 1)).granted).toBe(1);
    });
  });

  describe('tasks on a waitlist', () => {
    /** Takes everything and puts it on the waitlist. */
    async function deferAll(driver: Driver, waitlist = 'waitlist'): Promise<void> {
      const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: 100 });
      const settle = tasks.map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist }));
      const { settled } = await driver.broker.consumer.exchange('default', { settle, take: 0 });
      expect(settled).toEqual(tasks.map(() => 'settled'));
    }

    it('count as not taken, and are in retry for a minute', async ({ driver }) => {
      const id = await driver.add();
      await deferAll(driver);
      const queue = await driver.queue();
      expect(queue).toMatchObject({ pending: [], active: [], lease: [], processed: 0, failed: 0 });
      expect(queue.retry).toEqual([[id, driver.now + 60]]);
      expect(queue.tasks[id]).toMatchObject({ state: 'retry', message: { retried: 0, errorMsg: '' } });
      driver.clock.advance(60_000);
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 1, nextDue: undefined });
      expect((await driver.queue()).pending).toEqual([id]);
    });

    it('move to the front of their queue when they are woken, in the order of their arrival', async ({ driver }) => {
      const ids = [];
      for (let index = 0; index < 5; index++) ids.push(await driver.add());
      await deferAll(driver);
      const late = await driver.add();
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 2)).toEqual({ woken: 2, left: 3 });
      const { pending, tasks } = await driver.queue();
      expect(pending).toEqual([ids[0], ids[1], late]);
      expect(tasks[ids[0]!]).toMatchObject({ state: 'pending', pendingSince: driver.clock.now() });
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 9)).toEqual({ woken: 3, left: 0 });
      expect((await driver.queue()).pending).toEqual([...ids, late]); // behind those that were woken before
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 1)).toEqual({ woken: 0, left: 0 });
    });

    it('keep the order in which they were woken, also across waitlists', async ({ driver }) => {
      const [z, a, m] = [await driver.add({ id: 'z' }), await driver.add({ id: 'a' }), await driver.add({ id: 'm' })];
      const { tasks } = await driver.exchange([], 3);
      const settle = tasks.map(({ lease }) => ({ kind: 'wait', lease, waitlist: lease.id }) as const);
      await driver.exchange(settle, 0);
      for (const waitlist of [z, a, m]) await driver.broker.limiting.wakeWaiting('default', waitlist, 1);
      expect((await driver.queue()).pending).toEqual([z, a, m]);
    });

    it('stay on their waitlist while the queue is paused', async ({ driver }) => {
      const id = await driver.add();
      await deferAll(driver);
      await driver.broker.administration.pauseQueue('default');
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 1)).toEqual({ woken: 0, left: 1 });
      await driver.broker.administration.resumeQueue('default');
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 1)).toEqual({ woken: 1, left: 0 });
      expect((await driver.queue()).pending).toEqual([id]);
    });

    it('get their old position back when they have to wait again', async ({ driver }) => {
      const first = await driver.add();
      const second = await driver.add();
      await deferAll(driver);
      await driver.broker.limiting.wakeWaiting('default', 'waitlist', 1);
      const third = await driver.add();
      await deferAll(driver);
      await driver.broker.limiting.wakeWaiting('default', 'waitlist', 3);
      expect((await driver.queue()).pending).toEqual([first, second, third]);
    });

    it('are delayed longer the more of them there are', async ({ driver }) => {
      for (let index = 0; index < 25; index++) await driver.add();
      await deferAll(driver);
      const times = (await driver.queue()).retry.map(([, time]) => time - driver.now);
      expect(times).toEqual([
        ...Array<number>(10).fill(60),
        ...Array<number>(10).fill(61),
        ...Array<number>(5).fill(62),
      ]);
    });

    it('are delayed longer the more of them there are in all waitlists, as with a limit for each of many keys', async ({
      driver,
    }) => {
      for (let index = 0; index < 25; index++) await driver.add();
      const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: 25 });
      const settle = tasks.map(({ lease }, index): Settlement => ({ kind: 'wait', lease, waitlist: `key${index}` }));
      await driver.broker.consumer.exchange('default', { settle, take: 0 });
      const times = (await driver.queue()).retry.map(([, time]) => time - driver.now);
      expect(times.toSorted()).toEqual([
        ...Array<number>(10).fill(60),
        ...Array<number>(10).fill(61),
        ...Array<number>(5).fill(62),
      ]);
    });

    it('lose their position when they are run, archived or deleted, or fail', async ({ driver }) => {
      const ids = [];
      for (let index = 0; index < 5; index++) ids.push(await driver.add());
      await deferAll(driver);
      const [run, archived, deleted, failed, waiting] = ids as [string, string, string, string, string];
      await driver.broker.administration.moveTasks('default', 'run', [run, failed]);
      await driver.broker.administration.moveTasks('default', 'archive', [archived]);
      await driver.broker.administration.moveTasks('default', 'delete', [deleted]);
      const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: 2 });
      const { lease, message } = tasks.find((task) => task.lease.id === failed)!;
      const settle: Settlement[] = [{ kind: 'retry', lease, message, retryAt: driver.now + 99, countAsFailure: true }];
      await driver.broker.consumer.exchange('default', { settle, take: 0 });
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 9)).toEqual({ woken: 1, left: 0 });
      expect(await driver.queue()).toMatchObject({ pending: [waiting], retry: [[failed, driver.now + 99]] });
    });

    it('are on one waitlist of one queue', async ({ driver }) => {
      await driver.add();
      await deferAll(driver, 'ü {b}:c');
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 1)).toEqual({ woken: 0, left: 0 });
      expect(await driver.broker.limiting.wakeWaiting('other', 'ü {b}:c', 1)).toEqual({ woken: 0, left: 0 });
      expect(await driver.broker.limiting.wakeWaiting('default', 'ü {b}:c', 1)).toEqual({ woken: 1, left: 0 });
    });

    it('are in a waitlist that is known to be used, until the last one was woken', async ({ driver }) => {
      const { limiting } = driver.broker;
      const used = async (queue = 'default') => {
        const { names, cursor } = await limiting.findWaitlists(queue, '');
        const sorted = names.toSorted();
        expect([await limiting.usedWaitlists(queue, [...sorted, 'none']), cursor]).toEqual([sorted, '']);
        return sorted;
      };
      expect(await used()).toEqual([]);
      for (const waitlist of ['one', 'one', 'ü {b}:c']) {
        await driver.add();
        await deferAll(driver, waitlist);
      }
      expect([await used(), await used('other')]).toEqual([['one', 'ü {b}:c'], []]);
      await limiting.wakeWaiting('default', 'one', 1);
      expect(await used()).toEqual(['one', 'ü {b}:c']);
      await limiting.wakeWaiting('default', 'one', 1);
      expect(await used()).toEqual(['ü {b}:c']);
      driver.clock.advance(120_000);
      await driver.broker.maintenance.forward('default'); // it no longer waits, which is seen when it should wake
      expect(await limiting.wakeWaiting('default', 'ü {b}:c', 1)).toEqual({ woken: 0, left: 0 });
      expect(await used()).toEqual([]);
    });

    it('are on no waitlist when the lease was lost', async ({ driver }) => {
      await driver.add();
      const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: 1 });
      const lease = { ...tasks[0]!.lease, expiresAt: 1 };
      const { settled } = await driver.broker.consumer.exchange('default', {
        settle: [{ kind: 'wait', lease, waitlist: 'waitlist' }],
        take: 0,
      });
      expect(settled).toEqual(['lost']);
      expect(await driver.broker.limiting.wakeWaiting('default', 'waitlist', 1)).toEqual({ woken: 0, left: 0 });
      expect((await driver.queue()).active).toHaveLength(1);
    });
  });
}
