import { describe, expect, it, vi } from 'vitest';
import type { ServerInfo, WorkerInfo } from '../../../lib/wire/message.js';
import { type Driver, expectUntouched } from '../driver.js';

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

export function exerciseMonitoring(current: () => Driver): void {
  describe('cancellation', () => {
    it('reaches every subscriber, with the id as it was given', async () => {
      const { broker } = current();
      const heard: string[][] = [[], []];
      const ends = await Promise.all(heard.map((ids) => broker.subscribeCancellations((id) => void ids.push(id))));
      for (const id of ['a', 'ü b:{c}', 'b']) await broker.publishCancellation(id);
      // In no order: a cluster carries each message along another way.
      await vi.waitFor(() => {
        for (const ids of heard) expect([...ids].sort()).toEqual(['a', 'b', 'ü b:{c}']);
      });
      for (const end of ends) await end();
    });

    it('no longer reaches who has ended his subscription', async () => {
      const { broker } = current();
      const [early, late]: [string[], string[]] = [[], []];
      const end = await broker.subscribeCancellations((id) => void early.push(id));
      const endLate = await broker.subscribeCancellations((id) => void late.push(id));
      await broker.publishCancellation('a');
      await vi.waitFor(() => expect(early).toEqual(['a']));
      await end();
      await end();
      await broker.publishCancellation('b');
      await vi.waitFor(() => expect(late).toEqual(['a', 'b']));
      expect(early).toEqual(['a']);
      await endLate();
    });

    it('is no error when nobody listens', async () => {
      await expect(current().broker.publishCancellation('nobody')).resolves.toBeUndefined();
    });
  });

  describe('server state', () => {
    it('is published, again and again, and cleared, without touching the queues', async () => {
      const driver = current();
      await driver.add();
      await expectUntouched(driver, async () => {
        await driver.broker.writeServerState(server, [worker], 10);
        await driver.broker.writeServerState({ ...server, status: 'stopped' }, [], 10);
        await driver.broker.clearServerState(server);
        await driver.broker.clearServerState(server);
        await driver.broker.ping();
      });
    });
  });
}
