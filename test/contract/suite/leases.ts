import { describe, expect } from 'vitest';
import { LEASE_SECONDS } from '../../../lib/broker/broker.js';
import { request } from '../../support/messages.js';
import { type DriverTest, done, expectUnchanged, retrial } from '../driver.js';

export function exerciseLeases(it: DriverTest): void {
  describe('extendLeases', () => {
    it("moves the end of the lease in the store and in the caller's object", async ({ driver }) => {
      const { lease } = await driver.takeNew();
      expect(await driver.broker.consumer.extendLeases('default', [lease], driver.now + 77)).toEqual([true]);
      expect(lease).toEqual({ queue: 'default', id: lease.id, expiresAt: driver.now + 77 });
      expect((await driver.queue()).lease).toEqual([[lease.id, driver.now + 77]]);
    });

    it('returns a result for each lease, and does not change leases of others', async ({ driver }) => {
      const [mine, gone, foreign] = [await driver.takeNew(), await driver.takeNew(), await driver.takeNew()];
      await driver.settle(done(gone));
      const stolen = { ...foreign.lease, expiresAt: foreign.lease.expiresAt - 3 };
      const extended = await driver.broker.consumer.extendLeases(
        'default',
        [gone.lease, mine.lease, stolen],
        driver.now + 50,
      );
      expect(extended).toEqual([false, true, false]);
      expect(stolen.expiresAt).toBe(foreign.lease.expiresAt - 3);
      expect((await driver.queue()).lease).toEqual([
        [foreign.lease.id, foreign.lease.expiresAt],
        [mine.lease.id, driver.now + 50],
      ]);
    });

    it('keeps the lease valid while the extension is under way', async ({ driver }) => {
      const task = await driver.takeNew();
      const extension = driver.broker.consumer.extendLeases('default', [task.lease], driver.now + 60);
      expect(await driver.settle(done(task))).toEqual(['settled']);
      expect([[true], [false]]).toContainEqual(await extension);
    });

    it('accepts a lease whose extension was stored but whose reply was lost', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      const before = lease.expiresAt;
      await driver.broker.consumer.extendLeases('default', [lease], before + 5);
      const unseen = { ...lease, expiresAt: before, renewing: before + 5 };
      expect(await driver.broker.consumer.extendLeases('default', [unseen], before + 9)).toEqual([true]);
      expect(unseen.expiresAt).toBe(before + 9);
      expect(unseen.renewing).toBeUndefined();
    });

    it('does nothing for no leases', async ({ driver }) => {
      await driver.takeNew();
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.consumer.extendLeases('default', [], driver.now + 99)).toEqual([]);
      });
    });

    it('extends 5,000 leases in one call', async ({ driver }) => {
      await driver.enqueue(Array.from({ length: 5000 }, () => request()));
      const leases = (await driver.take(5000)).map(({ lease }) => lease);
      const extended = await driver.broker.consumer.extendLeases('default', leases, driver.now + 90);
      expect(extended).toEqual(leases.map(() => true));
      expect(new Set((await driver.queue()).lease.map(([, score]) => score))).toEqual(new Set([driver.now + 90]));
    });
  });

  describe('writeResult', () => {
    it('replaces what was there', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      expect(await driver.broker.consumer.writeResult(lease, Buffer.from('1'))).toBe(true);
      expect(await driver.broker.consumer.writeResult(lease, Buffer.from('2'))).toBe(true);
      expect((await driver.queue()).tasks[lease.id]?.result).toEqual(Buffer.from('2'));
    });

    it('survives a retry and the next run', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.broker.consumer.writeResult(task.lease, Buffer.from('kept'));
      await driver.settle(retrial(task, driver.now));
      await driver.broker.maintenance.forward('default');
      await driver.takeOne();
      expect((await driver.broker.inspection.getTask('default', task.lease.id))?.result).toEqual(Buffer.from('kept'));
    });

    it('writes nothing for a task that is settled, never existed, or is not ours', async ({ driver }) => {
      const over = await driver.takeNew();
      await driver.settle(done(over));
      const { lease } = await driver.takeNew();
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.consumer.writeResult(over.lease, Buffer.from('x'))).toBe(false);
        expect(await driver.broker.consumer.writeResult({ ...lease, id: 'nobody' }, Buffer.from('x'))).toBe(false);
        expect(await driver.broker.consumer.writeResult({ ...lease, expiresAt: 1 }, Buffer.from('x'))).toBe(false);
      });
    });
  });

  describe('listExpiredLeases', () => {
    it('lists leases that ended by the cutoff, oldest first, and changes nothing', async ({ driver }) => {
      const tasks = [];
      for (const id of ['b', 'a', 'c', 'd']) {
        tasks.push(await driver.takeNew({ id }));
        if (id !== 'b') driver.clock.advance(1000);
      }
      const last = tasks.at(-1)?.lease.expiresAt ?? 0;
      await expectUnchanged(driver, async () => {
        const some = await driver.broker.maintenance.listExpiredLeases('default', last - 1, 10);
        expect(some.tasks.map(({ lease }) => lease.id)).toEqual(['a', 'b', 'c']);
        expect(some).toMatchObject({ damaged: [], dangling: 0, ending: 1 });
        expect(await driver.broker.maintenance.listExpiredLeases('default', last - 60, 10)).toMatchObject({
          ending: 0,
        });
        const two = await driver.broker.maintenance.listExpiredLeases('default', last, 2);
        expect(two.tasks.map(({ lease }) => lease.id)).toEqual(['a', 'b']);
        expect((await driver.broker.maintenance.listExpiredLeases('default', last - 3, 10)).tasks).toEqual([]);
      });
    });

    it('returns the old lease, with which only one of several recoverers settles the task', async ({ driver }) => {
      const { lease, message } = await driver.takeNew();
      const cutoff = driver.now + LEASE_SECONDS;
      const [mine] = (await driver.broker.maintenance.listExpiredLeases('default', cutoff, 9)).tasks;
      const [other] = (await driver.broker.maintenance.listExpiredLeases('default', cutoff, 9)).tasks;
      if (!mine || !other) throw new Error('the lease was not listed');
      expect(mine).toEqual({ lease, message });
      expect(await driver.settle(retrial(mine, driver.now + 5))).toEqual(['settled']);
      expect(await driver.settle(retrial(other, driver.now + 9))).toEqual(['lost']);
      expect((await driver.queue()).retry).toEqual([[lease.id, driver.now + 5]]);
    });

    it('no longer lists a lease that was extended', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      const cutoff = lease.expiresAt;
      await driver.broker.consumer.extendLeases('default', [lease], cutoff + 1);
      expect((await driver.broker.maintenance.listExpiredLeases('default', cutoff, 9)).tasks).toEqual([]);
    });
  });

  describe('repairActive', () => {
    it('repairs nothing when every active task is leased', async ({ driver }) => {
      await driver.takeNew();
      await expectUnchanged(driver, async () =>
        expect(await driver.broker.maintenance.repairActive('default')).toBe(0),
      );
    });
  });
}
