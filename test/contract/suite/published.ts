import { describe, expect } from 'vitest';
import type { SchedulerEntry } from '../../../lib/wire/message.js';
import type { Driver, DriverTest } from '../driver.js';

const entry = (driver: Driver, id: string): SchedulerEntry => ({
  id,
  spec: '@every 1h',
  taskType: 't',
  taskPayload: Buffer.from([0, 255]),
  enqueueOptions: ['MaxRetry(5)'],
  nextEnqueueTime: driver.clock.now() + 1_000,
  prevEnqueueTime: undefined,
});

export function exercisePublished(it: DriverTest): void {
  describe('schedulerEntries', () => {
    it('returns what all schedulers have published, in their order', async ({ driver }) => {
      const [a, b, c] = ['a', 'b', 'c'].map((id) => entry(driver, id));
      expect(await driver.broker.publications.schedulerEntries()).toEqual([]);
      await driver.broker.scheduling.writeSchedulerEntries('h:1:x', [a!, b!], 20);
      expect(await driver.broker.publications.schedulerEntries()).toEqual([a, b]);
      await driver.broker.scheduling.writeSchedulerEntries('h:2:y', [c!], 20);
      expect(await driver.broker.publications.schedulerEntries()).toEqual(expect.arrayContaining([a, b, c]));
      await driver.broker.scheduling.clearSchedulerEntries('h:1:x');
      expect(await driver.broker.publications.schedulerEntries()).toEqual([c]);
    });
  });

  describe('enqueueEvents', () => {
    it('returns the history of an entry page by page, newest first', async ({ driver }) => {
      const events = Array.from({ length: 5 }, (_, index) => ({
        taskId: `t${index}`,
        enqueueTime: driver.clock.now() + index * 1_000,
      }));
      for (const event of events) await driver.broker.scheduling.recordEnqueueEvent('e', event);
      expect(await driver.broker.publications.enqueueEvents('e', 0, 2)).toEqual([events[4], events[3]]);
      expect(await driver.broker.publications.enqueueEvents('e', 4, 2)).toEqual([events[0]]);
      expect(await driver.broker.publications.enqueueEvents('other', 0, 2)).toEqual([]);
    });
  });
}
