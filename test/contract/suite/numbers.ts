import { describe, expect } from 'vitest';
import { utcDay } from '../../../lib/wire/keys.js';
import type { ServerInfo, WorkerInfo } from '../../../lib/wire/message.js';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, done } from '../driver.js';

const server = (driver: Driver, serverId: string): ServerInfo => ({
  host: 'h',
  pid: 7,
  serverId,
  concurrency: 3,
  queues: { default: 2 },
  strictPriority: true,
  status: 'active',
  startTime: driver.clock.now(),
  activeWorkerCount: 1,
});

export function exerciseNumbers(it: DriverTest): void {
  describe('describeQueue', () => {
    it('returns zeros for a queue without tasks', async ({ driver }) => {
      const numbers = await driver.broker.inspection.describeQueue('default');
      for (const value of Object.values(numbers)) expect([0, false]).toContain(value);
    });

    for (const state of STORED_STATES) {
      it(`counts a task that is ${state}`, async ({ driver }) => {
        await driver.arrange(state);
        const numbers = await driver.broker.inspection.describeQueue('default');
        const counts = Object.fromEntries(STORED_STATES.map((name) => [name, numbers[name]]));
        expect(counts).toEqual({ ...Object.fromEntries(STORED_STATES.map((name) => [name, 0])), [state]: 1 });
        expect(numbers.groups).toBe(state === 'aggregating' ? 1 : 0);
        expect(numbers.memoryUsage).toBeGreaterThan(0);
      });
    }

    it('counts groups, attempts and the pause', async ({ driver }) => {
      for (const groupKey of ['g', 'g', 'h:i']) await driver.add({ groupKey });
      await driver.settle(done(await driver.takeNew()));
      await driver.settle(archival(await driver.takeNew()));
      await driver.broker.administration.pauseQueue('default');
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({
        groups: 2,
        aggregating: 3,
        archived: 1,
        paused: true,
        processed: 2,
        failed: 1,
        processedTotal: 2,
        failedTotal: 1,
      });
      driver.clock.advance(86_400_000);
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({
        processed: 0,
        failed: 0,
        processedTotal: 2,
        failedTotal: 1,
      });
    });

    it('returns how long the oldest pending task has waited, also after one that was put back', async ({ driver }) => {
      expect((await driver.broker.inspection.describeQueue('default')).latency).toBe(0);
      await driver.add();
      driver.clock.advance(1500);
      await driver.add();
      driver.clock.advance(250);
      expect((await driver.broker.inspection.describeQueue('default')).latency).toBe(1750);
      const task = await driver.takeOne();
      expect((await driver.broker.inspection.describeQueue('default')).latency).toBe(250);
      await driver.settle({ kind: 'requeue', lease: task.lease });
      expect((await driver.broker.inspection.describeQueue('default')).latency).toBe(250);
    });

    it('measures the wait to the millisecond, at whatever millisecond it began', async ({ driver }) => {
      const latencies: number[] = [];
      for (let i = 0; i < 60; i++) {
        driver.clock.advance(17);
        await driver.add();
        latencies.push((await driver.broker.inspection.describeQueue('default')).latency);
        await driver.settle(done(await driver.takeOne()));
      }
      expect(latencies).toEqual(latencies.map(() => 0));
    });
  });

  describe('groups', () => {
    it('lists those that have tasks, by name', async ({ driver }) => {
      for (const groupKey of ['g', 'h:i', 'g', 'ü']) await driver.add({ groupKey });
      expect(await driver.broker.inspection.groups('default')).toEqual([
        { group: 'g', size: 2 },
        { group: 'h:i', size: 1 },
        { group: 'ü', size: 1 },
      ]);
      expect(await driver.broker.inspection.groups('other')).toEqual([]);
    });

    it('are all counted, however many there are', async ({ driver }) => {
      const names = Array.from({ length: 1_100 }, (_, index) => `g${index}`);
      await driver.enqueue(names.map((groupKey) => request({ groupKey })));
      const groups = await driver.broker.inspection.groups('default');
      expect(groups).toEqual(names.sort().map((group) => ({ group, size: 1 })));
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({
        groups: 1_100,
        aggregating: 1_100,
      });
    });
  });

  describe('hasQueue', () => {
    it('is true only for queues to which a task was enqueued', async ({ driver }) => {
      await driver.broker.administration.pauseQueue('paused');
      await driver.add();
      expect(await driver.broker.inspection.hasQueue('default')).toBe(true);
      expect(await driver.broker.inspection.hasQueue('paused')).toBe(false);
    });
  });

  describe('countsOfDays', () => {
    it('returns the counts of each day, in the order asked for', async ({ driver }) => {
      const today = utcDay(driver.clock.now());
      await driver.settle(done(await driver.takeNew()));
      driver.clock.advance(2 * 86_400_000);
      await driver.settle(archival(await driver.takeNew()));
      const later = utcDay(driver.clock.now());
      const between = utcDay(driver.clock.now() - 86_400_000);
      expect(await driver.broker.inspection.countsOfDays('default', [later, between, today])).toEqual([
        { day: later, processed: 1, failed: 1 },
        { day: between, processed: 0, failed: 0 },
        { day: today, processed: 1, failed: 0 },
      ]);
    });
  });

  describe('servers', () => {
    it('returns the servers that have published themselves, with the tasks they run', async ({ driver }) => {
      const info = server(driver, 's');
      const worker: WorkerInfo = {
        host: 'h',
        pid: 7,
        serverId: 's',
        taskId: 'a',
        taskType: 't',
        taskPayload: Buffer.from([0, 255]),
        queue: 'default',
        startTime: driver.clock.now(),
        deadline: driver.clock.now() + 5_000,
      };
      await driver.broker.monitoring.writeServerState(info, [worker], 10);
      await driver.broker.monitoring.writeServerState(server(driver, 'idle'), [], 10);
      const seen = await driver.broker.publications.servers();
      expect(seen.sort((a, b) => (a.info.serverId < b.info.serverId ? -1 : 1))).toEqual([
        { info: server(driver, 'idle'), workers: [] },
        { info, workers: [worker] },
      ]);
      await driver.broker.monitoring.clearServerState(info);
      expect((await driver.broker.publications.servers()).map(({ info: { serverId } }) => serverId)).toEqual(['idle']);
    });
  });
}
