import { afterEach, describe, expect, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession } from '../contract/run-session.js';
import { endOf, GOOD_END, live, OPEN_STATES, tell, work } from './links-story.js';

/** For so many calls Redis is out of memory. */
const FULL_FOR = 3;

afterEach(() => void vi.restoreAllMocks());

/** Fills Redis before the call of this number, and frees it again after some calls. Returns how many there were. */
function fillAt({ redis }: RedisDriver, at: number): { calls: number } {
  const count = { calls: 0 };
  const real = Reflect.get(RedisConnections.prototype, 'run') as RedisConnections['run'];
  vi.spyOn(RedisConnections.prototype, 'run').mockImplementation(async function (this: RedisConnections, ...call) {
    count.calls++;
    if (count.calls === at) await redis.config('SET', 'maxmemory', '1');
    if (count.calls === at + FULL_FOR) await redis.config('SET', 'maxmemory', '0');
    return (await real.apply(this, call)) as never;
  });
  return count;
}

/** What Redis refuses is the end of this piece of work; the next one begins. */
async function attempt(act: () => Promise<unknown>, refusals: unknown[]): Promise<void> {
  await act().catch((error: unknown) => refusals.push(error));
}

async function serve(driver: RedisDriver, refusals: unknown[]): Promise<void> {
  for (let rounds = 0; rounds < 4; rounds++) {
    await attempt(() => new RunSession(driver).keep(), refusals);
    await attempt(() => work(driver), refusals);
  }
}

describe('a Redis that is full at any moment', () => {
  it('refuses some calls, and all that it has taken ends', { timeout: 120_000 }, async ({ driver }) => {
    let calls = Infinity;
    let refused = 0;
    for (let at = 1; at < calls; at += 2) {
      await driver.redis.flushall();
      driver.clock.advance(86_400_000);
      await tell(driver, 'before');
      const refusals: unknown[] = [];
      const count = fillAt(driver, at);
      await attempt(() => tell(driver, 'meanwhile'), refusals);
      await serve(driver, refusals);
      calls = count.calls;
      vi.restoreAllMocks();
      await driver.redis.config('SET', 'maxmemory', '0');
      for (const refusal of refusals) expect(String(refusal)).toMatch(/OOM/);
      refused += refusals.length;
      await live(driver);
      expect({ at, end: await endOf(driver, 'before') }).toEqual({ at, end: GOOD_END });
      for (const state of Object.values(await endOf(driver, 'meanwhile'))) expect(OPEN_STATES).not.toContain(state);
    }
    expect(refused).toBeGreaterThan(10);
  });
});
