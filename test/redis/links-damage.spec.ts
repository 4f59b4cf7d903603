import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import type { Settlement } from '../../lib/broker/broker.js';
import { BatchSession, HOME } from '../contract/batch-session.js';
import { done } from '../contract/driver.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';

const QUEUES = ['default', 'other', 'third', 'home', 'calls'];
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const DAY = 86_400;
/** What somebody writes over a field, one after the other. */
const GARBAGE = ['x', '{}', '[5]', '7'];
/** Of all that can be damaged a test tries each of this many. */
const EACH = 3;

/** A run, a batch, and tasks that wait for each other; all have this name in their ids. */
async function tell(driver: RedisDriver, name: string): Promise<void> {
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
async function work(driver: RedisDriver): Promise<number> {
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

const STAGES: Readonly<Record<string, (driver: RedisDriver) => Promise<unknown>>> = {
  'that has not left its outbox': async () => undefined,
  'whose first tasks have ended': async (driver) => {
    await new RunSession(driver).keep();
    await work(driver);
  },
};

interface Damage {
  readonly what: string;
  readonly do: (redis: Redis) => Promise<unknown>;
}

/** All that can be done to what is stored for `victim`: each key and each field of it. */
async function damages(redis: Redis, victim: string): Promise<Damage[]> {
  const found: Damage[] = [];
  const add = (what: string, act: Damage['do']): void => void found.push({ what, do: act });
  for (const key of (await redis.keys('*')).toSorted()) {
    const isOwn = key.includes(victim);
    if (isOwn) add(`delete ${key}`, (client) => client.del(key));
    if (isOwn) add(`take ${key} for a list`, (client) => client.multi().del(key).lpush(key, 'x').exec());
    if ((await redis.type(key)) !== 'hash') continue;
    for (const [field, value] of Object.entries(await redis.hgetall(key))) {
      if (!isOwn && !field.includes(victim) && !value.includes(victim)) continue;
      const garbage = GARBAGE[found.length % GARBAGE.length]!;
      add(`delete ${key} ${field}`, (client) => client.hdel(key, field));
      add(`set ${key} ${field} to ${garbage}`, (client) => client.hset(key, field, garbage));
    }
  }
  return found;
}

/** Minutes, then days, of servers and keepers. */
async function live(driver: RedisDriver): Promise<void> {
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

async function endOf(driver: RedisDriver, name: string): Promise<Record<string, unknown>> {
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

const refusalOf = async (work: () => Promise<unknown>): Promise<unknown> => work().catch(String);

/** Why this is no end; `undefined` for one that a person sees, or a clear error. */
function wrongWith(end: unknown): unknown {
  if (typeof end === 'string') return end.includes('what else writes to') ? undefined : end;
  return Object.values(end as object).some((state) => ['waiting', 'pending', 'running', 'closed'].includes(state))
    ? end
    : undefined;
}

describe('what somebody has damaged', () => {
  it.for(Object.keys(STAGES).map((stage, first) => [stage, first] as const))(
    'of links %s ends all the same, and hinders no other',
    { timeout: 120_000 },
    async ([stage, first], { driver }) => {
      const { redis } = driver;
      const arrange = async (): Promise<Damage[]> => {
        await redis.flushall();
        driver.clock.advance(DAY_MS); // whatever a process believes to have listed is listed again
        await tell(driver, 'victim');
        await tell(driver, 'other');
        await STAGES[stage]!(driver);
        return damages(redis, 'victim');
      };
      const wrong: unknown[] = [];
      const { length } = await arrange();
      expect(length).toBeGreaterThan(100);
      for (let n = first; n < length; n += EACH) {
        const damage = (await arrange())[n]!;
        await damage.do(redis);
        await live(driver);
        const other = { first: undefined, second: undefined, never: 'archived', run: 'succeeded', batch: 'succeeded' };
        expect({ damage, ends: await endOf(driver, 'other') }).toEqual({ damage, ends: other });
        const why = wrongWith(await refusalOf(() => endOf(driver, 'victim')));
        if (why !== undefined) wrong.push([damage.what, why]);
      }
      expect(wrong).toEqual([]);
    },
  );
});
