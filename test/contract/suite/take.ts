import { describe, expect } from 'vitest';
import { LEASE_SECONDS } from '../../../lib/broker/broker.js';
import { request } from '../../support/messages.js';
import { type DriverTest, done, expectQueue, expectUnchanged, requeueing } from '../driver.js';

const batch = (count: number) => Array.from({ length: count }, (_, index) => request({ id: `n${index}` }));

export function exerciseTake(it: DriverTest): void {
  describe('take', () => {
    it('takes up to the limit in order and returns how many are left', async ({ driver }) => {
      await driver.enqueue(batch(5));
      const first = await driver.exchange([], 3);
      expect(first.tasks.map(({ lease }) => lease.id)).toEqual(['n0', 'n1', 'n2']);
      expect(first.backlog).toBe(2);
      const second = await driver.exchange([], 3);
      expect(second.tasks.map(({ message }) => message.id)).toEqual(['n3', 'n4']);
      expect(second.backlog).toBe(0);
      expect((await driver.exchange([], 3)).tasks).toEqual([]);
    });

    it('leases tasks from the start of the current second', async ({ driver }) => {
      const id = await driver.add();
      driver.clock.advance(1999);
      const { lease } = await driver.takeOne();
      expect(lease).toEqual({ queue: 'default', id, expiresAt: driver.now + LEASE_SECONDS });
      const queue = await driver.queue();
      expect(queue.lease).toEqual([[id, driver.now + LEASE_SECONDS]]);
      expect(queue.active).toEqual([id]);
      expect(queue.pending).toEqual([]);
      expect(queue.tasks[id]).toMatchObject({ state: 'active', pendingSince: undefined });
    });

    it('returns since when the tasks were pending, when asked', async ({ driver }) => {
      const started = driver.clock.now();
      await driver.enqueue(batch(2));
      await driver.enqueue([request({ id: 'later' }, { processAt: driver.now + 2 })]);
      driver.clock.advance(2_500);
      await driver.broker.maintenance.forward('default');
      driver.clock.advance(1_000);
      const [first] = await driver.take();
      if (!first) throw new Error('nothing was taken');
      expect(first.pendingSince).toBeUndefined();
      const ask = { take: 2, since: true };
      const reply = await driver.broker.consumer.exchange('default', { settle: [requeueing(first)], ...ask });
      const since = ({ tasks }: typeof reply) => tasks.map(({ lease, pendingSince }) => [lease.id, pendingSince]);
      expect(since(reply)).toEqual([
        ['n0', started + 3_500],
        ['n1', started],
      ]);
      expect(reply.tasks.map(({ message }) => message.id)).toEqual(['n0', 'n1']);
      const lost = { ...done(reply.tasks[0]!), lease: { ...reply.tasks[0]!.lease, expiresAt: 1 } };
      const last = await driver.broker.consumer.exchange('default', { settle: [lost, done(reply.tasks[1]!)], ...ask });
      expect(last.settled).toEqual(['lost', 'settled']);
      expect(since(last)).toEqual([['later', started + 2_500]]);
    });

    it('takes nothing when nothing is asked for, but returns the backlog', async ({ driver }) => {
      await driver.enqueue(batch(2));
      await expectUnchanged(driver, async () => {
        expect(await driver.exchange([], 0)).toEqual({
          settled: [],
          tasks: [],
          damaged: [],
          backlog: 2,
          limitedFor: 0,
        });
      });
    });

    it('finds nothing in an unknown queue, and does not create it', async ({ driver }) => {
      expect(await driver.exchange([], 10, 'unheard')).toEqual({
        settled: [],
        tasks: [],
        damaged: [],
        backlog: 0,
        limitedFor: 0,
      });
      expect(await driver.broker.inspection.queues()).toEqual([]);
    });

    it('takes nothing from a paused queue and reports a backlog of 0, but settles', async ({ driver }) => {
      await driver.enqueue(batch(3));
      const task = await driver.takeOne();
      expect(await driver.broker.administration.pauseQueue('default')).toBe(true);
      const reply = await driver.exchange([done(task)], 2);
      expect(reply).toEqual({ settled: ['settled'], tasks: [], damaged: [], backlog: 0, limitedFor: 0 });
      expect(await driver.broker.administration.resumeQueue('default')).toBe(true);
      expect((await driver.exchange([], 1)).backlog).toBe(1);
    });

    it('hands each task to one taker only', async ({ driver }) => {
      await driver.enqueue(batch(100));
      const replies = await Promise.all(Array.from({ length: 20 }, () => driver.take(7)));
      const ids = replies.flat().map(({ lease }) => lease.id);
      expect(ids).toHaveLength(100);
      expect(new Set(ids).size).toBe(100);
    });

    it('gives the place of a settled task to another one in the same call', async ({ driver }) => {
      await driver.enqueue(batch(2));
      const task = await driver.takeOne();
      const reply = await driver.exchange([done(task)], 1);
      expect(reply.settled).toEqual(['settled']);
      expect(reply.tasks.map(({ lease }) => lease.id)).toEqual(['n1']);
      expect((await driver.queue()).active).toEqual(['n1']);
    });

    it('can take again at once what it puts back', async ({ driver }) => {
      await driver.enqueue(batch(2));
      const [first] = await driver.take();
      if (!first) throw new Error('nothing was taken');
      const reply = await driver.exchange([requeueing(first)], 2);
      expect(reply.tasks.map(({ lease }) => lease.id)).toEqual(['n0', 'n1']);
    });

    it('takes 5,000 at once and settles them at once', async ({ driver }) => {
      await driver.enqueue(batch(5000));
      const tasks = await driver.take(6000);
      expect(tasks.map(({ lease }) => lease.id)).toEqual(batch(5000).map(({ message }) => message.id));
      const settled = await driver.settle(...tasks.map(done));
      expect(settled.filter((status) => status === 'settled')).toHaveLength(5000);
      await expectQueue(driver, { active: [], lease: [], tasks: {}, processed: 5000 });
    });
  });
}
