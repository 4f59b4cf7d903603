import { afterEach, describe, expect, it, vi } from 'vitest';
import { LEASE_SECONDS, RECOVERY_GRACE_SECONDS } from '../../lib/broker/broker.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { done } from '../contract/driver.js';
import { it as withDriver, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession } from '../contract/run-session.js';
import { request } from '../support/messages.js';
import { forgetful } from './forgetful.js';
import { endOf, live, OPEN_STATES, tell } from './links-story.js';

const QUEUES = ['default', 'other', 'third', 'home', 'calls'];
/** What is set back: the slot of one queue, as by the failover of a node of a cluster, or all there is. */
const PATTERNS = ['*{default}*', '*{other}*', '*{home}*', '*'];
/** So many calls are lost. */
const LOST = 3;
/** Every so manieth call is tried as the first that is lost. */
const STRIDE = 4;

const SAVE = `local all = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local n = #all
  all[n + 1], all[n + 2], all[n + 3] = key, redis.call('DUMP', key), tostring(math.max(0, redis.call('PTTL', key)))
end
return all`;
const SET_BACK = `for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
for i = 2, #ARGV, 3 do redis.call('RESTORE', ARGV[i], ARGV[i + 2], ARGV[i + 1]) end`;

afterEach(() => void vi.restoreAllMocks());

/** Sets back what is stored under keys of this pattern: some calls later it is as it was before the call `at`. */
function setBack({ redis }: RedisDriver, pattern: string, at: number): { calls: number } {
  const count = { calls: 0 };
  let stored: Buffer[] = [];
  const real = Reflect.get(RedisConnections.prototype, 'run') as RedisConnections['run'];
  vi.spyOn(RedisConnections.prototype, 'run').mockImplementation(async function (this: RedisConnections, ...call) {
    const number = ++count.calls;
    if (number === at) stored = (await redis.callBuffer('EVAL', SAVE, 0, pattern)) as Buffer[];
    const reply = await real.apply(this, call);
    if (number === at + LOST) {
      await redis.call('EVAL', SET_BACK, 0, pattern, ...stored);
      if (pattern === '*') await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'); // it was restarted
    }
    return reply as never;
  });
  return count;
}

/** What is lost may be refused, or be missing: that is the end of this piece of work, and the next one begins. */
async function attempt(act: () => Promise<unknown>): Promise<void> {
  await act().catch(() => undefined);
}

/** A fleet that works and carries parcels. */
async function serve(driver: RedisDriver): Promise<void> {
  for (let rounds = 0; rounds < 4; rounds++) {
    const session = new RunSession(driver);
    for (const queue of QUEUES) {
      await attempt(async () => {
        const { tasks } = session.took(await driver.exchange([], 100, queue));
        if (tasks.length > 0) session.took(await driver.exchange(tasks.map(done), 0, queue));
        await session.relay();
      });
    }
    await attempt(() => session.keep());
  }
}

/** Ends tasks whose lease has expired, and lets days pass. */
async function goOn(driver: RedisDriver): Promise<void> {
  await expect.poll(() => driver.broker.links.places().catch(() => undefined)).toBeDefined();
  await expect.poll(() => driver.exchange([], 0).catch(() => undefined)).toBeDefined();
  for (let times = 0; times < 2; times++) {
    driver.clock.advance((LEASE_SECONDS + RECOVERY_GRACE_SECONDS + 1) * 1000);
    for (const queue of QUEUES) {
      const { tasks } = await driver.broker.maintenance.listExpiredLeases(queue, driver.now, 100);
      if (tasks.length > 0) await driver.exchange(tasks.map(done), 0, queue);
    }
    await live(driver);
  }
}

/** What has not ended, and the keys of links that Redis would keep for ever once all is over. */
async function leftOf(driver: RedisDriver): Promise<unknown[]> {
  const left: unknown[] = Object.entries(await endOf(driver, 'it')).filter(([, state]) =>
    OPEN_STATES.includes(state as string),
  );
  for (const queue of QUEUES) {
    const { waiting, pending, active } = await driver.broker.inspection.describeQueue(queue);
    if (waiting + pending + active > 0) left.push([queue, waiting, pending, active]);
  }
  driver.clock.advance(100 * 86_400_000);
  for (const queue of QUEUES) await driver.broker.maintenance.trimArchived(queue, 1_000);
  await live(driver);
  for (const key of await driver.redis.keys('asynq:{*')) {
    const isAboutLinks = driver.keyspace.queue(/\{(.*?)\}/.exec(key)![1]!).isAboutLinks(key);
    if (isAboutLinks && (await driver.redis.ttl(key)) < 0) left.push(key);
  }
  return left;
}

describe('a Redis that has lost its last writes', () => {
  withDriver.for(PATTERNS)(
    'leaves no wait without an end, and no key: %s',
    { timeout: 120_000 },
    async (pattern, { driver }) => {
      let calls = Infinity;
      for (let at = 1; at < calls; at += STRIDE) {
        await driver.redis.flushall();
        driver.clock.advance(86_400_000);
        const count = setBack(driver, pattern, at);
        await attempt(() => tell(driver, 'it'));
        await serve(driver);
        calls = count.calls;
        vi.restoreAllMocks();
        await goOn(driver);
        expect({ at, left: await leftOf(driver) }).toEqual({ at, left: [] });
      }
      expect(calls).toBeGreaterThan(30);
    },
  );

  it('has those queues listed again that a process has listed of late, without a further call', async () => {
    const { server, redis, broker } = await forgetful();
    await redis.save();
    const wait = { prerequisites: [], onFailure: 'cancel', onTimeout: 'archive', deadline: 1e10 } as const;
    await broker.links.enqueue('default', [{ ...request({ id: 'lost' }), wait }]);
    await server.restart();
    await expect.poll(() => redis.smembers('asynq:linked')).toEqual(['default']);
    expect(await redis.smembers('asynq:queues')).toEqual(['default']);
    expect(await redis.exists('asynq:{default}:t:lost')).toBe(0);
  });
});
