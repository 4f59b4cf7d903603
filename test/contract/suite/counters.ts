import { describe, expect } from 'vitest';
import { utcDay } from '../../../lib/wire/keys.js';
import { type DriverTest, archival, completion, done, expectQueue, requeueing, retrial } from '../driver.js';

export function exerciseCounters(it: DriverTest): void {
  describe('counters', () => {
    it('count done and complete as processed', async ({ driver }) => {
      await driver.settle(done(await driver.takeNew()), completion(await driver.takeNew(), driver.now + 9));
      const day = utcDay(driver.clock.now());
      const expected = { processed: 2, failed: 0, processedOn: { [day]: 2 }, failedOn: {} };
      await expectQueue(driver, expected);
    });

    it('count a failure and an archiving as processed and failed', async ({ driver }) => {
      await driver.settle(retrial(await driver.takeNew(), driver.now + 9), archival(await driver.takeNew()));
      const day = utcDay(driver.clock.now());
      const expected = { processed: 2, failed: 2, processedOn: { [day]: 2 }, failedOn: { [day]: 2 } };
      await expectQueue(driver, expected);
    });

    it('count neither a retry without failure, nor a requeue, nor what was lost', async ({ driver }) => {
      const lost = await driver.takeNew();
      await driver.settle(done(lost));
      await driver.settle(
        retrial(await driver.takeNew(), driver.now + 9, false),
        requeueing(await driver.takeNew()),
        done(lost),
      );
      const day = utcDay(driver.clock.now());
      const expected = { processed: 1, failed: 0, processedOn: { [day]: 1 }, failedOn: {} };
      await expectQueue(driver, expected);
    });

    it('count by the UTC day of the clock', async ({ driver }) => {
      const day = 86_400_000;
      const midnight = Math.ceil((driver.clock.now() + 1000) / day) * day;
      driver.clock.moveTo(midnight - 1);
      await driver.settle(done(await driver.takeNew()));
      driver.clock.moveTo(midnight);
      await driver.settle(archival(await driver.takeNew()), archival(await driver.takeNew()));
      await expectQueue(driver, {
        processed: 3,
        failed: 2,
        processedOn: { [utcDay(midnight - 1)]: 1, [utcDay(midnight)]: 2 },
        failedOn: { [utcDay(midnight)]: 2 },
      });
    });

    it('keep the counters of a day for 90 days from its first task', async ({ driver }) => {
      const day = utcDay(driver.clock.now());
      await driver.settle(done(await driver.takeNew()));
      driver.clock.advance(90 * 86_400_000 - 1000);
      expect((await driver.queue()).processedOn).toEqual({ [day]: 1 });
      driver.clock.advance(1000);
      await expectQueue(driver, { processed: 1, processedOn: {} });
    });
  });
}
