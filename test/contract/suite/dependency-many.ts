import { describe, expect } from 'vitest';
import { request } from '../../support/messages.js';
import type { Driver, DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';

const MARK = { type: 'pay', key: 'k' };
const MANY = 5_000;

/** Tasks of one queue, each after another one of them or after `first`, stored in one call each. */
async function submit(session: LinkSession, prerequisiteOf: (n: number) => string): Promise<void> {
  const waiting = Array.from({ length: MANY }, (_, n) =>
    session.waiting(`t${n}`, [{ queue: 'default', id: prerequisiteOf(n) }]),
  );
  await session.enqueue(...waiting);
  const requests = waiting.map((_, n) => ({
    id: prerequisiteOf(n),
    waiting: session.edge(`t${n}`),
  }));
  expect(session.took(await session.links.watch('default', requests)).found).not.toContain('missing');
}

const countOf = async (driver: Driver, state: 'pending' | 'archived' | 'waiting'): Promise<number> =>
  (await driver.broker.inspection.describeQueue('default'))[state];

export function exerciseManyDependencies(it: DriverTest): void {
  describe('many dependencies', () => {
    it('waits for all of many prerequisites, which end in any order', async ({ driver }) => {
      const session = new LinkSession(driver);
      const tasks = Array.from({ length: 60 }, (_, n) => ({ queue: n % 2 === 0 ? 'default' : 'other', id: `a${n}` }));
      const marks = Array.from({ length: 60 }, (_, n) => ({ type: 'pay', key: `k${n}` }));
      await driver.enqueue(
        tasks.filter(({ queue }) => queue === 'default').map(({ id, queue }) => request({ id, queue })),
      );
      await driver.enqueue(
        tasks.filter(({ queue }) => queue === 'other').map(({ id, queue }) => request({ id, queue })),
        'other',
      );
      await session.enqueueAfter(session.waiting('b', [...tasks, ...marks]));
      await session.enqueue(...marks.map(({ key }) => session.marked(`m${key}`, key)));
      await session.relay();
      const all = [...(await driver.take(200)), ...(await driver.take(200, 'other'))];
      expect(all).toHaveLength(120);
      const [last, ...others] = all.toReversed();
      for (const task of others) await session.end(task, 'done');
      await session.relay();
      expect(await session.stateOf('b')).toBe('waiting');
      await session.end(last!, 'done');
      await session.relay();
      expect(await session.stateOf('b')).toBe('pending');
      expect(new Set(await session.edgesOf('b'))).toEqual(new Set(['succeeded']));
    });

    it('is one of many that wait for the same, in several queues', async ({ driver }) => {
      const session = new LinkSession(driver);
      const ids = Array.from({ length: 100 }, (_, n) => `b${n}`);
      await driver.add({ id: 'a' });
      for (const [n, id] of ids.entries()) {
        const message = { queue: n % 2 === 0 ? 'default' : 'other' };
        const prerequisite = n % 3 === 0 ? MARK : { queue: 'default', id: 'a' };
        await session.enqueueAfter(session.waiting(id, [prerequisite], { message }));
      }
      await session.enqueue(session.marked('m', 'k'));
      await session.relay();
      await session.runNext();
      await session.runNext();
      await session.relay();
      expect((await driver.take(200)).length + (await driver.take(200, 'other')).length).toBe(100);
    });

    it('waits twice for the same as for one', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a' });
      const prerequisite = { queue: 'default', id: 'a' };
      await session.enqueueAfter(session.waiting('b', [prerequisite, prerequisite]));
      await session.runNext();
      expect(await session.stateOf('b')).toBe('pending');
    });

    it('are released at once when they are those of one task', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'first' });
      await submit(session, () => 'first');
      expect(await countOf(driver, 'waiting')).toBe(MANY);
      await session.runNext();
      await session.relay();
      expect(await countOf(driver, 'pending')).toBe(MANY);
    });

    it('are cancelled and revived along a long chain', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'first' });
      await submit(session, (n) => (n === 0 ? 'first' : `t${n - 1}`));
      await session.runNext('archive');
      await session.relay();
      expect(await countOf(driver, 'archived')).toBe(MANY + 1);
      expect(await session.errorOf(`t${MANY - 1}`)).toBe(
        'asynq: prerequisite failed: task "first" of queue "default": boom',
      );
      await session.act('run', 'first');
      for (const id of ['first', 't0', 't1']) expect(await session.runNext()).toBe(id);
      expect(await countOf(driver, 'archived')).toBe(MANY - 3);
    });
  });
}
