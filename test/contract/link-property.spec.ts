import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Driver, START, type World } from './driver.js';
import { LINK_QUEUES, type LinkStep, carriedHistory, lossyHistory } from './link-history.js';
import { LinkPlayer } from './link-player.js';
import { memoryWorld } from './memory-world.js';
import { historyCount, parameters, redisStores, useBackdoor } from './property-stores.js';

const RUNS = historyCount(40);

type MakeWorlds = (clock: ManualClock) => Promise<World[]>;

async function replay(makeWorlds: MakeWorlds, steps: readonly LinkStep[], compares: boolean): Promise<void> {
  const clock = new ManualClock(START);
  const worlds = await makeWorlds(clock);
  const players = worlds.map((world) => new LinkPlayer(new Driver(world, clock)));
  const all = async <T>(work: (player: LinkPlayer) => Promise<T>): Promise<T[]> => {
    const results: T[] = [];
    for (const player of players) results.push(await work(player));
    return results;
  };
  try {
    for (const [number, step] of steps.entries()) {
      if (step.do === 'wait') clock.advance(step.seconds * 1000);
      const answers = await all((player) => player.play(step, number));
      if (!compares) continue;
      expect(answers[0]).toEqual(answers[1]);
      const [one, other] = await all((player) => player.observe());
      expect(one).toEqual(other);
    }
    await all((player) => player.expectEnds());
    await all((player) => player.finish());
    await all((player) => player.expectEnds());
    clock.advance(3_600_000);
    await all((player) => player.finish());
    for (const { broker } of worlds) {
      for (const queue of LINK_QUEUES) expect((await broker.inspection.describeQueue(queue)).waiting).toBe(0);
    }
  } finally {
    await Promise.all(worlds.map((world) => world.cleanup()));
  }
}

const property = (makeWorlds: MakeWorlds, histories: fc.Arbitrary<LinkStep[]>, compares = false) =>
  fc.asyncProperty(histories, (steps) => replay(makeWorlds, steps, compares));

it('no wait is without an end in any history in memory', async () => {
  const inMemory: MakeWorlds = async (clock) => [memoryWorld(clock)];
  await fc.assert(property(inMemory, lossyHistory), parameters(5 * RUNS));
});

describe.each(redisStores(RUNS))('dependencies on %s', (_, start, runs) => {
  const timeout = Math.max(60_000, runs * 3000);
  const backdoor = useBackdoor(start);

  it(
    'are those in memory after each step of any history',
    async () => {
      const both: MakeWorlds = async (clock) => [await backdoor().world(clock), memoryWorld(clock)];
      await fc.assert(property(both, carriedHistory, true), parameters(runs));
    },
    timeout,
  );

  it(
    'end, whatever gets lost in any history',
    async () => {
      const one: MakeWorlds = async (clock) => [await backdoor().world(clock)];
      await fc.assert(property(one, lossyHistory), parameters(runs));
    },
    timeout,
  );
});
