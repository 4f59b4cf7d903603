import { describe, expect } from 'vitest';
import type { ServerInfo, WorkerInfo } from '../../../lib/wire/message.js';
import { type DriverTest, expectUnchanged } from '../driver.js';

const server: ServerInfo = {
  host: 'h',
  pid: 42,
  serverId: 's',
  concurrency: 10,
  queues: { default: 1 },
  strictPriority: false,
  status: 'active',
  startTime: 1_700_000_000_123,
  activeWorkerCount: 1,
};

const worker: WorkerInfo = {
  host: 'h',
  pid: 42,
  serverId: 's',
  taskId: 't1',
  taskType: 't',
  taskPayload: Buffer.from([0, 255]),
  queue: 'default',
  startTime: 1_700_000_000_123,
  deadline: 1_700_000_001_000,
};

export function exerciseMonitoring(it: DriverTest): void {
  describe('the information about the store', () => {
    it('is read without a write, and shows a store that is fit for tasks', async ({ driver }) => {
      await expectUnchanged(driver, async () => {
        for (const info of await driver.broker.operations.storeInfo()) {
          expect(info).toEqual({
            address: expect.stringMatching(/:\d+$/),
            version: expect.stringMatching(/^\d+\.\d+/),
            evictionPolicy: 'noeviction',
            ahead: expect.any(Number),
          });
        }
      });
    });
  });

  describe('server state', () => {
    it('is published, again and again, and cleared, without touching the queues', async ({ driver }) => {
      await driver.add();
      await expectUnchanged(driver, async () => {
        await driver.broker.monitoring.writeServerState(server, [worker], 10);
        await driver.broker.monitoring.writeServerState({ ...server, status: 'stopped' }, [], 10);
        await driver.broker.monitoring.clearServerState(server);
        await driver.broker.monitoring.clearServerState(server);
        await driver.broker.monitoring.ping();
      });
    });

    it('is missed when it is not published any more, unless it was cleared', async ({ driver }) => {
      const { monitoring } = driver.broker;
      await monitoring.writeServerState({ ...server, host: '::1' }, [worker], 10);
      await monitoring.writeServerState({ ...server, serverId: 'other' }, [], 10);
      const at = driver.now;
      expect(await monitoring.lostServers()).toEqual([]);
      driver.clock.advance(11_000);
      await monitoring.clearServerState({ ...server, serverId: 'other' });
      expect(await monitoring.lostServers()).toEqual([{ host: '::1', pid: 42, at }]);
      await monitoring.writeServerState({ ...server, host: '::1' }, [], 10);
      expect(await monitoring.lostServers()).toEqual([]);
      driver.clock.advance(3_700_000);
      expect(await monitoring.lostServers()).toEqual([]);
    });
  });
}
