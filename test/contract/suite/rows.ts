import { describe, expect } from 'vitest';
import type { LinkedRequest } from '../../../lib/broker/links.js';
import type { Row } from '../../../lib/broker/rows.js';
import type { RepeatRequest } from '../../../lib/broker/uniqueness.js';
import { repeat, request } from '../../support/messages.js';
import type { Driver, DriverTest } from '../driver.js';

const rows = (...numbers: number[]): Row[] =>
  numbers.map((number) => ({ number, request: request({ id: `row-${number}` }) }));

const waiting = (number: number): Row<LinkedRequest> => ({
  number,
  request: {
    ...request({ id: `linked-${number}` }),
    wait: { prerequisites: [{ type: 't', key: 'k' }], onFailure: 'cancel', onTimeout: 'archive', deadline: 2 ** 32 },
  },
});

export function exerciseRows(it: DriverTest): void {
  describe('rows of an outbox', () => {
    const pending = async (driver: Driver) => (await driver.queue()).pending;

    it('become tasks in their order, as enqueue makes them', async ({ driver }) => {
      const { broker, now } = driver;
      const made = await broker.rows.enqueue('default', 's', [
        ...rows(7, 8),
        { number: 11, request: request({ id: 'later' }, { processAt: now + 5 }) },
        { number: 12, request: request({ id: 'member', groupKey: 'g' }) },
        { number: 13, request: request({ id: 'row-7' }) },
      ]);
      expect(made).toEqual(['enqueued', 'enqueued', 'enqueued', 'enqueued', 'conflict']);
      const queue = await driver.queue();
      expect(queue.pending).toEqual(['row-7', 'row-8']);
      expect(queue.scheduled).toEqual([['later', now + 5]]);
      expect(queue.groupNames).toEqual(['g']);
      expect(await broker.inspection.queues()).toEqual(['default']);
    });

    it('are left out when they come again, also after their tasks are gone', async ({ driver }) => {
      const { broker } = driver;
      await broker.rows.enqueue('default', 's', rows(1, 2));
      await broker.administration.deleteQueue('default', { force: true });
      expect(await broker.rows.enqueue('default', 's', rows(1, 2))).toEqual(['enqueued', 'enqueued']);
      expect((await driver.queue()).tasks).toEqual({});
      expect(await broker.rows.enqueue('default', 's', rows(1, 2, 3, 4))).toEqual(new Array(4).fill('enqueued'));
      expect(await pending(driver)).toEqual(['row-3', 'row-4']);
      expect(await broker.rows.enqueue('default', 's', rows(2))).toEqual(['enqueued']);
      expect(await pending(driver)).toEqual(['row-3', 'row-4']);
    });

    it('are counted by sender and by queue', async ({ driver }) => {
      const { broker } = driver;
      await broker.rows.enqueue('default', 's', rows(5));
      await broker.rows.enqueue('default', 'other', rows(4));
      await broker.rows.enqueue('mail', 's', [{ number: 3, request: request({ id: 'm', queue: 'mail' }) }]);
      expect(await pending(driver)).toEqual(['row-5', 'row-4']);
      expect((await driver.queue('mail')).pending).toEqual(['m']);
    });

    it('are refused when the queue has a number that their database has not given, and nothing is done', async ({
      driver,
    }) => {
      const { broker } = driver;
      await broker.rows.enqueue('default', 's', rows(7));
      expect(await broker.rows.enqueue('default', 's', rows(6), 7)).toEqual(['enqueued']);
      await expect(broker.rows.enqueue('default', 's', rows(5, 6), 6)).rejects.toThrow(
        'queue "default" has got row number 7 of the sender "s", which its database knows nothing of',
      );
      expect(await pending(driver)).toEqual(['row-7']);
      const one = { number: 9, request: repeat('once', 'a', { lock: 'one' }) };
      await broker.rows.enqueueRepeats('default', 's', [one], 9);
      await expect(broker.rows.enqueueRepeats('default', 's', [{ ...one, number: 8 }], 8)).rejects.toThrow('number 9');
    });

    it('have numbers beyond 53 bits of milliseconds: microseconds since the epoch', async ({ driver }) => {
      const { broker } = driver;
      await broker.rows.enqueue('default', 's', rows(1_800_000_000_000_001));
      await broker.rows.enqueue('default', 's', rows(1_800_000_000_000_001, 1_800_000_000_000_002));
      expect(await pending(driver)).toEqual(['row-1800000000000001', 'row-1800000000000002']);
    });

    it('with a policy for repeats do what it says, and are left out when they come again', async ({ driver }) => {
      const { broker, now } = driver;
      const numbered = (...requests: RepeatRequest[]) => requests.map((one, at) => ({ number: at + 1, request: one }));
      const of = numbered(
        repeat('existing', 'a', { lock: 'e' }),
        repeat('existing', 'b', { lock: 'e' }),
        repeat('reject', 'c', { lock: 'r' }),
        repeat('reject', 'd', { lock: 'r' }),
        repeat('debounce', 'f', { lock: 'd', processAt: now + 9, payload: 'old' }),
        repeat('debounce', 'g', { lock: 'd', processAt: now + 10, payload: 'new' }),
        repeat('once', 'h'),
        repeat('once', 'h'),
      );
      const { statuses, parcels } = await broker.rows.enqueueRepeats('default', 's', of);
      expect(parcels).toEqual([]);
      expect(statuses.map(({ status, owner }) => [status, owner?.id])).toEqual([
        ['enqueued', undefined],
        ['existing', 'a'],
        ['enqueued', undefined],
        ['duplicate', 'c'],
        ['enqueued', undefined],
        ['replaced', 'f'],
        ['enqueued', undefined],
        ['existing', 'once-one'],
      ]);
      const before = await driver.queue();
      expect(before.pending).toEqual(['a', 'c', 'once-one']);
      expect(before.scheduled).toEqual([['f', now + 10]]);
      expect(String(before.tasks['f']?.message.payload)).toBe('new');
      await broker.administration.deleteQueue('default', { force: true });
      const further = { number: 9, request: repeat('existing', 'i', { lock: 'e' }) };
      const again = await broker.rows.enqueueRepeats('default', 's', [...of, further]);
      expect(again.statuses).toEqual(Array.from({ length: 9 }, () => ({ status: 'enqueued' })));
      expect(Object.keys((await driver.queue()).tasks)).toEqual(['i']);
      expect((await broker.rows.enqueue('default', 's', rows(1)))[0]).toBe('enqueued');
      expect((await driver.queue()).pending).toEqual(['i', 'row-1']);
    });

    it('of latest follow what runs, once, and supersede cancels it, once', async ({ driver }) => {
      const { broker } = driver;
      for (const policy of ['latest', 'supersede'] as const) {
        const send = (number: number, id: string) =>
          broker.rows.enqueueRepeats('default', policy, [{ number, request: repeat(policy, id, { lock: policy }) }]);
        await send(1, `${policy}-1`);
        await driver.takeOne();
        const made = await send(2, `${policy}-2`);
        expect(made.statuses).toMatchObject([{ status: 'enqueued' }]);
        await broker.administration.moveTasks('default', 'delete', [`${policy}-2`]);
        expect((await send(2, `${policy}-2`)).statuses).toEqual([{ status: 'enqueued' }]);
        expect((await driver.queue()).tasks[`${policy}-2`]).toBeUndefined();
        expect((await send(3, `${policy}-3`)).statuses).toMatchObject([{ status: 'enqueued' }]);
      }
      expect(await broker.links.waitOf('default', 'latest-3')).toMatchObject({ cancelled: false });
      // Its owner was gone when the third came.
      expect(await broker.uniqueness.findSuperseded('default', ['supersede-1'])).toEqual(['supersede-2']);
    });

    it('with links are left out, too, and have numbers of their own', async ({ driver }) => {
      const { broker } = driver;
      await broker.rows.enqueue('default', 's', rows(2));
      expect((await broker.rows.enqueueLinked('default', 's', [waiting(1), waiting(3)])).statuses).toEqual([
        'enqueued',
        'enqueued',
      ]);
      expect(await broker.links.waitOf('default', 'linked-1')).toMatchObject({ cancelled: false });
      await broker.administration.moveTasks('default', 'delete', ['linked-1', 'linked-3']);
      const again = await broker.rows.enqueueLinked('default', 's', [waiting(1), waiting(3), waiting(4)]);
      expect(again.statuses).toEqual(['enqueued', 'enqueued', 'enqueued']);
      expect(Object.keys((await driver.queue()).tasks).sort()).toEqual(['linked-4', 'row-2']);
    });
  });
}
