import { describe, expect } from 'vitest';
import type { Prerequisite } from '../../../lib/broker/links.js';
import { request } from '../../support/messages.js';
import { Driver, type DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';
import { playUntilDeath, requeueExpired } from '../mortal.js';

/** The names of one run of a flow: each run has tasks, queues and keys of its own. */
interface Names {
  readonly home: string;
  readonly other: string;
  readonly key: string;
}

const after = ({ other }: Names): Prerequisite => ({ queue: other, id: 'a' });

/** `b` and `c` wait for `a`, `d` for its key and for `b`, and `e`, which runs all the same, for `d`. */
async function submit(session: LinkSession, names: Names): Promise<void> {
  const { home, other, key } = names;
  const message = { queue: home };
  const mark: Prerequisite = { type: 'pay', key };
  await session.enqueue(session.waiting('d', [mark], { message }));
  await session.relay();
  await session.enqueue(session.marked('a', key, { queue: other }));
  await session.relay();
  await session.enqueueAfter(session.waiting('b', [after(names)], { message }));
  await session.relay();
  await session.enqueueAfter(session.waiting('c', [after(names), mark], { message, onFailure: 'wait' }));
  await session.relay();
  const first: Prerequisite = { queue: home, id: 'd' };
  await session.enqueueAfter(session.waiting('e', [first], { message: { queue: other }, onFailure: 'run' }));
  await session.relay();
}

type Flow = (session: LinkSession, names: Names) => Promise<void>;

const FLOWS: Readonly<Record<string, Flow>> = {
  'a success': async (session, names) => {
    await submit(session, names);
    await session.runNext('done', names.other);
    await session.relay();
  },
  'a failure': async (session, names) => {
    await submit(session, names);
    await session.runNext('archive', names.other);
    await session.relay();
  },
  'a rerun': async (session, names) => {
    await submit(session, names);
    await session.runNext('archive', names.other);
    await session.relay();
    await session.act('run', 'a', names.other);
    await session.relay();
    await session.runNext('complete', names.other);
    await session.relay();
  },
  'a deletion': async (session, names) => {
    await submit(session, names);
    await session.act('delete', 'a', names.other);
    await session.relay();
  },
  'a waiting task that is deleted': async (session, names) => {
    await submit(session, names);
    await session.act('delete', 'd', names.home);
    await session.relay();
    await session.runNext('done', names.other);
    await session.relay();
  },
  'a pass of the keeper': async (session, names) => {
    await submit(session, names);
    await session.runNext('done', names.other);
    session.lose();
    await session.keep();
  },
};

/** What a fleet does without the dead process: leases expire, the keeper passes, servers run what is pending. */
async function recover(driver: Driver, queues: readonly string[]): Promise<void> {
  const session = new LinkSession(driver);
  await requeueExpired(driver, queues);
  for (let worked = true; worked;) {
    await session.keep();
    worked = false;
    for (const queue of queues) {
      for (const task of await driver.take(100, queue)) {
        await session.end(task, 'done');
        worked = true;
      }
    }
    await session.relay();
  }
}

/** No task waits whose prerequisites have ended: here all have, unless they were never submitted. */
async function expectEnds(driver: Driver, { home, other, key }: Names): Promise<void> {
  const { links, inspection } = driver.broker;
  for (const [queue, id] of [...['b', 'c', 'd'].map((one) => [home, one]), [other, 'e']] as [string, string][]) {
    if ((await inspection.getTask(queue, id))?.state !== 'waiting') continue;
    const wait = await links.waitOf(queue, id);
    const open = wait!.edges.filter(({ state }) => state !== 'succeeded').map(({ prerequisite }) => prerequisite);
    const missing = open.filter((one) => 'type' in one && one.key === key);
    const failed = wait!.onFailure === 'wait' && wait!.edges.some(({ state }) => state === 'failed');
    expect(failed || missing.length > 0, `${id} waits for ${JSON.stringify(open)}`).toBe(true);
  }
}

export function exerciseKills(it: DriverTest): void {
  describe('a process that dies between two calls', () => {
    it.for(Object.keys(FLOWS))('leaves no wait without an end: %s', async (name, { driver }) => {
      const flow = FLOWS[name]!;
      let over = false;
      let deaths = 0;
      for (let calls = 1; !over; calls++) {
        const names = { home: `home${calls}`, other: `other${calls}`, key: `k${calls}` };
        over = await playUntilDeath(driver, calls, (dying) => flow(new LinkSession(dying), names));
        if (!over) deaths++;
        await recover(driver, [names.home, names.other]);
        await expectEnds(driver, names);
        driver.clock.advance(7 * 86_400_000);
        await recover(driver, [names.home, names.other]);
        for (const queue of [names.home, names.other]) {
          expect((await driver.broker.inspection.describeQueue(queue)).waiting).toBe(0);
          expect(await driver.enqueue([request({ id: 'new', queue })], queue)).toEqual(['enqueued']);
          await driver.take(1, queue);
        }
      }
      expect(deaths).toBeGreaterThan(5);
    });
  });
}
