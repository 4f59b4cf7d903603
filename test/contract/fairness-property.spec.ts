import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import { ManualClock } from '../../lib/clock.js';
import { BrokerUnavailableError } from '../../lib/errors.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { Driver, type World } from './driver.js';
import { FairSession, type FairStep, KEYS } from './fairness-session.js';
import { memoryWorld } from './memory-world.js';
import { historyCount, parameters, redisStores, useBackdoor } from './property-stores.js';
import type { RedisBackdoor } from './redis-world.js';

const seldom = fc.integer({ min: 0, max: 19 }).map((n) => n === 0);
const key = fc.constantFrom(...KEYS);

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('enqueue' as const),
      keys: fc.array(key, { minLength: 1, maxLength: 8 }),
      wait: fc.constantFrom(0, 0, 0, 3),
      lost: seldom,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('take' as const), count: fc.integer({ min: 1, max: 9 }), lost: seldom }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      index: fc.nat(9),
      how: fc.constantFrom('done', 'done', 'complete', 'retry', 'archive', 'requeue', 'wait'),
      take: fc.nat(3),
      lost: seldom,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      milliseconds: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.constant(FairSession.LEASE_MS)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('operate' as const),
      index: fc.nat(30),
      action: fc.constantFrom('run', 'archive', 'delete'),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'wake' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'pause' as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fill' as const), most: fc.integer({ min: 1, max: 6 }) }) },
) as fc.Arbitrary<FairStep>;

/** How the script begins whose next reply is lost, once it is done. */
let losing: string | undefined;

function loseReplies(): void {
  const { run } = Scripts.prototype;
  vi.spyOn(Scripts.prototype, 'run').mockImplementation(async function (this: Scripts, purpose, name, ...rest) {
    const reply = await run.call(this, purpose, name, ...rest);
    if (losing === undefined || !name.startsWith(losing)) return reply;
    losing = undefined;
    throw new BrokerUnavailableError('the reply was lost');
  });
}

async function replay(world: World, clock: ManualClock, steps: readonly FairStep[]): Promise<Driver> {
  const session = new FairSession(new Driver(world, clock), (script) => {
    if (world.broker instanceof RedisBroker) losing = script;
  });
  for (const one of steps) await session.play(one);
  await session.drain();
  return session.driver;
}

const newClock = (): ManualClock => new ManualClock(Math.floor(Date.now() / 1000) * 1000 + 300);

/** Of a fair queue whose tasks have ended only the counted starts are left, and they end by themselves. */
async function expectNothingLeft(backdoor: RedisBackdoor, prefix: string): Promise<void> {
  const { fairRatePrefix, fairLinePrefix } = new Keyspace(prefix).queue('default');
  const all = (await Promise.all(backdoor.nodes.map((node) => node.keys('*')))).flat();
  const left = all.filter((name) => /:fair/.test(name) || name.startsWith(fairLinePrefix));
  expect(left.filter((name) => !name.startsWith(fairRatePrefix))).toEqual([]);
}

const histories = fc.array(step, { minLength: 1, maxLength: 60 });
const RUNS = historyCount(60);

describe('a fair queue in memory', () => {
  it('loses no task, exceeds no limit and keeps the order of a key in any history', async () => {
    const property = fc.asyncProperty(histories, async (steps) => {
      const clock = newClock();
      const world = memoryWorld(clock);
      try {
        await replay(world, clock, steps);
      } finally {
        await world.cleanup();
      }
    });
    await fc.assert(property, parameters(RUNS));
  }, 120_000);
});

describe.each(redisStores(RUNS))('a fair queue in %s', (_, begin, runs) => {
  const backdoor = useBackdoor(begin);
  afterEach(() => vi.restoreAllMocks());

  it('loses no task, exceeds no limit and keeps the order of a key in any history, and leaves nothing behind', async () => {
    loseReplies();
    const property = fc.asyncProperty(histories, async (steps) => {
      losing = undefined;
      const clock = newClock();
      const world = await backdoor().world(clock);
      try {
        await replay(world, clock, steps);
        await expectNothingLeft(backdoor(), world.broker.keyPrefix);
      } finally {
        await world.cleanup();
      }
    });
    await fc.assert(property, parameters(runs));
  }, 120_000);
});
