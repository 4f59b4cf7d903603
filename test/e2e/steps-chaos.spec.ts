import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { startRedis } from '../support/redis.js';
import { endStaleLeases, last, PATIENCE, repeatUntil, SECONDS, TIMEOUT_MS } from './chaos.js';
import { StepsJudge } from './steps-judge.js';

const QUEUES = ['default', 'other'];
const STATES = ['pending', 'active', 'scheduled', 'retry', 'waiting'] as const;

describe('chaos of handlers with steps', () => {
  it(
    'does each step, and ends each order, while servers, clients and Redis are killed',
    async () => {
      const server = await startRedis({ appendOnly: true });
      onTestFinished(() => server.stop());
      const { host, port } = server;
      const redis = new Redis(port, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
      redis.on('error', () => undefined);
      onTestFinished(() => redis.disconnect());
      const broker = new RedisBroker(new RedisConnections({ host, port }));
      const inspector = new AsynqInspector(broker);
      const signal = (id: string): Promise<unknown> => broker.checkpoints.signal('default', id, 'go', Buffer.alloc(0));
      const judge = new StepsJudge({ connection: { host, port } });
      onTestFinished(() => judge.kill().then(() => broker.close()));

      await Promise.all((['server', 'server', 'client', 'client'] as const).map((role) => judge.start(role)));
      const end = Date.now() + SECONDS * 1000;
      const endLeases = async (): Promise<void> => {
        for (const queue of QUEUES) await endStaleLeases(redis, new Keyspace().queue(queue));
      };
      const killing = async (what: () => Promise<void>): Promise<void> => {
        judge.killed();
        await what();
        judge.killed();
      };
      await Promise.all([
        repeatUntil(end, 1_500 * PATIENCE, () => killing(() => judge.replace('server'))),
        repeatUntil(end, 4_000 * PATIENCE, () => judge.replace('client')),
        repeatUntil(end, 3_000 * PATIENCE, () => killing(() => server.restart())),
        repeatUntil(end, 2_000, endLeases),
      ]);

      await judge.stop('client');
      const { base, scheduled } = new Keyspace().queue('default');
      const open = async (): Promise<string[]> => {
        await endLeases();
        // A killed client has not signalled all that it has placed.
        for (const id of await redis.zrange(scheduled, 0, '-1')) {
          if ((await redis.hexists(`${base}t:${id}`, 'signal:go')) === 0) await signal(id);
        }
        const infos = await Promise.all(QUEUES.map((queue) => inspector.getQueueInfo(queue)));
        return infos.flatMap((info) =>
          STATES.filter((state) => info[state] > 0).map((state) => `${info[state]} of ${info.queue} are ${state}`),
        );
      };
      expect(await last(open, 90_000)).toEqual([]);
      await judge.stop('server');
      if (SECONDS > 60) console.log({ orders: judge.orders, repeats: judge.repeats, ...judge.deeds });
      expect(judge.faults()).toEqual([]);
      expect(judge.orders).toBeGreaterThan(10);
      const [first, second] = await Promise.all(QUEUES.map((queue) => inspector.getQueueInfo(queue)));
      // Killed clients may have placed orders that they could not say.
      expect(first!.archived).toBeGreaterThanOrEqual(judge.soldOut);
      expect(second!.archived).toBe(0);
      expect(await redis.keys('asynq:{*}:links')).toEqual([]);
      expect(await redis.keys('asynq:{*}:outbox')).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
