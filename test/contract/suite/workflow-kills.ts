import { describe, expect } from 'vitest';
import type { NewStep } from '../../../lib/broker/workflows.js';
import { Driver, type DriverTest } from '../driver.js';
import { playUntilDeath, requeueExpired } from '../mortal.js';
import { RunSession, step } from '../run-session.js';

const QUEUES = ['default', 'one', 'two'];

/** From queue to queue; `z` cleans up, whatever happens. */
const graph = (run: string): NewStep[] => [
  step('a', { message: { queue: 'one' } }, run),
  step('b', { message: { queue: 'two' }, after: ['a'] }, run),
  step('c', { after: ['a'] }, run),
  step('d', { message: { queue: 'one' }, after: ['b', 'c'] }, run),
  step('z', { after: ['d'], onFailure: 'run' }, run),
];

type Flow = (session: RunSession, driver: Driver) => Promise<void>;

const FLOWS: Readonly<Record<string, Flow>> = {
  success: async (session) => {
    await session.start(graph(session.id));
    await session.finish('a', 'b', 'c', 'd', 'z');
  },
  'a failure, and a retry': async (session) => {
    await session.start(graph(session.id));
    await session.finish('a');
    await session.fail('b');
    session.took(await session.workflows.retry('default', session.id));
    await session.relay();
    await session.finish('b');
  },
  'a deletion of a task, and a retry': async (session, { broker }) => {
    await session.start(graph(session.id));
    expect(await broker.administration.moveTasks('one', 'delete', [`${session.id}~a`])).toEqual(['moved']);
    session.took(await session.links.check('one', [`${session.id}~a`]));
    await session.relay();
    session.took(await session.workflows.retry('default', session.id));
    await session.relay();
    await session.finish('a');
  },
  'a rerun by hand': async (session) => {
    await session.start(graph(session.id));
    await session.fail('a');
    await session.act('run', `${session.id}~a`, 'one');
    await session.finish('a');
  },
  'a cancellation': async (session) => {
    await session.start(graph(session.id));
    await session.finish('a');
    session.took(await session.workflows.cancel('default', session.id, 'why'));
    await session.relay();
  },
  growth: async (session) => {
    await session.start(graph(session.id));
    await session.grow(step('e', { after: ['b'], message: { queue: 'one' } }, session.id));
    await session.finish('a', 'b', 'e');
  },
  'a deletion': async (session) => {
    await session.start(graph(session.id));
    await session.fail('a');
    await session.finish('z');
    session.took(await session.workflows.delete('default', session.id));
    await session.relay();
  },
};

/** What a fleet does without the dead process: leases expire, the keeper passes, servers run what is pending. */
async function recover(session: RunSession, driver: Driver): Promise<void> {
  await requeueExpired(driver, QUEUES);
  for (let worked = true; worked;) {
    await session.keep();
    worked = false;
    for (const queue of QUEUES) {
      const tasks = session.took(await driver.exchange([], 100, queue)).tasks;
      for (const task of tasks) await session.end(task, 'done');
      worked ||= tasks.length > 0;
    }
    await session.relay();
  }
}

export function exerciseRunKills(it: DriverTest): void {
  describe('a process that dies between two calls about a run', () => {
    it.for(Object.keys(FLOWS))('leaves a run that ends: %s', async (name, { driver }) => {
      let over = false;
      let deaths = 0;
      for (let calls = 1; !over; calls++) {
        const id = `wf:${calls}`;
        over = await playUntilDeath(driver, calls, (dying) => FLOWS[name]!(new RunSession(dying, id), dying));
        if (!over) deaths++;
        const session = new RunSession(driver, id);
        await recover(session, driver);
        await session.deleteEnded();
      }
      expect(deaths).toBeGreaterThan(5);
      await new RunSession(driver).expectNothingKept();
    });
  });
}
