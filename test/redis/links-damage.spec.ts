import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession } from '../contract/run-session.js';
import { endOf, GOOD_END, live, OPEN_STATES, tell, work } from './links-story.js';

const DAY_MS = 86_400_000;
/** What somebody writes over a field, one after the other. */
const GARBAGE = ['x', '{}', '[5]', '7'];
/** Of all that can be damaged a test tries each of this many. */
const EACH = 3;

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

const refusalOf = async (work: () => Promise<unknown>): Promise<unknown> => work().catch(String);

/** Why this is no end; `undefined` for one that a person sees, or a clear error. */
function wrongWith(end: unknown): unknown {
  if (typeof end === 'string') return end.includes('what else writes to') ? undefined : end;
  return Object.values(end as object).some((state) => OPEN_STATES.includes(state as string)) ? end : undefined;
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
        expect({ damage, ends: await endOf(driver, 'other') }).toEqual({ damage, ends: GOOD_END });
        const why = wrongWith(await refusalOf(() => endOf(driver, 'victim')));
        if (why !== undefined) wrong.push([damage.what, why]);
      }
      expect(wrong).toEqual([]);
    },
  );
});
