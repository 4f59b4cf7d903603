import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LimitingRole } from '../../lib/broker/limiting.js';
import { ManualClock } from '../../lib/clock.js';
import { START } from './driver.js';
import { memoryWorld } from './memory-world.js';
import { redisStores, useBackdoor } from './property-stores.js';

/** Set both to run a failed history again: the report of the failure names them. */
const { FC_SEED, FC_PATH, FC_RUNS = '100' } = process.env;

const WINDOW = 400_000;
/** Redis takes the time of a caller that is less ahead for that of the others. */
const CLOCK_TOLERANCE = 1_000;
const MAX = 100;

type Step =
  | { readonly do: 'take'; readonly costs: readonly number[] }
  | { readonly do: 'correct'; readonly changes: readonly { readonly at: number; readonly by: number }[] }
  | { readonly do: 'move'; readonly milliseconds: number };

const cost = fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: MAX }));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('take'), costs: fc.array(cost, { minLength: 1, maxLength: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('correct'),
      changes: fc.array(fc.record({ at: fc.nat(20), by: fc.integer({ min: -MAX, max: MAX }) }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('move'), milliseconds: fc.integer({ min: CLOCK_TOLERANCE, max: WINDOW }) }),
  },
);

/** Plays a step; what has cost is written down with its time. */
async function play(limiting: LimitingRole, taken: { countedAt: number; cost: number }[], one: Step): Promise<unknown> {
  if (one.do === 'take') {
    const reply = await limiting.takeCosts('scope', { max: MAX, window: WINDOW }, one.costs);
    for (const granted of one.costs.slice(0, reply.granted)) taken.push({ countedAt: reply.countedAt, cost: granted });
    return reply;
  }
  if (one.do === 'move' || taken.length === 0) return undefined;
  const corrections = one.changes.map(({ at, by }) => {
    const { countedAt, cost: paid } = taken[at % taken.length]!;
    return { countedAt, by: Math.max(by, -paid) };
  });
  return limiting.correctCosts('scope', WINDOW, corrections);
}

describe.each(redisStores(Number(FC_RUNS)))('costs in memory and %s', (_, start, runs) => {
  const backdoor = useBackdoor(start);

  it('are the same after any history, and never above the limit', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const clock = new ManualClock(Math.ceil(START / WINDOW) * WINDOW);
      const worlds = [await backdoor().world(clock), memoryWorld(clock)] as const;
      const taken: [{ countedAt: number; cost: number }[], { countedAt: number; cost: number }[]] = [[], []];
      let corrected = false;
      try {
        for (const one of steps) {
          if (one.do === 'move') clock.advance(one.milliseconds);
          const inRedis = await play(worlds[0].broker.limiting, taken[0], one);
          expect(inRedis).toEqual(await play(worlds[1].broker.limiting, taken[1], one));
          corrected ||= one.do === 'correct';
          const counting = taken[0].filter(({ countedAt }) => countedAt > clock.now() - WINDOW);
          if (!corrected) expect(counting.reduce((sum, { cost: paid }) => sum + paid, 0)).toBeLessThanOrEqual(MAX);
        }
      } finally {
        await Promise.all(worlds.map((world) => world.cleanup()));
      }
    });
    await fc.assert(property, {
      numRuns: runs,
      ...(FC_SEED === undefined ? {} : { seed: Number(FC_SEED) }),
      ...(FC_PATH === undefined ? {} : { path: FC_PATH }),
    });
  }, 120_000);
});
