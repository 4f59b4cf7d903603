import { describe, expect, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { LinkSession } from '../contract/link-session.js';
import { it, RedisDriver } from '../contract/redis-fixture.js';
import { RunSession } from '../contract/run-session.js';
import { endOf, GOOD_END, live, tell, work } from './links-story.js';

const HOUR_MS = 3_600_000;

/** A process of the same Redis whose clock differs. */
function apart(driver: RedisDriver, hours: 1 | -1): RedisDriver {
  const { host, port } = driver.server;
  const clock = new ManualClock(driver.clock.now() + hours * HOUR_MS);
  const broker = new RedisBroker(new RedisConnections({ host, port }), { clock });
  onTestFinished(() => broker.close());
  return new RedisDriver({ ...driver.world, broker }, clock, driver.server, driver.redis);
}

describe.each([
  ['ahead', 1],
  ['behind', -1],
] as const)('a clock that is an hour %s', (_, hours) => {
  it('of the process that enqueues changes nothing', async ({ driver }) => {
    await tell(apart(driver, hours), 'a');
    await live(driver);
    expect(await endOf(driver, 'a')).toEqual(GOOD_END);
  });

  it('of a server changes nothing', async ({ driver }) => {
    await tell(driver, 'a');
    const other = apart(driver, hours);
    for (let rounds = 0; rounds < 8; rounds++) {
      await new RunSession(driver).keep();
      await work(other);
    }
    await live(driver);
    expect(await endOf(driver, 'a')).toEqual(GOOD_END);
  });

  it('of a keeper changes nothing', async ({ driver }) => {
    await tell(driver, 'a');
    const other = apart(driver, hours);
    for (let rounds = 0; rounds < 8; rounds++) {
      await new RunSession(other).keep();
      await work(driver);
    }
    await live(driver);
    expect(await endOf(driver, 'a')).toEqual(GOOD_END);
  });

  it('of a process that dies lets others find within seconds what it has not carried', async ({ driver }) => {
    const session = new LinkSession(apart(driver, hours));
    await session.enqueue(session.waiting('b', [{ type: 'pay', key: 'k' }]));
    driver.clock.advance(2_000);
    expect((await driver.broker.links.keep('default', 2)).parcels).toHaveLength(1);
  });

  it('of a keeper keeps no other out for longer than its lease', async ({ driver }) => {
    const { links } = apart(driver, hours).broker;
    expect(await links.lease('default', 'apart', 50)).toBe(true);
    await expect.poll(() => driver.broker.links.lease('default', 'other', 60_000)).toBe(true);
  });
});
