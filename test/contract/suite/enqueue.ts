import { describe, expect } from 'vitest';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { message, request } from '../../support/messages.js';
import { type DriverTest, expectUnchanged } from '../driver.js';

export function exerciseEnqueue(it: DriverTest): void {
  describe('enqueue', () => {
    it('appends to pending in the order of the batch', async ({ driver }) => {
      const first = [request({ id: 'a' }), request({ id: 'b' })];
      expect(await driver.enqueue(first)).toEqual(['enqueued', 'enqueued']);
      expect(await driver.enqueue([request({ id: 'c' })])).toEqual(['enqueued']);
      expect((await driver.queue()).pending).toEqual(['a', 'b', 'c']);
    });

    it('stores the message, the state and since when the task is pending', async ({ driver }) => {
      driver.clock.advance(123);
      const stored = message({
        headers: { trace: '1' },
        timeout: 7,
        deadline: 1_900_000_000,
        retention: 60,
        maxRetry: 3,
      });
      await driver.enqueue([{ message: stored }]);
      expect((await driver.queue()).tasks[stored.id]).toEqual({
        state: 'pending',
        message: expect.objectContaining({ ...stored, headers: expect.objectContaining({ trace: '1' }) }) as unknown,
        result: undefined,
        uniqueKey: undefined,
        group: undefined,
        pendingSince: driver.clock.now(),
      });
    });

    it('lists the queue', async ({ driver }) => {
      await driver.add({ queue: 'one' });
      await driver.add({ queue: 'two' }, { processAt: driver.now + 5 });
      await driver.add({ queue: 'three', groupKey: 'g' });
      expect((await driver.broker.inspection.queues()).sort()).toEqual(['one', 'three', 'two']);
    });

    it('schedules a task that has a time, even one that is past', async ({ driver }) => {
      const later = await driver.add({}, { processAt: driver.now + 100 });
      const past = await driver.add({}, { processAt: driver.now - 100 });
      const queue = await driver.queue();
      expect(queue.scheduled).toEqual([
        [past, driver.now - 100],
        [later, driver.now + 100],
      ]);
      expect(queue.tasks[later]).toMatchObject({ state: 'scheduled', pendingSince: undefined });
      expect(queue.pending).toEqual([]);
    });

    it('adds a task with a group to it, and lists the group', async ({ driver }) => {
      driver.clock.advance(999);
      const id = await driver.add({ groupKey: 'g:1 {x}' });
      const queue = await driver.queue();
      expect(queue.groups).toEqual({ 'g:1 {x}': [[id, driver.now]] });
      expect(queue.groupNames).toEqual(['g:1 {x}']);
      expect(queue.tasks[id]).toMatchObject({ state: 'aggregating', group: 'g:1 {x}', pendingSince: undefined });
      expect(queue.pending).toEqual([]);
    });

    it('schedules a task with a time and a group, which is in no group until it is due', async ({ driver }) => {
      const id = await driver.add({ groupKey: 'g' }, { processAt: driver.now + 1 });
      const queue = await driver.queue();
      expect(queue.scheduled).toEqual([[id, driver.now + 1]]);
      expect(queue.tasks[id]).toMatchObject({ state: 'scheduled', group: 'g', message: { groupKey: 'g' } });
      expect(queue.groups).toEqual({});
      expect(queue.groupNames).toEqual([]);
    });

    it('returns nothing for an empty batch and writes nothing', async ({ driver }) => {
      expect(await driver.enqueue([])).toEqual([]);
      expect(await driver.broker.inspection.queues()).toEqual([]);
    });

    it('keeps queues apart, also for equal ids', async ({ driver }) => {
      await driver.add({ id: 'same', queue: 'one', payload: Buffer.from('1') });
      await driver.add({ id: 'same', queue: 'two', payload: Buffer.from('2') });
      expect((await driver.takeOne('one')).message.payload.toString()).toBe('1');
      expect((await driver.queue('two')).pending).toEqual(['same']);
    });

    for (const state of STORED_STATES) {
      it(`refuses the id of a task that is ${state}, by every route`, async ({ driver }) => {
        const id = await driver.arrange(state);
        await expectUnchanged(driver, async () => {
          const requests = [
            request({ id }),
            request({ id }, { processAt: driver.now + 9 }),
            request({ id, groupKey: 'other' }),
            request({ id, groupKey: 'other' }, { processAt: driver.now + 9 }),
          ];
          expect(await driver.enqueue(requests)).toEqual(Array(4).fill('conflict'));
        });
      });
    }

    it('refuses the second of two equal ids in a batch and continues', async ({ driver }) => {
      const batch = ['a', 'b', 'a', 'c'].map((id) => request({ id }));
      expect(await driver.enqueue(batch)).toEqual(['enqueued', 'enqueued', 'conflict', 'enqueued']);
      expect((await driver.queue()).pending).toEqual(['a', 'b', 'c']);
    });

    it('takes a batch of 5,000 by all routes and returns a status for each', async ({ driver }) => {
      const batch = Array.from({ length: 5000 }, (_, index) => {
        const id = `n${index}`;
        if (index % 100 === 99) return request({ id: 'n0' });
        if (index % 10 === 1) return request({ id }, { processAt: driver.now + index });
        if (index % 10 === 3) return request({ id, groupKey: `later${index}` }, { processAt: driver.now + index });
        return request(index % 10 === 2 ? { id, groupKey: 'g' } : { id });
      });
      const statuses = await driver.enqueue(batch);
      expect(statuses).toEqual(batch.map((_, index) => (index % 100 === 99 ? 'conflict' : 'enqueued')));
      const queue = await driver.queue();
      const direct = batch.flatMap((_, index) =>
        [1, 2, 3].includes(index % 10) || index % 100 === 99 ? [] : [`n${index}`],
      );
      expect(queue.pending).toEqual(direct);
      expect(queue.scheduled).toHaveLength(1000);
      expect(queue.groups['g']).toHaveLength(500);
      expect(queue.tasks['n13']).toMatchObject({ state: 'scheduled', group: 'later13' });
    });
  });
}
