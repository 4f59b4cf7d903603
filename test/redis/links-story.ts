import type { Settlement } from '../../lib/broker/broker.js';
import { BatchSession, HOME } from '../contract/batch-session.js';
import { done } from '../contract/driver.js';
import type { RedisDriver } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';

const QUEUES = ['default', 'other', 'third', 'home', 'calls'];
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const DAY = 86_400;

/** A run, a batch, and tasks that wait for each other; all have this name in their ids. */
export async function tell(driver: RedisDriver, name: string): Promise<void> {
  const run = new RunSession(driver, `wf:${name}`);
  await run.enqueue(run.marked(`pay-${name}`, name, { queue: 'other' }));
  const prerequisites = [
    { queue: 'other', id: `pay-${name}` },
    { type: 'pay', key: name },
  ];
  await run.enqueueAfter(run.waiting(`first-${name}`, prerequisites));
  const second = run.waiting(`second-${name}`, [{ queue: 'default', id: `first-${name}` }]);
  await run.enqueueAfter({ ...second, message: { ...second.message, queue: 'third' } });
  await run.enqueue(run.waiting(`never-${name}`, [{ type: 'pay', key: `never-${name}` }]));
  const other = { message: { queue: 'other' } };
  await run.begin(
    [
      step('a', {}, run.id),
      step('b', { after: ['a'], ...other }, run.id),
      step('c', { after: ['b'] }, run.id),
      step('d', other, run.id),
      step('z', { after: ['c', 'd'], onFailure: 'run' }, run.id),
    ],
    { retention: 60 * DAY },
  );
  const batches = new BatchSession(driver);
  const batch = await batches.open({ id: `batch-${name}`, retention: 60 * DAY });
  await batches.add(batch, 2);
  await batches.add(batch, 2, 'other');
  await batches.close(batch);
}

/** Runs what is pending, and lets no parcel be carried. Returns how many tasks ran. */
export async function work(driver: RedisDriver): Promise<number> {
  let ran = 0;
  for (const queue of QUEUES) {
    const { tasks, damaged } = await driver.exchange([], 100, queue);
    const unreadable = damaged.map(({ lease }): Settlement => ({ kind: 'archive', lease, message: undefined }));
    const settlements = [...tasks.map(done), ...unreadable];
    if (settlements.length > 0) await driver.exchange(settlements, 0, queue);
    ran += settlements.length;
  }
  return ran;
}

/** Minutes, then days, of servers and keepers. */
export async function live(driver: RedisDriver): Promise<void> {
  const session = new RunSession(driver);
  for (let idle = 0; idle < 4;) {
    await session.keep();
    const ran = await work(driver);
    idle = ran === 0 ? idle + 1 : 0;
    driver.clock.advance(ran === 0 ? 11 * MINUTE_MS : 1_000);
  }
  driver.clock.advance(8 * DAY_MS);
  for (let passes = 0; passes < 3; passes++) {
    await session.keep();
    await work(driver);
    driver.clock.advance(11 * MINUTE_MS);
  }
}

export async function endOf(driver: RedisDriver, name: string): Promise<Record<string, unknown>> {
  const { workflows, batches } = driver.broker;
  const run = (await workflows.runs('default', { offset: 0, size: 5 })).find(({ id }) => id === `wf:${name}`);
  if (run) await workflows.run('default', run.id);
  return {
    first: await driver.stateOf(`first-${name}`),
    second: await driver.stateOf(`second-${name}`, 'third'),
    never: await driver.stateOf(`never-${name}`),
    run: run?.state,
    batch: (await batches.progress(HOME, `batch-${name}`))?.state,
  };
}

/** How a story ends that nobody has hindered. */
export const GOOD_END = {
  first: undefined,
  second: undefined,
  never: 'archived',
  run: 'succeeded',
  batch: 'succeeded',
};

/** What is in one of these has not ended. */
export const OPEN_STATES = ['waiting', 'pending', 'active', 'running', 'closed'];
