import { describe, expect } from 'vitest';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { ClosedError } from '../../../lib/errors.js';
import { request } from '../../support/messages.js';
import { type DriverTest, expectUnchanged } from '../driver.js';

export function exerciseInspection(it: DriverTest): void {
  describe('getTask', () => {
    for (const state of STORED_STATES) {
      it(`describes a task that is ${state}`, async ({ driver }) => {
        const id = await driver.arrange(state);
        const due = state === 'scheduled' || state === 'retry' ? driver.now + 60 : undefined;
        const task = await driver.broker.inspection.getTask('default', id);
        expect(task).toMatchObject({ state, nextProcessAt: due, result: undefined });
        expect(task?.message.id).toBe(id);
      });
    }

    it('returns nothing for a task that does not exist', async ({ driver }) => {
      await driver.add({ id: 'a', queue: 'one' });
      expect(await driver.broker.inspection.getTask('one', 'b')).toBeUndefined();
      expect(await driver.broker.inspection.getTask('two', 'a')).toBeUndefined();
    });
  });

  describe('pause and resume', () => {
    it('return whether they changed anything', async ({ driver }) => {
      const { broker } = driver;
      expect(await broker.administration.resumeQueue('default')).toBe(false);
      expect(await broker.administration.pauseQueue('default')).toBe(true);
      expect(await broker.administration.pauseQueue('default')).toBe(false);
      expect(await broker.administration.resumeQueue('default')).toBe(true);
      expect(await broker.administration.resumeQueue('default')).toBe(false);
    });

    it('keep the time of the first pause', async ({ driver }) => {
      await driver.add();
      const paused = driver.now;
      driver.clock.advance(999);
      await driver.broker.administration.pauseQueue('default');
      driver.clock.advance(5000);
      await expectUnchanged(driver, async () =>
        expect(await driver.broker.administration.pauseQueue('default')).toBe(false),
      );
      expect((await driver.queue()).pausedAt).toBe(paused);
    });

    it('accept tasks while paused, and forward them', async ({ driver }) => {
      await driver.broker.administration.pauseQueue('default');
      expect(await driver.enqueue([request()])).toEqual(['enqueued']);
      await driver.add({}, { processAt: driver.now });
      expect((await driver.broker.maintenance.forward('default')).moved).toBe(1);
      expect(await driver.take(5)).toEqual([]);
      await driver.broker.administration.resumeQueue('default');
      expect(await driver.take(5)).toHaveLength(2);
    });
  });

  describe('close', () => {
    it('refuses every later call, and can be repeated', async ({ driver }) => {
      const { broker } = driver;
      await broker.monitoring.ping();
      await broker.close();
      await broker.close();
      const lease = { queue: 'default', id: 'a', expiresAt: 1 };
      const calls = [
        broker.producer.enqueue('default', [request()]),
        broker.consumer.exchange('default', { settle: [], take: 1 }),
        broker.consumer.extendLeases('default', [lease], 2),
        broker.consumer.writeResult(lease, Buffer.alloc(1)),
        broker.maintenance.forward('default'),
        broker.maintenance.listExpiredLeases('default', 1, 1),
        broker.maintenance.repairActive('default'),
        broker.maintenance.deleteExpiredCompleted('default', 1),
        broker.maintenance.trimArchived('default', 1),
        broker.cancellation.recordCancellation({ id: 'a', at: 1, outcome: 'retry' }),
        broker.cancellation.findCancellations(['a']),
        broker.cancellation.noteCancelled([{ id: 'a', at: 1, queue: 'default' }]),
        broker.cancellation.publishCancellation('a'),
        broker.cancellation.subscribeCancellations(() => undefined),
        broker.events.appendEvents('events', [Buffer.alloc(1)], { most: 1 }),
        broker.events.readEvents('events', '0-0', 1),
        broker.events.readEventsBack('audit', undefined, 1),
        broker.events.lastEventId('events'),
        broker.inspection.queues(),
        broker.inspection.hasQueue('default'),
        broker.inspection.groups('default'),
        broker.inspection.describeQueue('default'),
        broker.inspection.countsOfDays('default', ['2020-01-01']),
        broker.listing.listTasks('default', { state: 'pending', size: 1 }),
        broker.listing.listIds('default', { state: 'retry', size: 1 }),
        broker.administration.moveTasks('default', 'run', ['a']),
        broker.administration.rescheduleTasks('default', ['a'], 9),
        broker.administration.updatePayload('default', 'a', Buffer.alloc(1)),
        broker.administration.deleteQueue('default', { force: true }),
        broker.publications.servers(),
        broker.operations.redisInfo(),
        broker.operations.storeInfo(),
        broker.publications.schedulerEntries(),
        broker.publications.enqueueEvents('e', 0, 1),
        broker.inspection.getTask('default', 'a'),
        broker.administration.pauseQueue('default'),
        broker.administration.resumeQueue('default'),
        broker.monitoring.ping(),
      ];
      const reasons = (await Promise.allSettled(calls)).map(
        (call) => (call.status === 'rejected' ? call.reason : 'resolved') as unknown,
      );
      for (const reason of reasons) expect(reason).toBeInstanceOf(ClosedError);
    });
  });
}
