import { describe, expect } from 'vitest';
import type { LeasedTask } from '../../../lib/broker/broker.js';
import { Keyspace } from '../../../lib/wire/keys.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival } from '../driver.js';

const DAY = 86_400_000;
const MAX_ARCHIVED = 9999;

const archive = async (driver: Driver, id: string): Promise<void> => {
  expect(await driver.settle(archival(await driver.takeNew({ id })))).toEqual(['settled']);
};

/**
 * Archives `count` tasks named by their number, in batches of a thousand, with a pause between
 * batches.
 */
async function fill(driver: Driver, count: number, apart: number): Promise<void> {
  await driver.enqueue(
    Array.from({ length: count }, (_, index) => request({ id: `n${index}`, payload: Buffer.alloc(0) })),
  );
  for (let tasks = await driver.take(1000); tasks.length > 0; tasks = await driver.take(1000)) {
    await driver.settle(...tasks.map((task: LeasedTask) => archival(task)));
    driver.clock.advance(apart);
  }
}

const ids = async (driver: Driver): Promise<string[]> => (await driver.queue()).archived.map(([id]) => id);

export function exerciseArchive(it: DriverTest): void {
  describe('the archive', () => {
    it('drops tasks after 90 days, up to the limit, oldest first', async ({ driver }) => {
      for (const id of ['a', 'b', 'c']) {
        await archive(driver, id);
        driver.clock.advance(1000);
      }
      driver.clock.advance(90 * DAY - 2000);
      expect(await driver.broker.maintenance.trimArchived('default', 1)).toBe(1);
      expect(await ids(driver)).toEqual(['b', 'c']);
      expect(await driver.broker.maintenance.trimArchived('default', 10)).toBe(1);
      expect(await driver.broker.maintenance.trimArchived('default', 10)).toBe(0);
      expect(Object.keys((await driver.queue()).tasks)).toEqual(['c']);
      expect(await driver.enqueue([request({ id: 'a' })])).toEqual(['enqueued']);
    });

    it('has limits of its own for a queue, which each archiving keeps to', async ({ driver }) => {
      driver.broker.archives.set('default', { maxTasks: 2, maxAge: 60 });
      for (const id of ['a', 'b', 'c']) {
        await archive(driver, id);
        driver.clock.advance(1000);
      }
      expect(await ids(driver)).toEqual(['b', 'c']);
      expect(Object.keys((await driver.queue()).tasks).sort()).toEqual(['b', 'c']);
      driver.clock.advance(58_000); // a minute after b
      expect(await driver.broker.maintenance.trimArchived('default', 10)).toBe(1);
      expect(await ids(driver)).toEqual(['c']);
      await driver.enqueue([request({ id: 'd' }), request({ id: 'e' })]);
      driver.clock.advance(1000);
      expect(await driver.broker.administration.moveTasks('default', 'archive', ['d', 'e'])).toEqual([
        'moved',
        'moved',
      ]);
      expect(await ids(driver)).toEqual(['d', 'e']);
    });

    it('keeps any number of tasks for ever, where it is to', async ({ driver }) => {
      driver.broker.archives.set('default', { maxTasks: Infinity, maxAge: Infinity });
      await fill(driver, MAX_ARCHIVED + 2, 0);
      driver.clock.advance(1000 * DAY);
      expect(await driver.broker.maintenance.trimArchived('default', 1000)).toBe(0);
      expect(await ids(driver)).toHaveLength(MAX_ARCHIVED + 2);
    });

    it('is trimmed by each archiving', async ({ driver }) => {
      await archive(driver, 'old');
      driver.clock.advance(90 * DAY);
      await archive(driver, 'new');
      expect(await ids(driver)).toEqual(['new']);
      expect(Object.keys((await driver.queue()).tasks)).toEqual(['new']);
    });

    it('never drops the task that is being archived, even when it is the oldest one', async ({ driver }) => {
      await fill(driver, MAX_ARCHIVED, 0);
      // Of the same second, and first by its id.
      await archive(driver, 'first');
      expect(await driver.stateOf('first')).toBe('archived');
      expect((await ids(driver))[0]).toBe('first');
    });

    it('keeps the newest 9,999', async ({ driver }) => {
      await fill(driver, MAX_ARCHIVED + 2001, 1000);
      for (let deleted = 1; deleted > 0;) {
        deleted = await driver.broker.maintenance.trimArchived('default', 500);
        expect(deleted).toBeLessThanOrEqual(500);
      }
      const queue = await driver.queue();
      expect(queue.archived).toHaveLength(MAX_ARCHIVED);
      expect(Object.keys(queue.tasks)).toHaveLength(MAX_ARCHIVED);
      expect(queue.tasks['n1999']).toBeUndefined();
      expect(queue.tasks['n2999']).toBeDefined();
      await archive(driver, 'one more');
      expect(await ids(driver)).toHaveLength(MAX_ARCHIVED);
      expect(await ids(driver)).toContain('one more');
    });

    it('is not trimmed by a call that names a maximum size and refuses tasks beyond it', async ({ driver }) => {
      await archive(driver, 'old');
      driver.clock.advance(90 * DAY);
      for (const id of ['a', 'b', 'c', 'd']) await driver.add({ id });
      const move = (ids: string[], max: number) =>
        driver.broker.administration.moveTasks('default', 'archive', ids, { state: 'pending' }, max);
      expect(await move(['a', 'b', 'c'], 3)).toEqual(['moved', 'moved', 'full']);
      expect(await move(['d'], 3)).toEqual(['full']);
      expect(await move(['a', 'x'], 3)).toEqual(['elsewhere', 'missing']);
      expect(await ids(driver)).toEqual(['old', 'a', 'b']);
      expect((await driver.queue()).pending).toHaveLength(2);
      expect(await move(['c'], 4)).toEqual(['moved']);
      expect(await driver.broker.administration.moveTasks('default', 'archive', ['d'])).toEqual(['moved']);
      expect(await ids(driver)).toEqual(['a', 'b', 'c', 'd']);
    });

    it('releases the locks of the tasks it drops, and no others', async ({ driver }) => {
      const lock = (name: string): string =>
        new Keyspace(driver.broker.keyPrefix).queue('default').unique(name, undefined);
      for (const id of ['a', 'b']) {
        const task = await driver.takeNew({ id, uniqueKey: lock(id) }, { uniqueTtl: 200 * 86_400 });
        await driver.settle(archival(task));
      }
      await driver.world.expireLock('default', lock('b'));
      await driver.add({ id: 'next', uniqueKey: lock('b') }, { uniqueTtl: 200 * 86_400 });
      driver.clock.advance(90 * DAY);
      expect(await driver.broker.maintenance.trimArchived('default', 10)).toBe(2);
      const { locks } = await driver.queue();
      expect(Object.entries(locks).map(([key, { owner }]) => [key, owner])).toEqual([[lock('b'), 'next']]);
    });
  });
}
