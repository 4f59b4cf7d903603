import { describe, expect } from 'vitest';
import type { Settlement } from '../../../lib/broker/broker.js';
import type { ServerProfile } from '../../../lib/broker/server-profile.js';
import type { ServerInfo } from '../../../lib/wire/message.js';
import { type Driver, type DriverTest, expectUnchanged } from '../driver.js';

const SERVER: ServerInfo = {
  host: 'h',
  pid: 42,
  serverId: 's',
  concurrency: 10,
  queues: { default: 1 },
  strictPriority: false,
  status: 'active',
  startTime: 1_700_000_000_123,
  activeWorkerCount: 0,
};

const PROFILE: ServerProfile = {
  handlers: [{ pattern: 'email:', version: 2, scope: 'mail', globalConcurrency: 3 }],
  queues: { default: { rate: 10, window: 1_000 } },
  aggregates: true,
};

const position = ({ broker }: Driver, id: string) => broker.obstacles.position('default', id);

/** Puts all pending tasks into a waitlist. */
async function deferAll(driver: Driver, waitlist: string): Promise<void> {
  const settle = (await driver.take(100)).map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist }));
  await driver.settle(...settle);
}

export function exerciseObstacles(it: DriverTest): void {
  describe('the position of a task', () => {
    it('is that in the order in which tasks are claimed', async ({ driver }) => {
      const ids = [await driver.add(), await driver.add(), await driver.add()];
      for (const [ahead, id] of ids.entries()) {
        expect(await position(driver, id)).toMatchObject({ pending: 3, active: 0, ahead, paused: false });
      }
      await driver.take();
      expect(await position(driver, ids[2]!)).toMatchObject({ pending: 2, active: 1, ahead: 1 });
    });

    it('is none while a task is not pending', async ({ driver }) => {
      for (const state of ['scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const) {
        const id = await driver.arrange(state);
        expect(await position(driver, id)).toMatchObject({ ahead: undefined, leaseEnd: undefined });
      }
      expect(await position(driver, 'missing')).toMatchObject({ ahead: undefined, waitlist: undefined });
    });

    it('names the end of a lease', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      expect(await position(driver, lease.id)).toMatchObject({ leaseEnd: lease.expiresAt, ahead: undefined });
    });

    it('says whether the queue is paused', async ({ driver }) => {
      const id = await driver.add();
      await driver.broker.administration.pauseQueue('default');
      expect(await position(driver, id)).toMatchObject({ paused: true, ahead: 0 });
    });

    it('is that in its waitlist while it waits to be woken', async ({ driver }) => {
      const ids = [await driver.add(), await driver.add()];
      await deferAll(driver, 'limit');
      expect(await position(driver, ids[1]!)).toMatchObject({
        waitlist: { name: 'limit', ahead: 1 },
      });
      expect(await position(driver, ids[0]!)).toMatchObject({ waitlist: { name: 'limit', ahead: 0 } });
      await driver.broker.limiting.wakeWaiting('default', 'limit', 1);
      expect(await position(driver, ids[0]!)).toMatchObject({ waitlist: undefined, ahead: 0 });
    });

    it('is in no waitlist for a task that has another time by now', async ({ driver }) => {
      const id = await driver.add();
      await deferAll(driver, 'limit');
      await driver.broker.administration.rescheduleTasks('default', [id], driver.now + 1_000);
      expect(await position(driver, id)).toMatchObject({ waitlist: undefined });
    });

    it('is read without a change', async ({ driver }) => {
      const id = await driver.add();
      await expectUnchanged(driver, async () => {
        await position(driver, id);
        await driver.broker.obstacles.heldTokens('scope');
        await driver.broker.obstacles.startsLeft('scope', { max: 1, window: 1_000 });
        await driver.broker.obstacles.queueStartsLeft('default', { max: 1, window: 1_000 });
        await driver.broker.obstacles.observeServers();
        await driver.broker.obstacles.servedQueues();
      });
    });
  });

  describe('observed servers', () => {
    it('come with their profile, if they publish one', async ({ driver }) => {
      const { monitoring, obstacles } = driver.broker;
      const other = { ...SERVER, serverId: 'other' };
      await monitoring.writeServerState(SERVER, [], 10);
      await monitoring.writeServerProfile(SERVER, PROFILE, 60);
      await monitoring.writeServerState(other, [], 10);
      const seen = await obstacles.observeServers();
      expect(seen).toHaveLength(2);
      const byId = Object.fromEntries(seen.map((server) => [server.info.serverId, server]));
      expect(byId['s']).toMatchObject({ info: SERVER, workers: [], profile: PROFILE });
      expect(byId['other']).toMatchObject({ info: other, profile: undefined });
    });

    it('are gone with their profile when they have stopped', async ({ driver }) => {
      const { monitoring, obstacles } = driver.broker;
      await monitoring.writeServerProfile(SERVER, PROFILE, 60);
      expect(await obstacles.observeServers()).toEqual([]);
      await monitoring.writeServerState(SERVER, [], 10);
      await monitoring.clearServerState(SERVER);
      expect(await obstacles.observeServers()).toEqual([]);
      await monitoring.writeServerState(SERVER, [], 10);
      expect(await obstacles.observeServers()).toMatchObject([{ profile: undefined }]);
    });
  });

  describe('served queues', () => {
    it('are those of servers that take tasks', async ({ driver }) => {
      const { monitoring, obstacles } = driver.broker;
      expect(await obstacles.servedQueues()).toEqual(new Set());
      await monitoring.writeServerState({ ...SERVER, queues: { low: 1, 'a b': 2 } }, [], 10);
      await monitoring.writeServerState({ ...SERVER, serverId: 'two', queues: { low: 3, high: 1 } }, [], 10);
      await monitoring.writeServerState(
        { ...SERVER, serverId: 'three', status: 'stopped', queues: { old: 1 } },
        [],
        10,
      );
      expect(await obstacles.servedQueues()).toEqual(new Set(['low', 'a b', 'high']));
      await monitoring.clearServerState({ ...SERVER, serverId: 'two' });
      expect(await obstacles.servedQueues()).toEqual(new Set(['low', 'a b']));
    });
  });

  describe('what is left of limits', () => {
    it('is who has the tokens of a scope, until they expire', async ({ driver }) => {
      const { limiting, obstacles } = driver.broker;
      expect(await obstacles.heldTokens('scope')).toEqual({ count: 0, holders: [] });
      await limiting.acquireTokens('scope', 5, driver.now + 20, ['b', 'c']);
      await limiting.acquireTokens('scope', 5, driver.now + 10, ['a']);
      const [until, later] = [driver.now + 10, driver.now + 20];
      expect(await obstacles.heldTokens('scope')).toEqual({
        count: 3,
        holders: [
          { holder: 'a', until },
          { holder: 'b', until: later },
          { holder: 'c', until: later },
        ],
      });
      driver.clock.advance(11_000);
      expect(await obstacles.heldTokens('scope')).toMatchObject({ count: 2, holders: [{ holder: 'b' }, {}] });
    });

    it('names some holders, and counts all', async ({ driver }) => {
      const many = Array.from({ length: 30 }, (_, index) => `holder-${index}`);
      await driver.broker.limiting.acquireTokens('scope', 100, driver.now + 20, many);
      const { count, holders } = await driver.broker.obstacles.heldTokens('scope');
      expect([count, holders.length]).toEqual([30, 20]);
    });

    it('is how many may start now, and when more may', async ({ driver }) => {
      const { limiting, obstacles } = driver.broker;
      const limit = { max: 3, window: 16_000 };
      expect(await obstacles.startsLeft('scope', limit)).toEqual({ left: 3, moreIn: 0 });
      await limiting.takeStarts('scope', limit, 2);
      expect(await obstacles.startsLeft('scope', limit)).toEqual({ left: 1, moreIn: 0 });
      await limiting.takeStarts('scope', limit, 1);
      const { left, moreIn } = await obstacles.startsLeft('scope', limit);
      expect([left, moreIn]).toEqual([0, (await limiting.takeStarts('scope', limit, 1)).retryIn]);
    });

    it('is counted for a queue, too', async ({ driver }) => {
      const limit = { max: 1, window: 16_000 };
      await driver.add();
      expect(await driver.broker.obstacles.queueStartsLeft('default', limit)).toEqual({ left: 1, moreIn: 0 });
      const limits = { active: 0, rate: 1, window: 16_000 };
      await driver.broker.consumer.exchange('default', { settle: [], take: 1, limits });
      expect(await driver.broker.obstacles.queueStartsLeft('default', limit)).toMatchObject({ left: 0 });
    });
  });
}
