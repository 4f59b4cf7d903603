import { describe, expect } from 'vitest';
import type { DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';

const A = { queue: 'other', id: 'a' };
const MARK = { type: 'pay', key: 'k' };

/** One step of a story about a prerequisite in one queue and two tasks of another that wait for it. */
type Step = (session: LinkSession) => Promise<unknown>;

const STORY: readonly Step[] = [
  (session) => session.enqueue(session.marked('a', 'k', { queue: 'other' })),
  (session) => session.enqueueAfter(session.waiting('b', [A])),
  (session) => session.enqueue(session.waiting('c', [MARK, A])),
  (session) => session.watch(session.waiting('c', [MARK, A])),
  (session) =>
    session.enqueueAfter(session.waiting('d', [{ queue: 'default', id: 'b' }, MARK], { message: { queue: 'third' } })),
];
const SUCCESS: readonly Step[] = [...STORY, (session) => session.runNext('done', 'other')];
const RERUN: readonly Step[] = [
  ...STORY,
  (session) => session.runNext('archive', 'other'),
  (session) => session.act('run', 'a', 'other'),
  (session) => session.runNext('done', 'other'),
];

const statesOf = (session: LinkSession): Promise<unknown[]> =>
  Promise.all([session.stateOf('b'), session.stateOf('c'), session.stateOf('d', 'third')]);

/** After which step parcels get lost, and how. */
const losses = (story: readonly Step[]) =>
  story.flatMap((_, at) => (['lost', 'not acknowledged'] as const).map((how) => ({ at, how })));

async function tell(session: LinkSession, story: readonly Step[], after: (at: number) => Promise<void>): Promise<void> {
  for (const [at, step] of story.entries()) {
    await step(session);
    await after(at);
  }
}

export function exerciseLostLinks(it: DriverTest): void {
  describe('what gets lost on the way', () => {
    it.for(losses(SUCCESS))('is found again by the keeper: a success, %j', async ({ at, how }, { driver }) => {
      const session = new LinkSession(driver);
      await tell(session, SUCCESS, async (step) => {
        if (step !== at) await session.relay();
        else if (how === 'lost') session.lose();
        else await session.deliverOnly();
      });
      await session.keep();
      expect(await statesOf(session)).toEqual(['pending', 'pending', 'waiting']);
      for (let n = 0; n < 2; n++) await session.runNext();
      session.lose();
      await session.keep();
      expect(await statesOf(session)).toEqual([undefined, undefined, 'pending']);
    });

    it.for(losses(RERUN))('is found again by the keeper: a rerun, %j', async ({ at, how }, { driver }) => {
      const session = new LinkSession(driver);
      await tell(session, RERUN, async (step) => {
        if (step !== at) await session.relay();
        else if (how === 'lost') session.lose();
        else await session.deliverOnly();
      });
      await session.keep();
      expect((await statesOf(session)).slice(0, 2)).toEqual(['pending', 'pending']);
      for (let n = 0; n < 2; n++) await session.runNext();
      session.lose();
      await session.keep();
      expect(await statesOf(session)).toEqual([undefined, undefined, 'pending']);
    });

    it('is found again although everything is lost every time', async ({ driver }) => {
      const session = new LinkSession(driver);
      await tell(session, RERUN, async () => session.lose());
      await session.keep();
      for (let n = 0; n < 2; n++) await session.runNext();
      session.lose();
      await session.keep();
      expect(await statesOf(session)).toEqual([undefined, undefined, 'pending']);
    });

    it('comes twice and in any order without a difference', async ({ driver }) => {
      const session = new LinkSession(driver);
      await tell(session, RERUN, async () => session.relay(3));
      const states = await statesOf(session);
      expect(states).toEqual(['pending', 'pending', 'archived']);
      for (const parcel of [...session.sent, ...session.sent.toReversed()]) {
        session.took(await session.links.deliver(parcel.to, [parcel]));
      }
      await session.relay(2);
      expect(await statesOf(session)).toEqual(states);
      expect((await driver.take(9)).map(({ lease }) => lease.id).toSorted()).toEqual(['b', 'c']);
    });

    it('is the end of a task that a server ran that knows no links', async ({ driver }) => {
      const session = new LinkSession(driver);
      await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
      await session.enqueueAfter(session.waiting('b', [A]));
      await session.enqueue(session.waiting('c', [MARK]));
      await driver.add({ id: 'plain', queue: 'other' });
      await session.enqueueAfter(
        session.waiting('d', [{ queue: 'other', id: 'plain' }], { message: { queue: 'third' } }),
      );
      await session.relay();
      for (const { lease } of await driver.take(2, 'other')) await driver.world.completeUnseen('other', lease.id);
      expect(await statesOf(session)).toEqual(['waiting', 'waiting', 'waiting']);
      await session.keep();
      expect(await statesOf(session)).toEqual(['pending', 'pending', 'pending']);
      expect((await driver.broker.inspection.describeQueue('other')).completed).toBe(0);
    });

    it('is a failure that comes after the success', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a', queue: 'other' });
      await session.enqueueAfter(session.waiting('b', [A], { onFailure: 'wait' }));
      await session.runNext('archive', 'other');
      const late = [...session.sent];
      session.lose();
      await session.act('run', 'a', 'other');
      await session.runNext('done', 'other');
      await session.relay();
      expect(await session.edgesOf('b')).toEqual(['succeeded']);
      for (const parcel of late) await session.links.deliver(parcel.to, [parcel]);
      expect(await session.edgesOf('b')).toEqual(['succeeded']);
      await session.keep();
      expect(await session.stateOf('b')).toBe('pending');
    });

    it('is a success before the failure of another task of that key', async ({ driver }) => {
      const session = new LinkSession(driver);
      await session.enqueue(session.marked('a1', 'k'), session.marked('a2', 'k'));
      await session.runNext('done');
      session.lose();
      await session.runNext('archive');
      await session.relay();
      await session.enqueue(session.waiting('b', [MARK]));
      await session.keep();
      expect(await session.stateOf('b')).toBe('pending');
      expect(await session.edgesOf('b')).toEqual(['succeeded']);
    });

    it('is the end of a prerequisite that came before the waiting task was stored', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a', queue: 'other' });
      const b = session.waiting('b', [A]);
      await session.watch(b);
      await session.runNext('archive', 'other');
      await session.relay();
      await session.act('run', 'a', 'other');
      await session.runNext('done', 'other');
      await session.relay();
      await session.enqueue(b);
      expect(await session.stateOf('b')).toBe('pending');
    });

    it('is the end of a prerequisite, for a process that was frozen for hours before it stored the waiting task', async ({
      driver,
    }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a', queue: 'other' });
      const b = session.waiting('b', [A]);
      await session.watch(b);
      await session.runNext('done', 'other');
      await session.relay();
      driver.clock.advance(20 * 3_600_000);
      await session.enqueue(b);
      expect(await session.stateOf('b')).toBe('pending');
    });

    it('is nothing when the waiting task was never stored', async ({ driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a', queue: 'other' });
      await session.watch(session.waiting('b', [A]));
      await session.runNext('done', 'other');
      await session.expectNothingKept();
      expect(await session.stateOf('b')).toBeUndefined();
    });
  });
}
