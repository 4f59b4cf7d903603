import { describe, expect } from 'vitest';
import type { EnqueueRequest } from '../../../lib/broker/broker.js';
import { Keyspace } from '../../../lib/wire/keys.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, completion, done, retrial } from '../driver.js';

const lockKey = (driver: Driver, name: string): string =>
  new Keyspace(driver.broker.keyPrefix).queue('default').unique('t', Buffer.from(name));

const unique = (driver: Driver, id: string, ttl = 60, options: Partial<EnqueueRequest> = {}): EnqueueRequest => ({
  ...request({ id, uniqueKey: lockKey(driver, 'one') }, { uniqueTtl: ttl }),
  ...options,
});

export function exerciseUnique(it: DriverTest): void {
  describe('a unique task', () => {
    it('takes the lock under its id for the given time', async ({ driver }) => {
      expect(await driver.enqueue([unique(driver, 'a', 60)])).toEqual(['enqueued']);
      const queue = await driver.queue();
      const lock = queue.locks[lockKey(driver, 'one')];
      expect(lock?.owner).toBe('a');
      expect(lock?.expiresIn).toBeGreaterThan(50_000);
      expect(lock?.expiresIn).toBeLessThanOrEqual(60_000);
      expect(queue.tasks['a']?.uniqueKey).toBe(lockKey(driver, 'one'));
    });

    it('takes its lock by every route', async ({ driver }) => {
      const scheduled = request(
        { id: 's', uniqueKey: lockKey(driver, 's') },
        { uniqueTtl: 9, processAt: driver.now + 5 },
      );
      const grouped = request({ id: 'g', uniqueKey: lockKey(driver, 'g'), groupKey: 'x' }, { uniqueTtl: 9 });
      const later = request(
        { id: 'l', uniqueKey: lockKey(driver, 'l'), groupKey: 'x' },
        { uniqueTtl: 9, processAt: driver.now + 5 },
      );
      await driver.enqueue([scheduled, grouped, later]);
      const queue = await driver.queue();
      for (const id of ['s', 'g', 'l']) {
        expect(queue.locks[lockKey(driver, id)]?.owner).toBe(id);
        expect(queue.tasks[id]?.uniqueKey).toBe(lockKey(driver, id));
      }
    });

    it('is a duplicate while the lock is held, within a batch and later, by every route', async ({ driver }) => {
      expect(await driver.enqueue([unique(driver, 'a'), unique(driver, 'b')])).toEqual(['enqueued', 'duplicate']);
      const again = [
        unique(driver, 'c'),
        unique(driver, 'd', 60, { processAt: driver.now + 1 }),
        request({ id: 'e', groupKey: 'g', uniqueKey: lockKey(driver, 'one') }, { uniqueTtl: 60 }),
        request(
          { id: 'f', groupKey: 'g', uniqueKey: lockKey(driver, 'one') },
          { uniqueTtl: 60, processAt: driver.now + 1 },
        ),
      ];
      expect(await driver.enqueue(again)).toEqual(Array(4).fill('duplicate'));
      expect(Object.keys((await driver.queue()).tasks)).toEqual(['a']);
    });

    it('is created beside thousands in one call, each with a lock, and decided alone where one is in the way', async ({
      driver,
    }) => {
      const own = (id: string, lock = id) => request({ id, uniqueKey: lockKey(driver, lock) }, { uniqueTtl: 60 });
      const first = Array.from({ length: 2_500 }, (_, n) => own(`n${n}`));
      expect(await driver.enqueue(first)).toEqual(first.map(() => 'enqueued'));
      const { pending, tasks, locks } = await driver.queue();
      expect(pending).toEqual(first.map(({ message }) => message.id));
      for (const { message } of first) {
        expect(tasks[message.id]).toMatchObject({ state: 'pending', uniqueKey: message.uniqueKey });
        expect(locks[message.uniqueKey]?.owner).toBe(message.id);
      }
      const second = Array.from({ length: 2_500 }, (_, n) => own(`m${n}`));
      second[1_999] = own('held', 'n7');
      expect(await driver.enqueue(second)).toEqual(second.map((_, n) => (n === 1_999 ? 'duplicate' : 'enqueued')));
      expect((await driver.queue()).pending).toHaveLength(4_999);
      const mixed = [own('a'), own('b', 'a'), own('c'), own('c', 'd'), own('e')];
      expect(await driver.enqueue(mixed)).toEqual(['enqueued', 'duplicate', 'enqueued', 'conflict', 'enqueued']);
      expect((await driver.queue()).locks[lockKey(driver, 'd')]).toBeUndefined();
    });

    it('is a duplicate rather than a conflict when it is both', async ({ driver }) => {
      await driver.enqueue([unique(driver, 'a')]);
      expect(await driver.enqueue([unique(driver, 'a')])).toEqual(['duplicate']);
    });

    it('leaves the lock free when its id is taken', async ({ driver }) => {
      await driver.add({ id: 'a' });
      expect(await driver.enqueue([unique(driver, 'a')])).toEqual(['conflict']);
      expect((await driver.queue()).locks).toEqual({});
      expect(await driver.enqueue([unique(driver, 'a'), unique(driver, 'b')])).toEqual(['conflict', 'enqueued']);
    });

    it('can be enqueued again when the lock has expired', async ({ driver }) => {
      await driver.enqueue([unique(driver, 'a', 5)]);
      await driver.world.expireLock('default', lockKey(driver, 'one'));
      expect(await driver.enqueue([unique(driver, 'b')])).toEqual(['enqueued']);
      expect((await driver.queue()).locks[lockKey(driver, 'one')]?.owner).toBe('b');
    });

    it('releases its lock when it is done, and when it is completed', async ({ driver }) => {
      await driver.enqueue([unique(driver, 'a')]);
      expect(await driver.settle(done(await driver.takeOne()))).toEqual(['settled']);
      expect(await driver.enqueue([unique(driver, 'b')])).toEqual(['enqueued']);
      expect(await driver.settle(completion(await driver.takeOne(), driver.now + 60))).toEqual(['settled']);
      expect((await driver.queue()).locks).toEqual({});
    });

    it('keeps its lock in retry and archived, where only time ends it', async ({ driver }) => {
      await driver.enqueue([unique(driver, 'a')]);
      await driver.settle(retrial(await driver.takeOne(), driver.now));
      expect(await driver.enqueue([unique(driver, 'b')])).toEqual(['duplicate']);
      await driver.broker.maintenance.forward('default');
      await driver.settle(archival(await driver.takeOne()));
      expect(await driver.enqueue([unique(driver, 'c')])).toEqual(['duplicate']);
    });

    it('keeps a lock that another task holds by now', async ({ driver }) => {
      await driver.enqueue([unique(driver, 'a')]);
      const task = await driver.takeOne();
      await driver.world.expireLock('default', lockKey(driver, 'one'));
      await driver.enqueue([unique(driver, 'b')]);
      expect(await driver.settle(done(task))).toEqual(['settled']);
      expect((await driver.queue()).locks[lockKey(driver, 'one')]?.owner).toBe('b');
    });

    it('keeps its lock when the settlement is lost', async ({ driver }) => {
      await driver.enqueue([unique(driver, 'a')]);
      const task = await driver.takeOne();
      const stale = { ...task, lease: { ...task.lease, expiresAt: task.lease.expiresAt - 1 } };
      expect(await driver.settle(done(stale), completion(stale, driver.now))).toEqual(['lost', 'lost']);
      expect((await driver.queue()).locks[lockKey(driver, 'one')]?.owner).toBe('a');
    });
  });
}
