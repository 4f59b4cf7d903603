import { describe, expect } from 'vitest';
import { request } from '../../support/messages.js';
import type { DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';

const A = { queue: 'other', id: 'a' };

/** `b` waits for `a` of another queue, and `c` for `b`. */
async function arrange(session: LinkSession): Promise<void> {
  await session.driver.add({ id: 'a', queue: 'other' });
  await session.enqueueAfter(session.waiting('b', [A]));
  await session.enqueueAfter(session.waiting('c', [{ queue: 'default', id: 'b' }]));
  await session.relay();
}

export function exerciseOperators(it: DriverTest): void {
  describe('what an operator does to linked tasks', () => {
    it.for(['archive', 'delete'] as const)('%s of a prerequisite is its failure', async (action, { driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.act(action, 'a', 'other');
      await session.relay();
      expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual(['archived', 'archived']);
      expect(await session.errorOf('c')).toBe(
        `asynq: prerequisite failed: task "a" of queue "other": ${action === 'archive' ? 'archived' : 'deleted'}`,
      );
    });

    it.for(['archive', 'delete'] as const)(
      '%s of a prerequisite is found by the keeper',
      async (action, { driver }) => {
        const session = new LinkSession(driver);
        await arrange(session);
        expect(await driver.broker.administration.moveTasks('other', action, ['a'])).toEqual(['moved']);
        await session.keep();
        expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual(['archived', 'archived']);
      },
    );

    it('a second failure is told to those who came after the first', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.act('archive', 'a', 'other');
      await session.relay();
      await session.act('run', 'a', 'other');
      await session.enqueueAfter(session.waiting('late', [A]));
      expect(await driver.broker.administration.moveTasks('other', 'archive', ['a'])).toEqual(['moved']);
      await session.keep();
      expect(await session.stateOf('late')).toBe('archived');
    });

    it('a waiting task that is run skips its wait', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.act('run', 'b');
      expect(await session.stateOf('b')).toBe('pending');
      await session.runNext();
      expect(await session.stateOf('c')).toBe('pending');
      await session.runNext('done', 'other');
      await session.keep();
      expect(await session.stateOf('b')).toBeUndefined();
    });

    it('a waiting task that is run, and tried again, does not wait again', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.act('run', 'b');
      const { lease, message } = await driver.takeOne();
      const retry = { kind: 'retry', lease, message, retryAt: driver.now + 5, countAsFailure: true } as const;
      await driver.exchange([retry], 0);
      driver.clock.advance(5_000);
      await driver.broker.maintenance.forward('default');
      expect(await session.stateOf('b')).toBe('pending');
      expect((await driver.queue()).groupNames).toEqual([]);
    });

    it.for(['archive', 'delete'] as const)('%s of a waiting task ends its wait', async (action, { driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.act(action, 'b');
      expect(await session.stateOf('c')).toBe('archived');
      await session.runNext('done', 'other');
      await session.relay();
      expect(await session.stateOf('b')).toBe(action === 'archive' ? 'archived' : undefined);
      expect(await session.stateOf('c')).toBe('archived');
    });

    it('a cancelled task that is run by hand runs', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.runNext('archive', 'other');
      await session.relay();
      await session.act('run', 'b');
      await session.runNext();
      expect(await session.stateOf('c')).toBe('pending');
    });

    it('lists, counts and finds waiting tasks, and puts none off', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      const { tasks } = await driver.broker.listing.listTasks('default', { state: 'waiting', size: 10 });
      expect(tasks.map(({ message, state }) => [message.id, state])).toEqual([
        ['b', 'waiting'],
        ['c', 'waiting'],
      ]);
      const numbers = await driver.broker.inspection.describeQueue('default');
      expect(numbers).toMatchObject({ waiting: 2, aggregating: 0, groups: 0, pending: 0 });
      expect(await driver.broker.inspection.groups('default')).toEqual([]);
      const { administration, groups } = driver.broker;
      expect(await administration.rescheduleTasks('default', ['b'], driver.now + 5)).toEqual(['waiting']);
      expect(await administration.updatePayload('default', 'b', Buffer.from('new'))).toBe('updated');
      const policy = () => ({ gracePeriod: 0, maxDelay: 0, maxSize: 1 });
      expect(await groups.claimDueSets('default', policy, 10)).toEqual({ sets: [], nextDue: undefined });
      expect(await groups.listOverdueGroups('default', () => Infinity)).toEqual([]);
    });

    it('a queue that is deleted fails its tasks for those that wait for them', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      expect(await driver.broker.administration.deleteQueue('other', { force: true })).toBe('deleted');
      await session.keep();
      expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual(['archived', 'archived']);
    });

    it('a queue that is deleted takes its waiting tasks along', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      expect(await driver.broker.administration.deleteQueue('default', { force: false })).toBe('notEmpty');
      expect(await driver.broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
      expect(await session.stateOf('b')).toBeUndefined();
      await session.runNext('done', 'other');
      await session.expectNothingKept();
      expect(await driver.enqueue([request({ id: 'b' })])).toEqual(['enqueued']);
    });
  });

  describe('a place of links', () => {
    it('has something to keep as long as there are links', async ({ driver }) => {
      const session = new LinkSession(driver);
      expect(await session.links.places()).toEqual([]);
      await arrange(session);
      expect((await session.links.places()).toSorted()).toEqual(['default', 'other']);
      await session.runNext('done', 'other');
      await session.relay();
      await session.runNext();
      await session.runNext();
      await session.expectNothingKept();
      expect(await session.links.keep('default', 0)).toEqual({ parcels: [], settled: 0, late: 0, empty: true });
    });

    it('is kept by one at a time', async ({ driver }) => {
      const { links } = driver.broker;
      expect(await links.lease('default', 'one', 60_000)).toBe(true);
      expect(await links.lease('default', 'two', 60_000)).toBe(false);
      expect(await links.lease('default', 'one', 60_000)).toBe(true);
      expect(await links.lease('other', 'two', 60_000)).toBe(true);
    });
  });
}
