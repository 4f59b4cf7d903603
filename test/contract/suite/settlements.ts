import { describe, expect } from 'vitest';
import type { LeasedTask, Settlement } from '../../../lib/broker/broker.js';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { request } from '../../support/messages.js';
import {
  type DriverTest,
  allSettlements,
  archival,
  completion,
  done,
  expectUnchanged,
  requeueing,
  retrial,
  expectQueue,
} from '../driver.js';

const changed = (task: LeasedTask): LeasedTask => ({
  ...task,
  message: { ...task.message, retried: 1, errorMsg: 'it failed', lastFailedAt: 1_700_000_000 },
});

export function exerciseSettlements(it: DriverTest): void {
  describe('settle', () => {
    it('done deletes the task and frees its id', async ({ driver }) => {
      const task = await driver.takeNew();
      expect(await driver.settle(done(task))).toEqual(['settled']);
      await expectQueue(driver, { active: [], lease: [], tasks: {} });
      expect(await driver.enqueue([request({ id: task.lease.id })])).toEqual(['enqueued']);
    });

    it('complete keeps the task with its new message and result until its retention ends', async ({ driver }) => {
      const task = await driver.takeNew({ retention: 60 });
      const message = { ...task.message, completedAt: driver.now };
      const settlement = completion({ ...task, message }, driver.now + 60, Buffer.from([0, 255, 10]));
      expect(await driver.settle(settlement)).toEqual(['settled']);
      const queue = await driver.queue();
      expect(queue.completed).toEqual([[task.lease.id, driver.now + 60]]);
      expect(queue.tasks[task.lease.id]).toMatchObject({ state: 'completed', result: Buffer.from([0, 255, 10]) });
      expect(queue.tasks[task.lease.id]?.message.completedAt).toBe(driver.now);
      expect(queue).toMatchObject({ active: [], lease: [] });
    });

    it('complete without a result keeps the one that was written before', async ({ driver }) => {
      const task = await driver.takeNew();
      expect(await driver.broker.consumer.writeResult(task.lease, Buffer.from('early'))).toBe(true);
      await driver.settle(completion(task, driver.now + 60));
      expect((await driver.queue()).tasks[task.lease.id]?.result).toEqual(Buffer.from('early'));
    });

    it('complete with a result replaces the one that was written before', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.broker.consumer.writeResult(task.lease, Buffer.from('early'));
      await driver.settle(completion(task, driver.now + 60, Buffer.from('late')));
      expect((await driver.queue()).tasks[task.lease.id]?.result).toEqual(Buffer.from('late'));
    });

    it('retry keeps the task with the new message until its time', async ({ driver }) => {
      const task = changed(await driver.takeNew());
      expect(await driver.settle(retrial(task, driver.now + 90))).toEqual(['settled']);
      const queue = await driver.queue();
      expect(queue.retry).toEqual([[task.lease.id, driver.now + 90]]);
      expect(queue.tasks[task.lease.id]).toMatchObject({ state: 'retry', pendingSince: undefined });
      expect(queue.tasks[task.lease.id]?.message).toMatchObject({ retried: 1, errorMsg: 'it failed' });
      expect(queue).toMatchObject({ active: [], lease: [] });
    });

    it('archive keeps the task with the new message', async ({ driver }) => {
      const task = changed(await driver.takeNew());
      driver.clock.advance(5999);
      expect(await driver.settle(archival(task))).toEqual(['settled']);
      const queue = await driver.queue();
      expect(queue.archived).toEqual([[task.lease.id, driver.now]]);
      expect(queue.tasks[task.lease.id]).toMatchObject({ state: 'archived' });
      expect(queue.tasks[task.lease.id]?.message).toMatchObject({ errorMsg: 'it failed' });
    });

    it('archive without a message keeps the stored one', async ({ driver }) => {
      const { lease, message } = await driver.takeNew({ headers: { a: 'b' } });
      expect(await driver.settle({ kind: 'archive', lease, message: undefined })).toEqual(['settled']);
      const task = (await driver.queue()).tasks[lease.id];
      expect(task).toMatchObject({ state: 'archived' });
      expect(task?.message).toEqual(message);
    });

    it('requeue puts the task in front of all others, with the message it had', async ({ driver }) => {
      const [first, second] = [await driver.takeNew({ id: 'a' }), await driver.takeNew({ id: 'b' })];
      await driver.add({ id: 'c' });
      driver.clock.advance(2000);
      expect(await driver.settle(requeueing(first), requeueing(second))).toEqual(['settled', 'settled']);
      const queue = await driver.queue();
      expect(queue.pending).toEqual(['b', 'a', 'c']);
      expect(queue.tasks['a']).toMatchObject({ state: 'pending', pendingSince: driver.clock.now() });
      expect(queue.tasks['a']?.message).toEqual(first.message);
      expect(queue).toMatchObject({ active: [], lease: [], processed: 0, failed: 0 });
    });

    it('settles a batch of all kinds, each independently', async ({ driver }) => {
      await driver.enqueue(['a', 'b', 'c', 'd', 'e'].map((id) => request({ id })));
      const [a, b, c, d, e] = (await driver.take(5)) as [LeasedTask, LeasedTask, LeasedTask, LeasedTask, LeasedTask];
      const statuses = await driver.settle(
        archival(a),
        done(b),
        done({ ...c, lease: { ...c.lease, expiresAt: 1 } }),
        retrial(d, driver.now + 1, false),
        completion(e, driver.now + 1),
        requeueing(c),
      );
      expect(statuses).toEqual(['settled', 'settled', 'lost', 'settled', 'settled', 'settled']);
      const queue = await driver.queue();
      expect(Object.fromEntries(Object.entries(queue.tasks).map(([id, task]) => [id, task.state]))).toEqual({
        a: 'archived',
        c: 'pending',
        d: 'retry',
        e: 'completed',
      });
    });

    it('settles a task once only, also within a batch', async ({ driver }) => {
      for (const index of [0, 1, 2, 3, 4]) {
        const task = await driver.takeNew({ id: `twice${index}` });
        const [settlement] = allSettlements(task, driver.now).slice(index);
        const twice = [settlement, done(task)] as Settlement[];
        expect(await driver.settle(...twice)).toEqual(['settled', 'lost']);
        expect(await driver.settle(...twice)).toEqual(['lost', 'lost']);
        if (settlement?.kind === 'requeue') await driver.settle(done(await driver.takeOne()));
      }
      await expectQueue(driver, { active: [], lease: [], pending: [], processed: 5, failed: 2 });
    });

    it('is lost when the lease has another end, and writes nothing', async ({ driver }) => {
      const task = await driver.takeNew({ retention: 60 });
      for (const wrong of [task.lease.expiresAt - 1, task.lease.expiresAt + 1, 0]) {
        const stale = { ...task, lease: { ...task.lease, expiresAt: wrong, renewing: wrong + 7 } };
        await expectUnchanged(driver, async () => {
          const statuses = await driver.settle(...allSettlements(stale, driver.now));
          expect(statuses).toEqual(['lost', 'lost', 'lost', 'lost', 'lost']);
        });
      }
    });

    it('is lost for a task that never was', async ({ driver }) => {
      const task = await driver.takeNew();
      const nobody = { ...task, lease: { ...task.lease, id: 'nobody' } };
      await expectUnchanged(driver, async () => {
        const statuses = await driver.settle(...allSettlements(nobody, driver.now));
        expect(new Set(statuses)).toEqual(new Set(['lost']));
      });
    });

    for (const state of STORED_STATES.filter((name) => name !== 'active')) {
      it(`is lost for a task that is ${state}`, async ({ driver }) => {
        const id = await driver.arrange(state);
        const stored = await driver.broker.inspection.getTask('default', id);
        if (!stored) throw new Error(`no task "${id}"`);
        const lease = { queue: 'default', id, expiresAt: driver.now + 30 };
        await expectUnchanged(driver, async () => {
          const statuses = await driver.settle(...allSettlements({ lease, message: stored.message }, driver.now));
          expect(new Set(statuses)).toEqual(new Set(['lost']));
        });
      });
    }

    it('is lost after another server has taken the task, whatever the settlement is', async ({ driver }) => {
      const stale = await driver.takeNew();
      driver.clock.advance(61_000);
      const [expired] = (await driver.broker.maintenance.listExpiredLeases('default', driver.now - 30, 10)).tasks;
      if (!expired) throw new Error('the lease has not expired');
      await driver.settle(retrial(expired, driver.now));
      await driver.broker.maintenance.forward('default');
      const fresh = await driver.takeOne();
      await expectUnchanged(driver, async () => {
        const late = await driver.settle(...allSettlements(stale, driver.now));
        expect(new Set(late)).toEqual(new Set(['lost']));
        expect(await driver.broker.consumer.writeResult(stale.lease, Buffer.from('late'))).toBe(false);
        expect(await driver.broker.consumer.extendLeases('default', [stale.lease], driver.now + 99)).toEqual([false]);
      });
      expect(await driver.settle(done(fresh))).toEqual(['settled']);
    });

    it('accepts both ends of a lease whose extension may have been lost', async ({ driver }) => {
      const arrived = await driver.takeNew();
      const arrivedEnd = arrived.lease.expiresAt;
      await driver.broker.consumer.extendLeases('default', [arrived.lease], arrivedEnd + 5);
      const unseen = { ...arrived.lease, expiresAt: arrivedEnd, renewing: arrivedEnd + 5 };
      expect(await driver.settle(done({ ...arrived, lease: unseen }))).toEqual(['settled']);
      const lost = await driver.takeNew();
      const unsent = { ...lost.lease, renewing: lost.lease.expiresAt + 5 };
      expect(await driver.broker.consumer.writeResult(unsent, Buffer.from('r'))).toBe(true);
      expect(await driver.settle(done({ ...lost, lease: unsent }))).toEqual(['settled']);
    });

    it('accepts an expired lease as long as no server has taken the task', async ({ driver }) => {
      const task = await driver.takeNew();
      driver.clock.advance(3_600_000);
      expect(await driver.settle(done(task))).toEqual(['settled']);
    });

    it('settles 5,000 tasks of all kinds in one call', async ({ driver }) => {
      await driver.enqueue(Array.from({ length: 5000 }, (_, index) => request({ id: `n${index}` })));
      const tasks = await driver.take(5000);
      const settlements = tasks.map((task, index) => allSettlements(task, driver.now)[index % 5] as Settlement);
      const { settled } = await driver.exchange(settlements, 0);
      expect(settled).toEqual(tasks.map(() => 'settled'));
      const queue = await driver.queue();
      expect(queue.completed).toHaveLength(1000);
      expect(queue.retry).toHaveLength(1000);
      expect(queue.archived).toHaveLength(1000);
      expect(queue.pending).toHaveLength(1000);
      expect(queue.pending[0]).toBe('n4999');
      expect(queue).toMatchObject({ active: [], lease: [], processed: 4000, failed: 2000 });
    });
  });
}
