import { describe, expect } from 'vitest';
import type { Settlement } from '../../../lib/broker/broker.js';
import { request } from '../../support/messages.js';
import { done, type Driver, type DriverTest } from '../driver.js';

const claim = (driver: Driver, take: number, held: Record<string, number>, more = {}) =>
  driver.broker.consumer.exchange('default', { settle: [], take, held: new Map(Object.entries(held)), ...more });

/** Enqueues tasks and puts them into a waitlist. */
async function hold(driver: Driver, waitlist: string, ...ids: string[]): Promise<void> {
  await driver.enqueue(ids.map((id) => request({ id })));
  const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: ids.length });
  await driver.exchange(
    tasks.map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist })),
    0,
  );
}

const idsOf = (tasks: readonly { readonly lease: { readonly id: string } }[]) => tasks.map(({ lease }) => lease.id);

export function exerciseHeldClaims(it: DriverTest): void {
  describe('tasks of waitlists that an exchange claims', () => {
    it('come first, the longest waiting one before others', async ({ driver }) => {
      await hold(driver, 'limit', 'a', 'b', 'c');
      await driver.add({ id: 'new' });
      const reply = await claim(driver, 3, { limit: 2 }, { since: true });
      expect(idsOf(reply.tasks)).toEqual(['a', 'b', 'new']);
      expect(reply).toMatchObject({ backlog: 0, limitedFor: 0 });
      expect(reply.held).toEqual(new Map([['limit', { claimed: 2, left: 1 }]]));
      expect(reply.tasks[0]).toMatchObject({ pendingSince: driver.clock.now() });
      expect(await driver.queue()).toMatchObject({ pending: [], retry: [['c', driver.now + 60]] });
      expect((await driver.queue()).active.toSorted()).toEqual(['a', 'b', 'new']);
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({ held: 1, active: 3, retry: 0 });
    });

    it('are settled like any other, in the same call as more are claimed', async ({ driver }) => {
      await hold(driver, 'limit', 'a', 'b');
      const { tasks } = await claim(driver, 1, { limit: 1 });
      const reply = await claim(driver, 1, { limit: 1 }, { settle: tasks.map(done) });
      expect(reply).toMatchObject({ settled: ['settled'], tasks: [{ lease: { id: 'b' } }] });
      expect(reply.held).toEqual(new Map([['limit', { claimed: 1, left: 0 }]]));
      await driver.settle(...reply.tasks.map(done));
      expect(await driver.queue()).toMatchObject({ pending: [], active: [], lease: [], retry: [], processed: 2 });
      expect(await driver.broker.limiting.findWaitlists('default', '')).toEqual({ names: [], cursor: '' });
    });

    it('are as many as are wanted of each, and in all', async ({ driver }) => {
      await hold(driver, 'one', 'a', 'b');
      await hold(driver, 'other', 'x', 'y');
      await driver.add();
      const reply = await claim(driver, 3, { one: 2, none: 5, other: 9 });
      expect(idsOf(reply.tasks)).toEqual(['a', 'b', 'x']);
      expect(reply.held).toEqual(
        new Map([
          ['one', { claimed: 2, left: 0 }],
          ['none', { claimed: 0, left: 0 }],
          ['other', { claimed: 1, left: 1 }],
        ]),
      );
    });

    it('come beside those that are taken, as far as they are ahead', async ({ driver }) => {
      await hold(driver, 'limit', 'a', 'b', 'c', 'd');
      await driver.enqueue([request({ id: 'x' }), request({ id: 'y' })]);
      expect(idsOf((await claim(driver, 0, { limit: 1 }, { ahead: 1 })).tasks)).toEqual(['a']);
      expect(idsOf((await claim(driver, 1, { limit: 2 }, { ahead: 1 })).tasks)).toEqual(['b', 'c']);
      expect(idsOf((await claim(driver, 1, { limit: 2 }, { ahead: 2 })).tasks)).toEqual(['d', 'x']);
      expect(idsOf((await claim(driver, 1, { limit: 5 }, { ahead: 4 })).tasks)).toEqual(['y']);
    });

    it('are none of an empty waitlist, though tasks are pending', async ({ driver }) => {
      await driver.add({ id: 'new' });
      const reply = await claim(driver, 2, { limit: 1 });
      expect(idsOf(reply.tasks)).toEqual(['new']);
      expect(reply.held).toEqual(new Map([['limit', { claimed: 0, left: 0 }]]));
    });

    it('are none that have left their waitlist', async ({ driver }) => {
      await hold(driver, 'limit', 'run', 'deleted', 'archived', 'waits');
      await driver.broker.administration.moveTasks('default', 'run', ['run']);
      await driver.broker.administration.moveTasks('default', 'delete', ['deleted']);
      await driver.broker.administration.moveTasks('default', 'archive', ['archived']);
      const reply = await claim(driver, 9, { limit: 9 });
      expect(idsOf(reply.tasks)).toEqual(['waits', 'run']);
      expect(reply.held).toEqual(new Map([['limit', { claimed: 1, left: 0 }]]));
    });

    it('stay while the queue is paused, or a limit of the queue is reached', async ({ driver }) => {
      await hold(driver, 'limit', 'a', 'b');
      await driver.broker.administration.pauseQueue('default');
      expect(await claim(driver, 9, { limit: 1 })).toMatchObject({ tasks: [] });
      await driver.broker.administration.resumeQueue('default');
      const limits = { active: 1, rate: 0, window: 1 };
      expect(idsOf((await claim(driver, 9, { limit: 9 }, { limits })).tasks)).toEqual(['a']);
      const reply = await claim(driver, 9, { limit: 9 }, { limits });
      expect(reply).toMatchObject({ tasks: [], limitedFor: 100 });
      expect(reply.held).toBeUndefined();
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({ held: 1 });
    });

    it('go with tasks that are put aside, of the same type, too', async ({ driver }) => {
      await hold(driver, 'limit', 'a', 'b');
      await driver.enqueue([request({ id: 'late' }), request({ id: 'wide', type: 'wide' })]);
      const { type } = request().message;
      const reply = await claim(driver, 2, { limit: 1 }, { aside: new Map([[type, 'limit']]) });
      expect(idsOf(reply.tasks)).toEqual(['a', 'wide']);
      expect([reply.aside, reply.held]).toEqual([new Map([[type, 1]]), new Map([['limit', { claimed: 1, left: 1 }]])]);
      expect(idsOf((await claim(driver, 9, { limit: 9 })).tasks)).toEqual(['b', 'late']);
    });

    it('make tasks that wait for nothing be claimed, and not put aside, as far as their waitlist has too few', async ({
      driver,
    }) => {
      await hold(driver, 'limit', 'a');
      await driver.enqueue(['x', 'y', 'z'].map((id) => request({ id })));
      const { type } = request().message;
      const reply = await claim(driver, 9, { limit: 3 }, { aside: new Map([[type, 'limit']]) });
      expect(idsOf(reply.tasks)).toEqual(['a', 'x', 'y']);
      expect([reply.aside, reply.held]).toEqual([new Map([[type, 1]]), new Map([['limit', { claimed: 1, left: 0 }]])]);
    });

    it('are recovered when their server dies, and wait no more', async ({ driver }) => {
      await hold(driver, 'limit', 'a');
      await claim(driver, 1, { limit: 1 });
      driver.clock.advance(70_000);
      expect(await driver.broker.maintenance.forward('default')).toMatchObject({ moved: 0 });
      const { tasks } = await driver.broker.maintenance.listExpiredLeases('default', driver.now - 30, 10);
      expect(idsOf(tasks)).toEqual(['a']);
    });
  });
}
