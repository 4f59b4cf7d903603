import { describe, expect, it } from 'vitest';
import { TASK_STATES } from '../../../lib/wire/states.js';
import { ClosedError } from '../../../lib/errors.js';
import { request } from '../../support/messages.js';
import { type Driver, expectUntouched } from '../driver.js';

export function exerciseInspection(current: () => Driver): void {
  describe('getTask', () => {
    for (const state of TASK_STATES) {
      it(`describes a task that is ${state}`, async () => {
        const driver = current();
        const id = await driver.arrange(state);
        const due = state === 'scheduled' || state === 'retry' ? driver.now + 60 : undefined;
        const task = await driver.broker.getTask('default', id);
        expect(task).toMatchObject({ state, nextProcessAt: due, result: undefined });
        expect(task?.message.id).toBe(id);
      });
    }

    it('knows nothing of a task that is not there', async () => {
      const driver = current();
      await driver.add({ id: 'a', queue: 'one' });
      expect(await driver.broker.getTask('one', 'b')).toBeUndefined();
      expect(await driver.broker.getTask('two', 'a')).toBeUndefined();
    });
  });

  describe('pause and resume', () => {
    it('tell whether they changed anything', async () => {
      const { broker } = current();
      expect(await broker.resumeQueue('default')).toBe(false);
      expect(await broker.pauseQueue('default')).toBe(true);
      expect(await broker.pauseQueue('default')).toBe(false);
      expect(await broker.resumeQueue('default')).toBe(true);
      expect(await broker.resumeQueue('default')).toBe(false);
    });

    it('keep the time of the first pause', async () => {
      const driver = current();
      await driver.add();
      const paused = driver.now;
      driver.clock.advance(999);
      await driver.broker.pauseQueue('default');
      driver.clock.advance(5000);
      await expectUntouched(driver, async () => expect(await driver.broker.pauseQueue('default')).toBe(false));
      expect((await driver.queue()).pausedAt).toBe(paused);
    });

    it('let tasks in while paused, and forward them', async () => {
      const driver = current();
      await driver.broker.pauseQueue('default');
      expect(await driver.enqueue([request()])).toEqual(['enqueued']);
      await driver.add({}, { processAt: driver.now });
      expect((await driver.broker.forward('default')).moved).toBe(1);
      expect(await driver.take(5)).toEqual([]);
      await driver.broker.resumeQueue('default');
      expect(await driver.take(5)).toHaveLength(2);
    });
  });

  describe('close', () => {
    it('refuses every later call, and can be repeated', async () => {
      const { broker } = current();
      await broker.ping();
      await broker.close();
      await broker.close();
      const lease = { queue: 'default', id: 'a', expiresAt: 1 };
      const calls = [
        broker.enqueue('default', [request()]),
        broker.exchange('default', { settle: [], take: 1 }),
        broker.extendLeases('default', [lease], 2),
        broker.writeResult(lease, Buffer.alloc(1)),
        broker.forward('default'),
        broker.listExpiredLeases('default', 1, 1),
        broker.repairActive('default'),
        broker.deleteExpiredCompleted('default', 1),
        broker.trimArchived('default', 1),
        broker.recordCancellation({ id: 'a', at: 1, outcome: 'retry' }),
        broker.findCancellations(['a']),
        broker.noteCancelled([{ id: 'a', at: 1, queue: 'default' }]),
        broker.publishCancellation('a'),
        broker.subscribeCancellations(() => undefined),
        broker.appendEvents('events', [Buffer.alloc(1)], { most: 1 }),
        broker.readEvents('events', '0-0', 1),
        broker.readEventsBack('audit', undefined, 1),
        broker.lastEventId('events'),
        broker.queues(),
        broker.hasQueue('default'),
        broker.groups('default'),
        broker.describeQueue('default'),
        broker.countsOfDays('default', ['2020-01-01']),
        broker.listTasks('default', { state: 'pending', size: 1 }),
        broker.listIds('default', { state: 'retry', size: 1 }),
        broker.moveTasks('default', 'run', ['a']),
        broker.rescheduleTasks('default', ['a'], 9),
        broker.updatePayload('default', 'a', Buffer.alloc(1)),
        broker.deleteQueue('default', { force: true }),
        broker.servers(),
        broker.redisInfo(),
        broker.storeFacts(),
        broker.schedulerEntries(),
        broker.enqueueEvents('e', 0, 1),
        broker.getTask('default', 'a'),
        broker.pauseQueue('default'),
        broker.resumeQueue('default'),
        broker.ping(),
      ];
      const reasons = (await Promise.allSettled(calls)).map(
        (call) => (call.status === 'rejected' ? call.reason : 'resolved') as unknown,
      );
      for (const reason of reasons) expect(reason).toBeInstanceOf(ClosedError);
    });
  });
}
