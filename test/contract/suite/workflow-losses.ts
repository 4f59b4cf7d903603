import { describe, expect } from 'vitest';
import type { NewStep } from '../../../lib/broker/workflows.js';
import type { DriverTest } from '../driver.js';
import { RunSession, step } from '../run-session.js';

/** From queue to queue, with a step that waits for two. */
const STEPS: NewStep[] = [
  step('a', { message: { queue: 'one' } }),
  step('b', { message: { queue: 'two' }, after: ['a'] }),
  step('c', { after: ['a'] }),
  step('d', { message: { queue: 'one' }, after: ['b', 'c'] }),
];

const END: [string, string] = ['succeeded', 'a:succeeded b:succeeded c:succeeded d:succeeded'];

export function exerciseRunLosses(it: DriverTest): void {
  describe('a run whose parcels', () => {
    it('come twice, the last first', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.begin(STEPS);
      await session.relay(2);
      for (const name of ['a', 'b', 'c', 'd']) {
        await session.settle(name);
        await session.relay(3);
      }
      expect(await session.states()).toEqual(END);
      expect([...(await driver.take(5)), ...(await driver.take(5, 'one')), ...(await driver.take(5, 'two'))]).toEqual(
        [],
      );
      await session.expectNothingLeft();
    });

    it('come again when all is over, does nothing twice', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.begin(STEPS);
      const again = async (): Promise<void> => {
        for (const parcel of session.sent.toReversed()) session.took(await session.links.deliver(parcel.to, [parcel]));
        await session.relay();
      };
      for (const name of ['a', 'b', 'c', 'd']) {
        await again();
        await session.settle(name);
        await again();
      }
      expect(await session.states()).toEqual(END);
      expect([...(await driver.take(5)), ...(await driver.take(5, 'one')), ...(await driver.take(5, 'two'))]).toEqual(
        [],
      );
      await session.expectNothingLeft();
      await again();
      expect([...(await driver.take(5)), ...(await driver.take(5, 'one')), ...(await driver.take(5, 'two'))]).toEqual(
        [],
      );
    });

    it('come again when its failed step has been run again, does that once', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start(STEPS);
      await session.fail('a');
      session.took(await session.workflows.retry('default', 'wf:1'));
      await session.relay();
      await session.finish('a');
      for (const parcel of session.sent.toReversed()) session.took(await session.links.deliver(parcel.to, [parcel]));
      await session.relay();
      expect(await driver.take(5, 'one')).toEqual([]);
      await session.finish('b', 'c', 'd');
      expect(await session.states()).toEqual(END);
    });

    it('are all lost goes on by the passes of the keeper', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.begin(STEPS);
      for (const name of ['a', 'b', 'c', 'd']) {
        session.lose();
        await session.keep();
        await session.settle(name);
        session.lose();
        await session.keep();
      }
      expect(await session.states()).toEqual(END);
      await session.expectNothingLeft();
    });

    it('are delivered without an acknowledgement come again', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start(STEPS);
      for (const name of ['a', 'b', 'c', 'd']) {
        await session.settle(name);
        await session.deliverOnly();
        await session.keep();
      }
      expect(await session.states()).toEqual(END);
      await session.expectNothingLeft();
    });
  });

  describe('a run whose id is used again', () => {
    const OTHER = { message: { queue: 'other' } };

    it('does not take the end of a step of the earlier run for its own', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a', OTHER), step('b', { after: ['a'] })]);
      await session.finish('a');
      const late = [...session.sent];
      session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
      await session.relay();
      expect((await session.workflows.delete('default', 'wf:1')).status).toBe('deleted');
      driver.clock.advance(1);
      await session.start([step('a', OTHER), step('b', { after: ['a'] })]);
      for (const parcel of late) session.took(await session.links.deliver(parcel.to, [parcel]));
      await session.relay();
      expect(await session.states()).toEqual(['running', 'a:ready b:waiting']);
      await session.finish('a', 'b');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    });

    it('keeps its task when the earlier run takes leave of its own late', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a', OTHER), step('b', OTHER)]);
      await session.fail('a');
      await session.settle('b', 'archive');
      await session.relay();
      session.took(await session.workflows.delete('default', 'wf:1'));
      const drops = session.sent.filter(({ key }) => key.startsWith('other drop'));
      await session.relay();
      driver.clock.advance(1);
      await session.start([step('a', OTHER), step('b', OTHER)]);
      await session.fail('a');
      for (const parcel of drops) session.took(await session.links.deliver(parcel.to, [parcel]));
      await session.relay();
      expect(await session.stateOf('wf:1~a', 'other')).toBe('archived');
      await session.finish('b');
      session.took(await session.workflows.retry('default', 'wf:1'));
      await session.relay();
      await session.finish('a');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    });
  });

  describe('the task of a step', () => {
    it('is told to all who watch it when it is gone and its run asks first', async ({ driver }) => {
      const session = new RunSession(driver);
      const OTHER = { message: { queue: 'other' } };
      await session.start([step('a', OTHER)]);
      await session.enqueueAfter(session.waiting('w', [{ queue: 'other', id: 'wf:1~a' }]));
      await driver.broker.administration.moveTasks('other', 'delete', ['wf:1~a']);
      driver.clock.advance(600_000);
      session.took(await session.links.keep('default', 0));
      await session.relay();
      await session.keep();
      expect(await session.stateOf('w')).toBe('archived');
      expect(await session.states()).toEqual(['failed', 'a:failed']);
      await session.expectNothingLeft();
    });

    it('is that of one run, not of one of the same id that is kept in another queue', async ({ driver }) => {
      const session = new RunSession(driver);
      const OTHER = { message: { queue: 'other' } };
      await session.start([step('a', OTHER), step('b', { after: ['a'] })]);
      const { workflows } = session;
      const second = session.newRun([step('a', OTHER), step('b', { after: ['a'] })]);
      session.took(await workflows.start('second', [second]));
      await session.relay();
      expect(await workflows.summary('second', 'wf:1')).toMatchObject({ state: 'failed', open: 0, failed: 1 });
      expect(await session.states()).toEqual(['running', 'a:ready b:waiting']);
      session.took(await workflows.delete('second', 'wf:1'));
      await session.relay();
      await session.finish('a', 'b');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    });
  });

  describe('a run', () => {
    it.for(['default', 'one'])('ends when the queue %s is deleted', async (queue, { driver }) => {
      const session = new RunSession(driver);
      const later = { request: { processAt: driver.now + 60 } };
      const first = step('a', { message: { queue }, ...later });
      await session.start([first, step('b', { after: ['a'] }), step('c', { message: { queue: 'two' } })]);
      expect(await driver.broker.administration.deleteQueue(queue, { force: true })).toBe('deleted');
      await session.finish('c');
      driver.clock.advance(600_000);
      await session.keep();
      expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled c:succeeded']);
      await session.expectNothingLeft();
    });

    it('keeps its queue from being deleted, and, when that is forced, listed until it is deleted itself', async ({
      driver,
    }) => {
      const { administration, inspection } = driver.broker;
      const session = new RunSession(driver);
      await session.start([step('a', { message: { queue: 'one' } }), step('b', { after: ['a'] })]);
      expect(await administration.deleteQueue('default', { force: false })).toBe('kept');
      expect(await administration.deleteQueue('default', { force: true })).toBe('deleted');
      expect(await inspection.queues()).toContain('default');
      await session.finish('a', 'b');
      expect(await session.states()).toEqual(['succeeded', 'a:succeeded b:succeeded']);
      await session.expectNothingLeft();
      expect(await administration.deleteQueue('default', { force: false })).toBe('deleted');
      expect(await inspection.queues()).not.toContain('default');
    });

    it('has a queue listed again that was deleted before its step began there', async ({ driver }) => {
      const { administration, inspection } = driver.broker;
      const session = new RunSession(driver);
      await session.start([step('a'), step('b', { message: { queue: 'one' }, after: ['a'] })]);
      expect(await administration.deleteQueue('one', { force: false })).toBe('deleted');
      expect(await inspection.queues()).not.toContain('one');
      await session.finish('a');
      await session.keep();
      expect(await inspection.queues()).toContain('one');
    });
  });
}
