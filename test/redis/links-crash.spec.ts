import { afterEach, describe, expect, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { LEASE_SECONDS, RECOVERY_GRACE_SECONDS } from '../../lib/broker/broker.js';
import { done } from '../contract/driver.js';
import { LinkSession } from '../contract/link-session.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';

const QUEUES = ['default', 'other', 'third'];
const WEEK_MS = 7 * 86_400_000;

/** A process dies at its nth call: before it is sent, or after it was done and before it is answered. */
interface Crash {
  readonly at: number;
  readonly how: 'unsent' | 'unanswered';
}

afterEach(() => void vi.restoreAllMocks());

class Died extends Error {}

/** Lets the process of the driver die. Returns how many calls it has made. */
function dieAt({ at, how }: Crash): { calls: number } {
  const count = { calls: 0 };
  // A process that lives would send a call without a reply again, for seconds: in a dead one they are over at once.
  const now = performance.now.bind(performance);
  let later = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + (count.calls >= at ? (later += 10_000) : 0));
  const real = Reflect.get(RedisConnections.prototype, 'run') as RedisConnections['run'];
  vi.spyOn(RedisConnections.prototype, 'run').mockImplementation(async function (this: RedisConnections, ...call) {
    count.calls++;
    if (count.calls > at || (count.calls === at && how === 'unsent')) throw new Died();
    const reply = await real.apply(this, call);
    if (count.calls === at) throw new Died();
    return reply as never;
  });
  return count;
}

/** A prerequisite that fails, is run again and succeeds; a task waits for it by id and by key, and another for that one. */
async function story(session: LinkSession): Promise<void> {
  const { driver } = session;
  await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
  await session.enqueueAfter(
    session.waiting('b', [
      { queue: 'other', id: 'a' },
      { type: 'pay', key: 'k' },
    ]),
  );
  const c = session.waiting('c', [{ queue: 'default', id: 'b' }], { message: { queue: 'third' } });
  await session.enqueueAfter({ ...c, mark: { type: 't', key: 'c', rememberFor: 60 } });
  await session.relay();
  await session.runNext('archive', 'other');
  await session.relay();
  await driver.broker.administration.moveTasks('other', 'run', ['a']);
  await session.runNext('done', 'other');
  await session.relay();
  await session.runNext();
  await session.relay();
  await session.runNext('complete', 'third');
  await session.relay();
}

/** What the fleet does afterwards: recovers expired leases, keeps places, works. */
async function recover(driver: RedisDriver): Promise<void> {
  const session = new LinkSession(driver);
  driver.clock.advance((LEASE_SECONDS + RECOVERY_GRACE_SECONDS + 1) * 1000);
  for (let rounds = 0; rounds < 10; rounds++) {
    await session.keep();
    let worked = 0;
    for (const queue of QUEUES) {
      const expired = await driver.broker.maintenance.listExpiredLeases(queue, driver.now, 10);
      const tasks = [...expired.tasks, ...(await driver.take(10, queue))];
      worked += tasks.length;
      if (tasks.length > 0) session.took(await driver.exchange(tasks.map(done), 0, queue));
    }
    if (worked === 0) return;
  }
  throw new Error('there is always something to do');
}

const statesOf = async (session: LinkSession): Promise<unknown[]> => [
  await session.stateOf('a', 'other'),
  await session.stateOf('b'),
  await session.stateOf('c', 'third'),
];

/** Every call of the story, found by telling it once. */
const CALLS = 48;
const CRASHES = Array.from({ length: CALLS }, (_, n) => n + 1).flatMap((at): Crash[] => [
  { at, how: 'unsent' },
  { at, how: 'unanswered' },
]);

describe('a process that dies between any two calls', () => {
  it('makes as many calls as the test tries', async ({ driver }) => {
    const count = dieAt({ at: Infinity, how: 'unsent' });
    await story(new LinkSession(driver));
    expect(count.calls).toBeLessThanOrEqual(CALLS);
    expect(count.calls).toBeGreaterThan(CALLS / 2);
  });

  it.for(CRASHES)('leaves no wait without an end: %j', async (crash, { driver }) => {
    dieAt(crash);
    await story(new LinkSession(driver)).catch((error: unknown) => {
      if (!(error instanceof Died) && !(error instanceof Error && error.cause instanceof Died)) throw error;
    });
    vi.restoreAllMocks();
    const session = new LinkSession(driver);
    await recover(driver);
    // What was stored has run, or is archived since its prerequisite failed and nobody has run that again.
    const states = await statesOf(session);
    const ends = states[0] === 'archived' ? [undefined, 'archived'] : [undefined, 'completed'];
    for (const state of states) expect(ends).toContain(state);
    driver.clock.advance(WEEK_MS + 1_000);
    await recover(driver);
    for (const queue of QUEUES) {
      expect(await driver.broker.inspection.describeQueue(queue)).toMatchObject({ waiting: 0, pending: 0, active: 0 });
    }
    expect(await driver.redis.keys('*outbox')).toEqual([]);
  });
});
