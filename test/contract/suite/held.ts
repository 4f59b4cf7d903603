import { describe, expect } from 'vitest';
import type { Settlement } from '../../../lib/broker/broker.js';
import type { ListRequest } from '../../../lib/broker/inspection.js';
import type { RepeatRequest } from '../../../lib/broker/uniqueness.js';
import { retrial, type Driver, type DriverTest } from '../driver.js';
import { request } from '../../support/messages.js';

/** Puts new tasks into a waitlist, one after the other. */
async function hold(driver: Driver, waitlist: string, ...ids: string[]): Promise<void> {
  for (const id of ids) await driver.add({ id });
  const tasks = await driver.take(ids.length);
  await driver.settle(...tasks.map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist })));
}

const numbers = (driver: Driver) => driver.broker.inspection.describeQueue('default');

/** The ids of a list, read page by page. */
async function listed(driver: Driver, from: Omit<ListRequest, 'size'>, size = 1_000): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await driver.broker.listing.listTasks('default', {
      ...from,
      size,
      ...(cursor && { cursor, offset: 0 }),
    });
    expect(page.damaged).toEqual([]);
    expect(page.tasks.length).toBeLessThanOrEqual(size);
    ids.push(...page.tasks.map(({ message }) => message.id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return ids;
}

const lock = 'asynq:{default}:unique:held';
const repeat = (id: string, policy: 'reject' | 'replace', more: Partial<RepeatRequest> = {}): RepeatRequest => ({
  ...request({ id, uniqueKey: lock }),
  repeat: { policy, lock, ttl: 600 },
  ...more,
});

export function exerciseHeld(it: DriverTest): void {
  describe('tasks that are held', () => {
    it('are counted apart from those that are retried, with the age of the oldest', async ({ driver }) => {
      await hold(driver, 'one', 'a', 'b');
      driver.clock.advance(5_000);
      await hold(driver, 'two', 'c');
      await driver.arrange('retry');
      driver.clock.advance(2_000);
      expect(await numbers(driver)).toMatchObject({ held: 3, retry: 1, oldestHeld: 7_000, pending: 0 });
      await driver.broker.limiting.wakeWaiting('default', 'one', 9);
      expect(await numbers(driver)).toMatchObject({ held: 1, retry: 1, oldestHeld: 2_000, pending: 2 });
    });

    it('say by what and since when they are held, and when they are tried again at the latest', async ({ driver }) => {
      await hold(driver, 'sms', 'a');
      const since = driver.clock.now();
      driver.clock.advance(9_000);
      const held = { state: 'held', held: { since, waitlist: 'sms' }, pendingSince: undefined };
      const seen = { ...held, nextProcessAt: Math.floor(since / 1000) + 60 };
      expect(await driver.broker.inspection.getTask('default', 'a')).toMatchObject(seen);
      const { tasks } = await driver.broker.listing.listTasks('default', { state: 'held', size: 9 });
      expect(tasks).toMatchObject([seen]);
      await driver.broker.limiting.wakeWaiting('default', 'sms', 1);
      const woken = await driver.broker.inspection.getTask('default', 'a');
      expect(woken).toMatchObject({ state: 'pending' });
      expect(woken?.held).toBeUndefined();
    });

    it('are listed by the start of their wait, and not as retries', async ({ driver }) => {
      const ids = Array.from({ length: 25 }, (_, index) => `h${index + 10}`);
      for (const [index, id] of ids.entries()) await hold(driver, `w${index % 3}`, id);
      const retries = [await driver.arrange('retry'), await driver.arrange('retry')].sort();
      for (const size of [1, 4, 25, 100]) {
        expect(await listed(driver, { state: 'held' }, size)).toEqual(ids);
        expect(await listed(driver, { state: 'retry' }, size)).toEqual(retries);
      }
      expect(await listed(driver, { state: 'held', reverse: true }, 7)).toEqual(ids.toReversed());
      expect(await listed(driver, { state: 'held', offset: 20 })).toEqual(ids.slice(20));
      expect(await listed(driver, { state: 'retry', offset: 1 }, 1)).toEqual(retries.slice(1));
      const page = await driver.broker.listing.listIds('default', { state: 'held', size: 3 });
      expect(page.ids).toEqual(ids.slice(0, 3));
      const { ids: next } = await driver.broker.listing.listIds('default', {
        state: 'held',
        size: 2,
        cursor: page.cursor!,
      });
      expect(next).toEqual(ids.slice(3, 5));
    });

    it('are found behind many retries, and retries behind many of them', async ({ driver }) => {
      const ids = Array.from({ length: 2_300 }, (_, index) => `h${index + 1_000}`);
      await driver.enqueue(ids.map((id) => request({ id })));
      for (let left = ids.length; left > 0;) {
        const tasks = await driver.take(left);
        left -= tasks.length;
        await driver.settle(...tasks.map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist: 'w' })));
      }
      const task = await driver.takeNew();
      await driver.settle(retrial(task, driver.now + 5_000));
      expect(await listed(driver, { state: 'retry' })).toEqual([task.lease.id]);
      expect(await listed(driver, { state: 'held', offset: 2_299 })).toEqual(ids.slice(2_299));
      expect(await numbers(driver)).toMatchObject({ held: 2_300, retry: 1 });
    });

    it.for(['run', 'archive', 'delete'] as const)('leave with %s as held ones only', async (action, { driver }) => {
      await hold(driver, 'w', 'a', 'b');
      const move = (id: string, state?: 'held' | 'retry') =>
        driver.broker.administration.moveTasks('default', action, [id], state && { state });
      expect(await move('a', 'retry')).toEqual(['elsewhere']);
      expect(await move('a', 'held')).toEqual(['moved']);
      expect(await numbers(driver)).toMatchObject({ held: 1, retry: 0 });
      expect(await move('b')).toEqual(['moved']);
      expect(await numbers(driver)).toMatchObject({ held: 0, retry: 0, oldestHeld: 0 });
      expect(await driver.broker.limiting.wakeWaiting('default', 'w', 9)).toEqual({ woken: 0, left: 0 });
    });

    it('are scheduled when they get another time, and lose their position', async ({ driver }) => {
      await hold(driver, 'w', 'a');
      const { administration, inspection, limiting } = driver.broker;
      expect(await administration.rescheduleTasks('default', ['a'], driver.now + 9, { state: 'held' })).toEqual([
        'moved',
      ]);
      expect(await inspection.getTask('default', 'a')).toMatchObject({
        state: 'scheduled',
        nextProcessAt: driver.now + 9,
      });
      expect(await numbers(driver)).toMatchObject({ held: 0, retry: 0, scheduled: 1 });
      expect(await limiting.wakeWaiting('default', 'w', 9)).toEqual({ woken: 0, left: 0 });
    });

    it('take another payload', async ({ driver }) => {
      await hold(driver, 'w', 'a');
      const { administration, inspection } = driver.broker;
      expect(await administration.updatePayload('default', 'a', Buffer.from('new'))).toBe('updated');
      const task = await inspection.getTask('default', 'a');
      expect(task).toMatchObject({ state: 'held', message: { payload: Buffer.from('new') } });
    });

    it('are no longer held when nobody has woken them in time', async ({ driver }) => {
      await hold(driver, 'w', 'a', 'b');
      driver.clock.advance(61_000);
      expect(await driver.broker.maintenance.forward('default')).toMatchObject({ moved: 2 });
      expect(await numbers(driver)).toMatchObject({ held: 0, retry: 0, pending: 2 });
      const tasks = await driver.take(2);
      await driver.settle(...tasks.map((task) => retrial(task, driver.now + 60)));
      expect(await numbers(driver)).toMatchObject({ held: 0, retry: 2 });
      expect(await listed(driver, { state: 'held' })).toEqual([]);
    });

    it('keep the start of their wait when they are held again', async ({ driver }) => {
      await hold(driver, 'w', 'a');
      const since = driver.clock.now();
      driver.clock.advance(3_000);
      await driver.broker.limiting.wakeWaiting('default', 'w', 1);
      const [task] = await driver.take();
      await driver.settle({ kind: 'wait', lease: task!.lease, waitlist: 'w' });
      expect(await driver.broker.inspection.getTask('default', 'a')).toMatchObject({ state: 'held', held: { since } });
      expect(await numbers(driver)).toMatchObject({ oldestHeld: 3_000 });
    });

    it('are held for who enqueues the same again, and for who reads their lock', async ({ driver }) => {
      const { uniqueness } = driver.broker;
      await uniqueness.enqueue('default', [repeat('a', 'reject')]);
      const [task] = await driver.take();
      await driver.settle({ kind: 'wait', lease: task!.lease, waitlist: 'w' });
      const {
        replies: [reply],
      } = await uniqueness.enqueue('default', [repeat('b', 'reject')]);
      expect(reply).toMatchObject({ status: 'duplicate', owner: { id: 'a', state: 'held' } });
      expect(await uniqueness.describe('default', [lock])).toMatchObject([{ owner: { id: 'a', state: 'held' } }]);
      const {
        replies: [replaced],
      } = await uniqueness.enqueue('default', [repeat('c', 'replace')]);
      expect(replaced).toMatchObject({ status: 'replaced', owner: { id: 'a', state: 'held' } });
      const {
        replies: [moved],
      } = await uniqueness.enqueue('default', [repeat('d', 'replace', { processAt: driver.now + 60 })]);
      expect(moved).toMatchObject({ status: 'replaced', owner: { id: 'a', state: 'scheduled' } });
      expect(await numbers(driver)).toMatchObject({ held: 0, retry: 0, scheduled: 1 });
    });

    it('go with their queue', async ({ driver }) => {
      await hold(driver, 'w', 'a', 'b');
      const { administration } = driver.broker;
      expect(await administration.deleteQueue('default', { force: false })).toBe('notEmpty');
      expect(await administration.deleteQueue('default', { force: true })).toBe('deleted');
      await hold(driver, 'w', 'c');
      expect(await numbers(driver)).toMatchObject({ held: 1, retry: 0 });
    });
  });
}
