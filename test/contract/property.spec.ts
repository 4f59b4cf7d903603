import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Snapshot } from '../../lib/broker/memory/snapshot.js';
import { ManualClock } from '../../lib/clock.js';
import { withoutLockExpiry } from './driver.js';
import { type Step, history } from './history.js';
import { memoryWorld } from './memory-world.js';
import { historyCount, parameters, redisStores, useBackdoor } from './property-stores.js';
import { RedisBackdoor } from './redis-world.js';
import { Player } from './replay.js';

/** How far a lock in Redis may be behind or ahead when no time has passed since it was taken, in milliseconds. */
const TOLERANCE = 1500;

const locksOf = (snapshot: Snapshot): Map<string, number> =>
  new Map(
    Object.values(snapshot).flatMap(({ locks }) =>
      Object.entries(locks).map(([key, { expiresIn }]): [string, number] => [key, expiresIn]),
    ),
  );

/**
 * Locks in Redis expire in real time: gives them the remaining time that they have by the test's
 * clock.
 */
async function alignLocks(backdoor: RedisBackdoor, inRedis: Snapshot, inMemory: Snapshot): Promise<void> {
  const alive = locksOf(inMemory);
  for (const key of locksOf(inRedis).keys()) {
    const node = await backdoor.home(key);
    const expiresIn = alive.get(key);
    if (expiresIn === undefined) await node.del(key);
    else await node.pexpire(key, expiresIn);
  }
}

/** @param passed milliseconds of real time, in which the clock of the test stood still */
function expectSame(inRedis: Snapshot, inMemory: Snapshot, passed: number): void {
  expect(withoutLockExpiry(inRedis)).toEqual(withoutLockExpiry(inMemory));
  const others = locksOf(inMemory);
  for (const [key, expiresIn] of locksOf(inRedis)) {
    expect(Math.abs(expiresIn - (others.get(key) ?? 0))).toBeLessThan(TOLERANCE + passed);
  }
}

async function replay(backdoor: RedisBackdoor, steps: readonly Step[]): Promise<void> {
  // Not at a whole second, so that the test sees the difference between rounded and exact times.
  const clock = new ManualClock(Math.floor(Date.now() / 1000) * 1000 + 300);
  const players = [new Player(await backdoor.world(clock), clock), new Player(memoryWorld(clock), clock)] as const;
  const [onRedis, onMemory] = players;
  try {
    for (const step of steps) {
      if (step.do === 'move') clock.advance(step.seconds * 1000);
      const before = performance.now();
      const [answer, expected] = [await onRedis.play(step), await onMemory.play(step)];
      expect(answer).toEqual(expected);
      const inMemory = await onMemory.world.dump();
      if (step.do === 'move') await alignLocks(backdoor, await onRedis.world.dump(), inMemory);
      const inRedis = await onRedis.world.dump();
      expectSame(inRedis, inMemory, performance.now() - before);
      await alignLocks(backdoor, inRedis, inMemory);
    }
  } finally {
    await Promise.all(players.map(({ world }) => world.cleanup()));
  }
}

describe.each(redisStores(historyCount(100)))('memory and %s', (_, start, runs) => {
  const backdoor = useBackdoor(start);

  it(
    'return and store the same after each step of any history',
    async () => {
      const property = fc.asyncProperty(history, (steps) => replay(backdoor(), steps));
      await fc.assert(property, parameters(runs));
    },
    Math.max(60_000, runs * 1500),
  );
});
