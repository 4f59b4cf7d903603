import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Snapshot } from '../../lib/broker/memory/snapshot.js';
import { ManualClock } from '../../lib/clock.js';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { withRoundedLocks } from './driver.js';
import { type Step, history } from './history.js';
import { memoryWorld } from './memory-world.js';
import { RedisBackdoor } from './redis-world.js';
import { Player } from './replay.js';

/** Set both to run a failed history again: the report of the failure names them. */
const { FC_SEED, FC_PATH, FC_RUNS = '100' } = process.env;

/** How far the real clock of Redis may be behind or ahead within one step, in milliseconds. */
const TOLERANCE = 1500;

const locksOf = (snapshot: Snapshot): Map<string, number> =>
  new Map(
    Object.values(snapshot).flatMap(({ locks }) =>
      Object.entries(locks).map(([key, { expiresIn }]): [string, number] => [key, expiresIn]),
    ),
  );

/** Redis lets its locks age in real time: gives them the ages they have by the clock that the test moves. */
async function alignLocks(redis: Redis, inRedis: Snapshot, inMemory: Snapshot): Promise<void> {
  const alive = locksOf(inMemory);
  for (const key of locksOf(inRedis).keys()) {
    const expiresIn = alive.get(key);
    if (expiresIn === undefined) await redis.del(key);
    else await redis.pexpire(key, expiresIn);
  }
}

function expectSame(inRedis: Snapshot, inMemory: Snapshot): void {
  expect(withRoundedLocks(inRedis)).toEqual(withRoundedLocks(inMemory));
  const others = locksOf(inMemory);
  for (const [key, expiresIn] of locksOf(inRedis)) {
    expect(Math.abs(expiresIn - (others.get(key) ?? 0))).toBeLessThan(TOLERANCE);
  }
}

describe('memory and Redis', () => {
  let redis: RedisProcess;
  let backdoor: RedisBackdoor;
  let node: Redis;

  beforeAll(async () => {
    redis = await startRedis();
    backdoor = new RedisBackdoor([redis]);
    node = await backdoor.home('');
  });

  afterAll(async () => {
    backdoor.close();
    await redis.stop();
  });

  async function replay(steps: readonly Step[]): Promise<void> {
    // Not on the second, so that what rounds and what does not can be told apart.
    const clock = new ManualClock(Math.floor(Date.now() / 1000) * 1000 + 300);
    const players = [new Player(await backdoor.world(clock), clock), new Player(memoryWorld(clock), clock)] as const;
    const [onRedis, onMemory] = players;
    try {
      for (const step of steps) {
        if (step.do === 'move') clock.advance(step.seconds * 1000);
        const [answer, expected] = [await onRedis.play(step), await onMemory.play(step)];
        expect(answer).toEqual(expected);
        const inMemory = await onMemory.world.dump();
        if (step.do === 'move') await alignLocks(node, await onRedis.world.dump(), inMemory);
        const inRedis = await onRedis.world.dump();
        expectSame(inRedis, inMemory);
        await alignLocks(node, inRedis, inMemory);
      }
    } finally {
      await Promise.all(players.map(({ world }) => world.cleanup()));
    }
  }

  it(
    'answer the same and hold the same after each step of any history',
    async () => {
      await fc.assert(fc.asyncProperty(history, replay), {
        numRuns: Number(FC_RUNS),
        ...(FC_SEED === undefined ? {} : { seed: Number(FC_SEED) }),
        ...(FC_PATH === undefined ? {} : { path: FC_PATH }),
      });
    },
    Math.max(60_000, Number(FC_RUNS) * 1500),
  );
});
