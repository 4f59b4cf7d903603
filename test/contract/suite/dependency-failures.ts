import { describe, expect } from 'vitest';
import type { DriverTest } from '../driver.js';
import { type Ending, LinkSession } from '../link-session.js';

const A = { queue: 'other', id: 'a' };
const FAILURES: readonly Ending[] = ['archive', 'revoke'];

/** A prerequisite in another queue, and one waiting task per policy. */
async function arrange(session: LinkSession): Promise<void> {
  await session.driver.add({ id: 'a', queue: 'other' });
  for (const onFailure of ['cancel', 'run', 'wait'] as const) {
    await session.enqueueAfter(session.waiting(onFailure, [A], { onFailure }));
  }
  await session.relay();
}

const statesOf = (session: LinkSession): Promise<unknown[]> =>
  Promise.all(['cancel', 'run', 'wait'].map((id) => session.stateOf(id)));

export function exerciseFailedPrerequisites(it: DriverTest): void {
  describe('a task whose prerequisite failed', () => {
    it.for(FAILURES)('is archived, runs or waits on: %s', async (ending, { driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.runNext(ending, 'other');
      await session.relay();
      expect(await statesOf(session)).toEqual(['archived', 'pending', 'waiting']);
      const why = ending === 'archive' ? 'boom' : 'revoked';
      expect(await session.errorOf('cancel')).toBe(`asynq: prerequisite failed: task "a" of queue "other": ${why}`);
      expect(await session.links.waitOf('default', 'cancel')).toMatchObject({
        edges: [{ prerequisite: A, state: 'failed', reason: why }],
        deadline: undefined,
        cancelled: true,
      });
    });

    it('is revived by a rerun that succeeds', async ({ driver }) => {
      const session = new LinkSession(driver);
      await arrange(session);
      await session.runNext('archive', 'other');
      await session.relay();
      await session.act('run', 'a', 'other');
      await session.relay();
      expect(await statesOf(session)).toEqual(['archived', 'pending', 'waiting']);
      await session.runNext('archive', 'other');
      await session.relay();
      await session.act('run', 'a', 'other');
      await session.runNext('done', 'other');
      await session.relay();
      expect(await statesOf(session)).toEqual(['pending', 'pending', 'pending']);
      expect((await session.links.waitOf('default', 'cancel'))?.cancelled).toBe(false);
      expect((await driver.take(9)).map(({ lease }) => lease.id).toSorted()).toEqual(['cancel', 'run', 'wait']);
    });

    it('is revived once all that it waits for have succeeded', async ({ driver }) => {
      const session = new LinkSession(driver);
      for (const id of ['a1', 'a2', 'a3']) await driver.add({ id });
      await session.enqueueAfter(
        session.waiting(
          'b',
          ['a1', 'a2', 'a3'].map((id) => ({ queue: 'default', id })),
        ),
      );
      await session.runNext('archive');
      await session.runNext('archive');
      for (const id of ['a1', 'a2']) {
        await session.act('run', id);
        expect(await session.stateOf('b')).toBe('archived');
      }
      for (const state of ['archived', 'archived', 'pending']) {
        await session.runNext();
        expect(await session.stateOf('b')).toBe(state);
      }
    });

    it('ends those that wait for it, with the first reason, and revives them', async ({ driver }) => {
      const session = new LinkSession(driver);
      const queueOf = (n: number): string => (n % 2 === 0 ? 'other' : 'default');
      await driver.add({ id: 't0', queue: 'other' });
      for (let n = 1; n <= 20; n++) {
        const before = { queue: queueOf(n - 1), id: `t${n - 1}` };
        await session.enqueueAfter(session.waiting(`t${n}`, [before], { message: { queue: queueOf(n) } }));
      }
      await session.runNext('archive', 'other');
      await session.relay();
      for (let n = 1; n <= 20; n++) {
        expect(await session.stateOf(`t${n}`, queueOf(n))).toBe('archived');
        expect(await session.errorOf(`t${n}`, queueOf(n))).toBe(
          'asynq: prerequisite failed: task "t0" of queue "other": boom',
        );
      }
      await session.act('run', 't0', 'other');
      for (let n = 0; n <= 20; n++) {
        expect(await session.runNext('done', queueOf(n))).toBe(`t${n}`);
        await session.relay();
      }
    });

    it('is not revived when it was run by hand and failed itself', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a' });
      await session.enqueueAfter(session.waiting('b', [{ queue: 'default', id: 'a' }]));
      await session.runNext('archive');
      await session.act('run', 'b');
      driver.clock.advance(1_000);
      expect(await session.runNext('archive', 'default', 'my own')).toBe('b');
      await session.act('run', 'a');
      await session.runNext();
      expect(await session.stateOf('b')).toBe('archived');
      expect(await session.errorOf('b')).toBe('my own');
    });

    it('runs all the same only when every other prerequisite has ended, too', async ({ driver }) => {
      const session = new LinkSession(driver);
      for (const id of ['a1', 'a2', 'a3']) await driver.add({ id });
      const prerequisites = ['a1', 'a2', 'a3'].map((id) => ({ queue: 'default', id }));
      await session.enqueueAfter(session.waiting('b', prerequisites, { onFailure: 'run' }));
      await session.runNext('archive');
      await session.runNext('done');
      expect(await session.stateOf('b')).toBe('waiting');
      await session.runNext('revoke');
      expect(await session.stateOf('b')).toBe('pending');
      expect(await session.edgesOf('b')).toEqual(['failed', 'succeeded', 'failed']);
    });

    it('may be submitted after the failure', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a', queue: 'other' });
      await session.runNext('archive', 'other');
      for (const onFailure of ['cancel', 'run', 'wait'] as const) {
        expect(await session.enqueueAfter(session.waiting(onFailure, [A], { onFailure }))).toBe('enqueued');
      }
      await session.relay();
      expect(await statesOf(session)).toEqual(['archived', 'pending', 'waiting']);
      await session.act('run', 'a', 'other');
      await session.runNext('done', 'other');
      await session.relay();
      expect(await statesOf(session)).toEqual(['pending', 'pending', 'pending']);
    });
  });

  describe('a task that has waited for as long as it may', () => {
    it('is archived or runs, and tells those that wait for it', async ({ driver }) => {
      const session = new LinkSession(driver);
      const deadline = driver.now + 60;
      const never = [{ type: 'pay', key: 'never' }];
      await session.enqueue(
        session.waiting('b', never, { deadline }),
        session.waiting('c', never, { deadline, onTimeout: 'run' }),
        session.waiting('d', never, { deadline, onTimeout: 'run', processAt: driver.now + 90 }),
        session.waiting('e', never, { deadline: deadline + 1 }),
      );
      await session.enqueueAfter(session.waiting('f', [{ queue: 'default', id: 'b' }]));
      await session.relay();
      driver.clock.advance(59_999);
      await session.keep();
      expect((await driver.broker.inspection.describeQueue('default')).waiting).toBe(5);
      driver.clock.advance(1);
      await session.keep();
      const states = await Promise.all(['b', 'c', 'd', 'e', 'f'].map((id) => session.stateOf(id)));
      expect(states).toEqual(['archived', 'pending', 'scheduled', 'waiting', 'archived']);
      expect(await session.errorOf('b')).toBe(
        'asynq: waited for as long as it may, and not every prerequisite has succeeded: pay "never"',
      );
      expect(await session.links.waitOf('default', 'b')).toMatchObject({ deadline: undefined, cancelled: false });
    });

    it('names some of those that were missing', async ({ driver }) => {
      const session = new LinkSession(driver);
      for (const id of ['a1', 'a2', 'a3', 'a4']) await driver.add({ id });
      const tasks = ['a1', 'a2', 'a3', 'a4'].map((id) => ({ queue: 'default', id }));
      const deadline = driver.now + 60;
      const keys = [
        { type: 'pay', key: 'k1' },
        { type: 'pay', key: 'k2' },
      ];
      await session.enqueueAfter(session.waiting('b', [...tasks, ...keys], { deadline, onFailure: 'wait' }));
      await session.enqueueAfter(
        session.waiting('c', [...tasks.slice(0, 3), keys[0]!], { deadline, onFailure: 'run' }),
      );
      await session.runNext();
      await session.runNext('archive');
      await session.relay();
      driver.clock.advance(60_000);
      await session.keep();
      const [begin, third] = [
        'asynq: waited for as long as it may, and not every prerequisite has succeeded',
        'task "a3"',
      ];
      expect(await session.errorOf('b')).toBe(
        `${begin}: task "a2" of queue "default" (failed), ${third} of queue "default", task "a4" of queue "default" and 2 more`,
      );
      expect(await session.errorOf('c')).toBe(`${begin}: ${third} of queue "default", pay "k1"`);
    });

    it('is not revived by a prerequisite that succeeds too late', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a' });
      const deadline = driver.now + 60;
      await session.enqueueAfter(session.waiting('b', [{ queue: 'default', id: 'a' }], { deadline }));
      driver.clock.advance(60_000);
      await session.keep();
      await session.runNext();
      expect(await session.stateOf('b')).toBe('archived');
      expect(await session.edgesOf('b')).toEqual(['succeeded']);
    });

    it('is how a circle ends', async ({ driver }) => {
      const session = new LinkSession(driver);
      const deadline = driver.now + 60;
      const circle = ['x', 'y', 'z'];
      const linked = circle.map((key, n) => ({
        ...session.waiting(key, [{ type: 'pay', key: circle[(n + 1) % 3]! }], { deadline }),
        mark: { type: 'pay', key, rememberFor: 60 },
      }));
      for (const one of linked) await session.enqueue(one);
      await session.relay();
      await session.keep();
      expect(await Promise.all(circle.map((id) => session.stateOf(id)))).toEqual(Array(3).fill('waiting'));
      driver.clock.advance(60_000);
      await session.keep();
      expect(await Promise.all(circle.map((id) => session.stateOf(id)))).toEqual(Array(3).fill('archived'));
    });
  });
}
