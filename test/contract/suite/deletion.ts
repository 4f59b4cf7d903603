import { describe, expect } from 'vitest';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, done, expectUnchanged } from '../driver.js';

const LOCK = 'asynq:{default}:unique:t:x';

export function exerciseDeletion(it: DriverTest): void {
  describe('deleteQueue', () => {
    const WAITING = STORED_STATES.filter((state) => state !== 'active');

    for (const state of WAITING) {
      it(`refuses a queue with a task that is ${state}; when forced, leaves nothing behind`, async ({ driver }) => {
        const { broker } = driver;
        await driver.add({ queue: 'other' });
        const before = await driver.world.dump();
        await driver.arrange(state);
        await expectUnchanged(driver, async () =>
          expect(await broker.administration.deleteQueue('default', { force: false })).toBe('notEmpty'),
        );
        expect(await broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
        expect(await driver.world.dump()).toEqual(before);
        expect(await broker.inspection.queues()).toEqual(['other']);
        expect(await broker.inspection.hasQueue('default')).toBe(false);
      });
    }

    it('refuses a queue with a claimed set, even an empty one', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' });
      const policy = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };
      const { sets } = await driver.broker.groups.claimDueSets('default', () => policy, 1);
      await driver.broker.groups.archiveDamagedMembers(sets[0]!, ['a']);
      await driver.broker.administration.moveTasks('default', 'delete', ['a']);
      expect((await driver.queue()).tasks).toEqual({});
      await expectUnchanged(driver, async () =>
        expect(await driver.broker.administration.deleteQueue('default', { force: false })).toBe('notEmpty'),
      );
      expect(await driver.broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
      expect(await driver.world.dump()).toEqual({});
    });

    it('refuses a queue with active tasks even when forced', async ({ driver }) => {
      await driver.arrange('active');
      await expectUnchanged(driver, async () =>
        expect(await driver.broker.administration.deleteQueue('default', { force: true })).toBe('active'),
      );
    });

    it('deletes an empty queue with its counters and its pause', async ({ driver }) => {
      await driver.settle(done(await driver.takeNew()));
      await driver.broker.administration.pauseQueue('default');
      expect(await driver.broker.administration.deleteQueue('default', { force: false })).toBe('deleted');
      expect(await driver.world.dump()).toEqual({});
    });

    it('deletes locks, claimed sets and dangling tasks, too', async ({ driver }) => {
      await driver.enqueue(Array.from({ length: 450 }, () => request({}, { processAt: driver.now + 9 })));
      await driver.add({ uniqueKey: LOCK }, { uniqueTtl: 60 });
      await driver.add({ groupKey: 'g' });
      await driver.broker.groups.claimDueSets('default', () => ({ gracePeriod: 0, maxDelay: 0, maxSize: 0 }), 1);
      await driver.add({ groupKey: 'h' });
      const progress: number[] = [];
      const options = { force: true, onProgress: (deleted: number) => progress.push(deleted) };
      expect(await driver.broker.administration.deleteQueue('default', options)).toBe('deleted');
      expect(progress.at(-1)).toBe(453);
      expect(await driver.world.dump()).toEqual({});
    });

    for (const other of [
      'default}:eu',
      'default}:t:x',
      'default}:g:x',
      'default}',
      '{default}',
      'defaul?',
      'd*',
      '[a-z]\\',
    ]) {
      it(`and every other action do not touch the queue ${other}, whose keys look alike`, async ({ driver }) => {
        const { broker } = driver;
        await driver.settle(archival(await driver.takeNew({ queue: other })));
        const lock = `asynq:{${other}}:unique:t:x`;
        await driver.add({ queue: other, uniqueKey: lock }, { uniqueTtl: 60 });
        await driver.add({ queue: other }, { processAt: driver.now + 9 });
        await driver.add({ queue: other, groupKey: 'g' });
        await broker.administration.pauseQueue(other);
        const before = await outline(driver, other);
        await driver.add({ groupKey: 'g' });
        await driver.arrange('scheduled');
        expect(await broker.groups.repairGroups('default')).toEqual({ listed: 0, removed: 0 });
        expect(await broker.inspection.groups('default')).toEqual([{ group: 'g', size: 1 }]);
        for (const id of ['x}:pending', 'x}:scheduled', 'x}:paused']) {
          expect(await broker.administration.moveTasks('default', 'delete', [id])).toEqual(['missing']);
        }
        expect(await broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
        expect(await broker.inspection.queues()).toEqual([other]);
        expect(await outline(driver, other)).toEqual(before);
        expect(await broker.administration.deleteQueue(other, { force: true })).toBe('deleted');
        expect(await driver.world.dump()).toEqual({});
      });
    }

    it('lets the queue come back as a new one', async ({ driver }) => {
      await driver.add({ id: 'a' });
      await driver.broker.administration.pauseQueue('default');
      await driver.broker.administration.deleteQueue('default', { force: true });
      await driver.add({ id: 'a' }, { processAt: driver.now });
      expect(await driver.broker.inspection.hasQueue('default')).toBe(true);
      expect(await driver.broker.maintenance.forward('default')).toMatchObject({ moved: 1 });
      expect(await driver.take()).toHaveLength(1);
    });

    it('does nothing when it was called off before', async ({ driver }) => {
      await driver.add();
      const reason = new Error('called off');
      const deletion = (): Promise<unknown> =>
        driver.broker.administration.deleteQueue('default', { force: true, signal: AbortSignal.abort(reason) });
      await expectUnchanged(driver, () => expect(deletion()).rejects.toBe(reason));
    });
  });
}

/** All that an inspector returns about a queue. */
async function outline({ broker }: Driver, queue: string): Promise<unknown> {
  const { memoryUsage: _, ...numbers } = await broker.inspection.describeQueue(queue);
  const places = STORED_STATES.map((state) => (state === 'aggregating' ? { state, group: 'g' } : { state }));
  const lists = await Promise.all(places.map((place) => broker.listing.listIds(queue, { ...place, size: 10 })));
  return { numbers, ids: lists.map(({ ids }) => ids), groups: await broker.inspection.groups(queue) };
}
