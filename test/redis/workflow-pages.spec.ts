import { describe, expect } from 'vitest';
import type { NewStep } from '../../lib/broker/workflows.js';
import { Driver } from '../contract/driver.js';
import { playUntilDeath, requeueExpired } from '../contract/mortal.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';

const QUEUES = ['default', 'other'];
/** Scripts deal with 1,000 steps at a time, or 250. */
const MANY = 1_200;

/** Many steps behind one, or ready at once; some of them are of another queue. */
const wide = (run: string, after: readonly string[]): NewStep[] =>
  Array.from({ length: MANY }, (_, n) =>
    step(`s${n}`, { after, message: { queue: QUEUES[n % 100 === 1 ? 1 : 0]! } }, run),
  );

/** Ends all tasks that can be claimed. Returns how many there were. */
async function endAll(session: RunSession, driver: Driver, kind: 'done' | 'archive'): Promise<number> {
  let ended = 0;
  for (const queue of QUEUES) {
    const { tasks } = session.took(await driver.exchange([], 2 * MANY, queue));
    const settle = tasks.map(({ lease, message }) =>
      kind === 'done' ? { kind, lease, uniqueKey: '' } : { kind, lease, message },
    );
    if (tasks.length > 0) session.took(await driver.exchange(settle, 0, queue));
    ended += tasks.length;
  }
  return ended;
}

type Flow = (session: RunSession, driver: Driver) => Promise<void>;

const FLOWS: Readonly<Record<string, Flow>> = {
  start: async (session) => void (await session.start(wide(session.id, []))),
  'fan-out': async (session) => {
    await session.start([step('a', {}, session.id), ...wide(session.id, ['a'])]);
    await session.finish('a');
  },
  retry: async (session, driver) => {
    await session.start(wide(session.id, []));
    await endAll(session, driver, 'archive');
    await session.relay();
    session.took(await session.workflows.retry('default', session.id));
    await session.relay();
  },
  cancel: async (session) => {
    await session.start(wide(session.id, []));
    session.took(await session.workflows.cancel('default', session.id, 'why'));
    await session.relay();
  },
  delete: async (session, driver) => {
    await session.start(wide(session.id, []));
    await endAll(session, driver, 'archive');
    await session.relay();
    session.took(await session.workflows.delete('default', session.id));
    await session.relay();
  },
};

/** What a fleet does without the dead process. */
async function recover(session: RunSession, driver: RedisDriver): Promise<void> {
  await requeueExpired(driver, QUEUES);
  do await session.keep();
  while ((await endAll(session, driver, 'done')) > 0);
}

describe('a run of more steps than one script deals with', () => {
  it('runs each of them once', { timeout: 60_000 }, async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(wide('wf:1', []));
    expect(await session.stored()).toMatchObject({ state: 'running', open: MANY });
    expect(await endAll(session, driver, 'archive')).toBe(MANY);
    await session.relay(2);
    expect(await session.stored()).toMatchObject({ state: 'failed', failed: MANY });
    expect(session.took(await session.workflows.retry('default', 'wf:1')).steps).toBe(MANY);
    await session.relay(2);
    expect(await session.stored()).toMatchObject({ state: 'running', open: MANY, failed: 0 });
    expect(await endAll(session, driver, 'done')).toBe(MANY);
    await session.relay(2);
    expect((await session.stored()).state).toBe('succeeded');
    expect(await endAll(session, driver, 'done')).toBe(0);
    await session.expectNothingLeft();
  });

  it('lets those begin whose turn was lost, also in other queues', { timeout: 60_000 }, async ({ driver }) => {
    const session = new RunSession(driver);
    await session.begin(wide('wf:1', []));
    session.lose();
    await driver.redis.del(driver.keys.outbox, driver.keys.links);
    driver.clock.advance(600_000);
    await session.keep();
    const { graph } = await session.stored();
    // What was in the outbox is offered again.
    expect(graph.filter(({ state }) => state === 'ready').length).toBe(MANY);
    expect(await endAll(session, driver, 'done')).toBe(MANY);
    await session.relay();
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it.for(Object.keys(FLOWS))(
    'ends when a process dies between two calls: %s',
    { timeout: 120_000 },
    async (name, { driver }) => {
      let over = false;
      for (let calls = 1; !over; calls++) {
        const id = `wf:${calls}`;
        over = await playUntilDeath(driver, calls, (dying) => FLOWS[name]!(new RunSession(dying, id), dying));
        // All of the first calls, and some of those about single parcels.
        if (calls > 8) calls += calls >> 1;
        const session = new RunSession(driver, id);
        await recover(session, driver);
        await session.deleteEnded();
      }
      await new RunSession(driver).expectNothingKept();
      for (const queue of QUEUES) {
        expect(await driver.redis.keys(`${driver.keyspace.queue(queue).taskPrefix}*`)).toEqual([]);
      }
    },
  );
});
