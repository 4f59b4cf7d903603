import fc from 'fast-check';
import { describe, it } from 'vitest';
import { FAILURE_POLICIES, type FailurePolicy } from '../../lib/broker/links.js';
import { ManualClock } from '../../lib/clock.js';
import { Driver, type MakeWorld, START } from './driver.js';
import { memoryWorld } from './memory-world.js';
import { parameters, redisStores, useBackdoor } from './property-stores.js';
import type { RunModel } from './run-model.js';

/** What a step of a random run has in all histories. */
export interface RandomStep {
  /** Which of the steps so far it comes after. */
  readonly after: readonly number[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
}

/** @param mostBefore the most steps that one comes after */
export const randomStep = (mostBefore: number) => ({
  after: fc.array(fc.nat(30), { maxLength: mostBefore }),
  onFailure: fc.constantFrom(...FAILURE_POLICIES),
  optional: fc.boolean(),
});

/** The names of the steps of a model that a new step comes after. */
export function stepsBefore({ steps }: RunModel, after: readonly number[]): string[] {
  return steps.length === 0 ? [] : [...new Set(after.map((n) => steps[n % steps.length]!.name))];
}

/**
 * Tries random histories in memory, on Redis and on a cluster.
 *
 * @param play plays a history on a broker, beside a model
 */
export function describeRunHistories<History>(
  what: string,
  runs: number,
  history: fc.Arbitrary<History>,
  play: (driver: Driver, history: History) => Promise<void>,
): void {
  const hold = (makeWorld: MakeWorld, count: number): Promise<void> =>
    fc.assert(
      fc.asyncProperty(history, async (one) => {
        const clock = new ManualClock(START);
        const driver = new Driver(await makeWorld(clock), clock);
        try {
          await play(driver, one);
        } finally {
          await driver.world.cleanup();
        }
      }),
      parameters(count),
    );

  describe(what, () => {
    it('in memory', () => hold(async (clock) => memoryWorld(clock), runs), 120_000);
  });

  describe.each(redisStores(runs))(`${what} on %s`, (_, start, count) => {
    const backdoor = useBackdoor(start);
    it('of any shape', () => hold((clock) => backdoor().world(clock), count), 120_000);
  });
}
