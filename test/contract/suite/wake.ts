import { describe, expect, onTestFinished, vi } from 'vitest';
import type { WakeSource } from '../../../lib/broker/broker.js';
import { ClosedError } from '../../../lib/errors.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, done, retrial } from '../driver.js';

interface Notices {
  readonly source: WakeSource;
  readonly pending: string[];
  readonly delayed: string[];
  places: number;
  lost: number;
}

const watch = (driver: Driver): Notices => {
  const pending: string[] = [];
  const delayed: string[] = [];
  const source = driver.broker.wake.watch({
    onPending: (queue) => void pending.push(queue),
    onDelayed: (queue) => void delayed.push(queue),
    onPlaces: () => void notices.places++,
    onLost: () => void notices.lost++,
  });
  const notices: Notices = { source, pending, delayed, places: 0, lost: 0 };
  onTestFinished(() => source.close());
  return notices;
};

/** Notices arrive in the order of the changes: after this one, no earlier one is under way. */
async function flush(driver: Driver, notices: Notices): Promise<void> {
  const { length } = notices.pending;
  await notices.source.armPending(['flush']);
  await driver.add({ queue: 'flush' });
  await vi.waitFor(() => expect(notices.pending.slice(length)).toContain('flush'));
  notices.pending.splice(notices.pending.indexOf('flush'), 1);
}

export function exerciseWake(it: DriverTest): void {
  describe('wake', () => {
    it('returns the runnable backlog of each queue when it arms', async ({ driver }) => {
      const { source } = watch(driver);
      await driver.enqueue([request(), request()]);
      await driver.add({ queue: 'paused' });
      await driver.broker.administration.pauseQueue('paused');
      const backlog = await source.armPending(['default', 'paused', 'empty']);
      expect([...backlog]).toEqual([
        ['default', 2],
        ['paused', 0],
        ['empty', 0],
      ]);
    });

    it('notices an enqueue, once per arming', async ({ driver }) => {
      const notices = watch(driver);
      await notices.source.armPending(['default', 'other']);
      await driver.add();
      await vi.waitFor(() => expect(notices.pending).toEqual(['default']));
      await driver.add();
      await flush(driver, notices);
      expect(notices.pending).toEqual(['default']);
      await notices.source.armPending(['default']);
      await driver.add();
      await vi.waitFor(() => expect(notices.pending).toEqual(['default', 'default']));
      expect(notices.lost).toBe(0);
    });

    it('notices a pause, a resume and a forwarded task', async ({ driver }) => {
      await driver.add({}, { processAt: driver.now });
      const notices = watch(driver);
      const steps = [
        () => driver.broker.administration.pauseQueue('default'),
        () => driver.broker.administration.resumeQueue('default'),
        () => driver.broker.maintenance.forward('default'),
      ];
      for (const [index, step] of steps.entries()) {
        await notices.source.armPending(['default']);
        await step();
        await vi.waitFor(() => expect(notices.pending).toHaveLength(index + 1));
      }
      expect(new Set(notices.pending)).toEqual(new Set(['default']));
    });

    it('does not notice what changes neither pending nor paused', async ({ driver }) => {
      const task = await driver.takeNew();
      const notices = watch(driver);
      await notices.source.armPending(['default']);
      await driver.add({}, { processAt: driver.now + 5 });
      await driver.add({ groupKey: 'g' });
      await driver.broker.consumer.extendLeases('default', [task.lease], driver.now + 60);
      await driver.settle(done(task));
      await flush(driver, notices);
      expect(notices.pending).toEqual([]);
    });

    it('returns the next due time of all queues and notices scheduled and retried tasks', async ({ driver }) => {
      const task = await driver.takeNew();
      const notices = watch(driver);
      expect(await notices.source.armDelayed(['default', 'other'])).toBeUndefined();
      await driver.settle(retrial(task, driver.now + 50));
      await vi.waitFor(() => expect(notices.delayed).toEqual(['default']));
      expect(await notices.source.armDelayed(['default', 'other'])).toBe(driver.now + 50);
      await driver.add({ queue: 'other' }, { processAt: driver.now + 20 });
      await vi.waitFor(() => expect(notices.delayed).toEqual(['default', 'other']));
      expect(await notices.source.armDelayed(['default', 'other'])).toBe(driver.now + 20);
      expect(notices.pending).toEqual([]);
    });

    it('serves several sources', async ({ driver }) => {
      const both = [watch(driver), watch(driver)];
      for (const { source } of both) await source.armPending(['default']);
      await driver.add();
      for (const notices of both) await vi.waitFor(() => expect(notices.pending).toEqual(['default']));
    });

    it('emits nothing after it was closed, and cannot be armed again', async ({ driver }) => {
      const [closed, open] = [watch(driver), watch(driver)];
      for (const { source } of [closed, open]) await source.armPending(['default']);
      await closed.source.close();
      await closed.source.close();
      await driver.add();
      await vi.waitFor(() => expect(open.pending).toEqual(['default']));
      expect(closed.pending).toEqual([]);
      await expect(closed.source.armPending(['default'])).rejects.toBeInstanceOf(ClosedError);
      await expect(closed.source.armDelayed(['default'])).rejects.toBeInstanceOf(ClosedError);
    });

    it('notices the first link of a queue, once per arming', async ({ driver }) => {
      const notices = watch(driver);
      expect(await notices.source.armPlaces()).toEqual([]);
      const mark = { type: 't', key: 'k', rememberFor: 60 };
      await driver.broker.links.enqueue('default', [{ ...request(), mark }]);
      await vi.waitFor(() => expect(notices.places).toBe(1));
      await driver.broker.links.enqueue('default', [{ ...request(), mark }]);
      await flush(driver, notices);
      expect(notices.places).toBe(1);
      expect(await notices.source.armPlaces()).toEqual(['default']);
    });

    it('has nothing to arm for no queues', async ({ driver }) => {
      const { source } = watch(driver);
      expect([...(await source.armPending([]))]).toEqual([]);
      expect(await source.armDelayed([])).toBeUndefined();
    });
  });
}
