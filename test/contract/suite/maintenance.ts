import { describe, expect } from 'vitest';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, completion, expectUnchanged, retrial } from '../driver.js';

export function exerciseMaintenance(it: DriverTest): void {
  describe('forward', () => {
    it('moves due tasks to the end of pending, earliest first, and returns the next time', async ({ driver }) => {
      await driver.add({ id: 'waiting' });
      for (const [id, seconds] of Object.entries({ c: 3, a: 1, b: 2, late: 9 })) {
        await driver.add({ id }, { processAt: driver.now + seconds });
      }
      driver.clock.advance(3999);
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 3, nextDue: driver.now + 6 });
      const queue = await driver.queue();
      expect(queue.pending).toEqual(['waiting', 'a', 'b', 'c']);
      expect(queue.scheduled).toEqual([['late', driver.now + 6]]);
      expect(queue.tasks['a']).toMatchObject({ state: 'pending', pendingSince: driver.clock.now() });
    });

    it('moves retries after scheduled tasks, and returns the earlier of both next times', async ({ driver }) => {
      const [first, second] = [await driver.takeNew({ id: 'r1' }), await driver.takeNew({ id: 'r2' })];
      await driver.settle(retrial(first, driver.now), retrial(second, driver.now + 5));
      await driver.add({ id: 's1' }, { processAt: driver.now });
      await driver.add({ id: 's2' }, { processAt: driver.now + 8 });
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 2, nextDue: driver.now + 5 });
      expect((await driver.queue()).pending).toEqual(['s1', 'r1']);
      driver.clock.advance(8000);
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 2, nextDue: undefined });
    });

    it('moves nothing early', async ({ driver }) => {
      await driver.add({}, { processAt: driver.now + 1 });
      driver.clock.advance(999);
      await expectUnchanged(driver, async () => {
        const { moved } = await driver.broker.maintenance.forward('default');
        expect(moved).toBe(0);
      });
    });

    it('has nothing to do in an empty queue', async ({ driver }) => {
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 0, nextDue: undefined });
    });

    it('moves a task whose hash names a group to that group, and lists the group', async ({ driver }) => {
      await driver.add({ id: 's' }, { processAt: driver.now });
      await driver.settle(retrial(await driver.takeNew({ id: 'r' }), driver.now));
      for (const id of ['s', 'r']) await driver.world.nameGroup('default', id, 'g 1');
      driver.clock.advance(2000);
      expect((await driver.broker.maintenance.forward('default')).moved).toBe(2);
      const queue = await driver.queue();
      expect(queue.groups).toEqual({
        'g 1': [
          ['r', driver.now],
          ['s', driver.now],
        ],
      });
      expect(queue.groupNames).toEqual(['g 1']);
      expect(queue.tasks['s']).toMatchObject({ state: 'aggregating', group: 'g 1', pendingSince: undefined });
      expect(queue).toMatchObject({ pending: [], scheduled: [], retry: [] });
    });

    it('moves 2,500 due tasks in one call, in order', async ({ driver }) => {
      const id = (index: number): string => `n${String(index).padStart(4, '0')}`;
      const batch = Array.from({ length: 2500 }, (_, index) => request({ id: id(index) }, { processAt: driver.now }));
      await driver.enqueue(batch);
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 2500, nextDue: undefined });
      expect((await driver.queue()).pending).toEqual(batch.map(({ message }) => message.id));
    });
  });

  describe('deleteExpiredCompleted', () => {
    const complete = async (driver: Driver, id: string, seconds: number): Promise<void> => {
      await driver.settle(completion(await driver.takeNew({ id }), driver.now + seconds, Buffer.from('r')));
    };

    it('deletes tasks whose retention is over, earliest first, up to the limit', async ({ driver }) => {
      for (const [id, seconds] of Object.entries({ a: 1, b: 2, c: 3, d: 4 })) await complete(driver, id, seconds);
      driver.clock.advance(3999);
      expect(await driver.broker.maintenance.deleteExpiredCompleted('default', 2)).toBe(2);
      expect(Object.keys((await driver.queue()).tasks).sort()).toEqual(['c', 'd']);
      expect(await driver.broker.maintenance.deleteExpiredCompleted('default', 2)).toBe(1);
      expect(await driver.broker.maintenance.deleteExpiredCompleted('default', 2)).toBe(0);
      expect((await driver.queue()).completed).toEqual([['d', driver.now + 1]]);
    });

    it('frees the ids', async ({ driver }) => {
      await complete(driver, 'a', 1);
      driver.clock.advance(1000);
      await driver.broker.maintenance.deleteExpiredCompleted('default', 10);
      expect(await driver.enqueue([request({ id: 'a' })])).toEqual(['enqueued']);
    });
  });
}
