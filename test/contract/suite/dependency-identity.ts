import { describe, expect } from 'vitest';
import type { DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';

const A = { queue: 'other', id: 'a' };

/** Ids are used again: the task of every hour has the same one. */
export function exerciseUsedIds(it: DriverTest): void {
  describe('a waiting task whose id is used again', () => {
    it.for(['run', 'delete'] as const)(
      'waits, although the prerequisite of an earlier one ended after somebody had %s it',
      async (action, { driver }) => {
        const session = new LinkSession(driver);
        await driver.add({ id: 'a', queue: 'other' });
        await session.enqueueAfter(session.waiting('b', [A]));
        await session.relay();
        await session.act(action, 'b');
        if (action === 'run') await session.runNext();
        await session.runNext('done', 'other');
        await session.relay();

        driver.clock.advance(3_600_000);
        await driver.add({ id: 'a', queue: 'other' });
        await session.enqueueAfter(session.waiting('b', [A]));
        await session.relay();
        expect(await session.stateOf('b')).toBe('waiting');
        await session.runNext('done', 'other');
        await session.relay();
        expect(await session.stateOf('b')).toBe('pending');
      },
    );
  });

  describe('tasks whose ids look like those of a batch and of its members', () => {
    it('tell all who wait for them', async ({ driver }) => {
      const session = new LinkSession(driver);
      const ids = ['batch-2030', 'batch-2030~7', 'batch-2030~8'];
      for (const id of ids) {
        await driver.add({ id, queue: 'other' });
        await session.enqueueAfter(session.waiting(`after ${id}`, [{ queue: 'other', id }]));
        await session.relay();
      }
      for (const task of await driver.take(ids.length, 'other')) {
        await session.end(task, 'done');
        await session.relay();
        expect(await session.stateOf(`after ${task.lease.id}`)).toBe('pending');
      }
    });
  });
}
