import { describe, expect } from 'vitest';
import { Keyspace } from '../../../lib/wire/keys.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, done, expectQueue, retrial } from '../driver.js';

const LOCK = new Keyspace().queue('default').unique('t', undefined);

/** Advances the clock and forwards what is due then. */
async function pass(driver: Driver, seconds: number): Promise<number> {
  driver.clock.advance(seconds * 1000);
  return (await driver.broker.maintenance.forward('default')).moved;
}

const claimAll = async (driver: Driver, gracePeriod = 0): Promise<string[]> => {
  const { sets } = await driver.broker.groups.claimDueSets(
    'default',
    () => ({ gracePeriod, maxDelay: 0, maxSize: 0 }),
    100,
  );
  const read = await Promise.all(sets.map((set) => driver.broker.groups.readSet(set)));
  return read.flatMap(({ tasks }) => tasks.map(({ id }) => id));
};

export function exerciseDelayedGroups(it: DriverTest): void {
  describe('a task with a group and a time', () => {
    it('joins its group when it is due, and not before', async ({ driver }) => {
      await driver.add({ id: 'now', groupKey: 'g' });
      await driver.add({ id: 'later', groupKey: 'g' }, { processAt: driver.now + 30 });
      expect(await pass(driver, 29)).toBe(0);
      await expectQueue(driver, { groups: { g: [['now', driver.now - 29]] }, scheduled: [['later', driver.now + 1]] });
      expect(await pass(driver, 1)).toBe(1);
      await expectQueue(driver, { pending: [], scheduled: [], groupNames: ['g'] });
      expect((await driver.queue()).groups['g']).toContainEqual(['later', driver.now]);
      expect((await driver.queue()).tasks['later']).toMatchObject({ state: 'aggregating', group: 'g' });
    });

    it('counts as joining then: the grace period starts again', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' }, { processAt: driver.now + 30 });
      await pass(driver, 30);
      driver.clock.advance(9_000);
      expect(await claimAll(driver, 10)).toEqual([]);
      driver.clock.advance(1_000);
      expect(await claimAll(driver, 10)).toEqual(['a']);
    });

    it('joins any group, also hundreds at once', async ({ driver }) => {
      const names = ['g:1 {x}', ':', '🎉', 'a\nb', ...Array.from({ length: 700 }, (_, n) => `n${n}`)];
      await driver.enqueue(names.map((groupKey) => request({ groupKey }, { processAt: driver.now + 5 })));
      expect(await pass(driver, 5)).toBe(names.length);
      expect((await driver.queue()).groupNames.toSorted()).toEqual(names.toSorted());
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 0, nextDue: undefined });
    });

    it('runs alone, outside its group, when it is run by hand', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' }, { processAt: driver.now + 30 });
      expect(await driver.broker.administration.moveTasks('default', 'run', ['a'], { state: 'scheduled' })).toEqual([
        'moved',
      ]);
      await expectQueue(driver, { pending: ['a'], scheduled: [], groups: {}, groupNames: [] });
      const task = await driver.takeOne();
      expect(await pass(driver, 30)).toBe(0);
      expect(await driver.settle(done(task))).toEqual(['settled']);
      await expectQueue(driver, { tasks: {}, groups: {}, groupNames: [] });
    });

    it('joins its group after a retry, too, as in asynq', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' }, { processAt: driver.now + 30 });
      await driver.broker.administration.moveTasks('default', 'run', ['a']);
      await driver.settle(retrial(await driver.takeOne(), driver.now + 5));
      expect(await pass(driver, 5)).toBe(1);
      await expectQueue(driver, { pending: [], groups: { g: [['a', driver.now]] }, groupNames: ['g'] });
    });

    it.for(['archive', 'delete'] as const)('never joins it when it was %sd before', async (action, { driver }) => {
      await driver.add({ id: 'a', groupKey: 'g', uniqueKey: LOCK }, { processAt: driver.now + 30, uniqueTtl: 60 });
      expect(await driver.broker.administration.moveTasks('default', action, ['a'])).toEqual(['moved']);
      expect(await pass(driver, 30)).toBe(0);
      await expectQueue(driver, { pending: [], scheduled: [], groups: {}, groupNames: [] });
      expect(Object.keys((await driver.queue()).locks)).toEqual(action === 'delete' ? [] : [LOCK]);
    });

    it('keeps its lock in the group, and releases it with the set', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g', uniqueKey: LOCK }, { processAt: driver.now + 30, uniqueTtl: 90 });
      await pass(driver, 30);
      expect((await driver.queue()).locks[LOCK]?.owner).toBe('a');
      const { sets } = await driver.broker.groups.claimDueSets(
        'default',
        () => ({ gracePeriod: 0, maxDelay: 0, maxSize: 0 }),
        1,
      );
      await driver.broker.groups.finishSet(await driver.broker.groups.readSet(sets[0]!), undefined);
      await expectQueue(driver, { locks: {}, tasks: {} });
    });

    it('still joins its group after its payload was changed', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' }, { processAt: driver.now + 30 });
      expect(await driver.broker.administration.updatePayload('default', 'a', Buffer.from('new'))).toBe('updated');
      await pass(driver, 30);
      expect((await driver.queue()).tasks['a']).toMatchObject({ state: 'aggregating', group: 'g' });
      expect((await driver.broker.inspection.getTask('default', 'a'))?.message.payload.toString()).toBe('new');
    });

    it('can be the task of an aggregated set, and joins its group when due', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' });
      const { sets } = await driver.broker.groups.claimDueSets(
        'default',
        () => ({ gracePeriod: 0, maxDelay: 0, maxSize: 0 }),
        1,
      );
      const whole = request(
        { id: 'whole', groupKey: 'h', uniqueKey: LOCK },
        { processAt: driver.now + 9, uniqueTtl: 60 },
      );
      expect(await driver.broker.groups.finishSet(await driver.broker.groups.readSet(sets[0]!), whole)).toEqual({
        status: 'finished',
      });
      await expectQueue(driver, { scheduled: [['whole', driver.now + 9]], groups: {} });
      await pass(driver, 9);
      await expectQueue(driver, { groups: { h: [['whole', driver.now]] }, groupNames: ['h'] });
    });

    it('is deleted with its queue', async ({ driver }) => {
      await driver.add({ groupKey: 'g' }, { processAt: driver.now + 30 });
      await driver.broker.administration.deleteQueue('default', { force: true });
      expect(await driver.world.dump()).toEqual({});
    });
  });
}
