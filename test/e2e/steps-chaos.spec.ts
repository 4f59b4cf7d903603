import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { startRedis } from '../support/redis.js';
import { useThreadModules } from '../support/thread-modules.js';
import { endStaleLeases, last, LEFT_OF_LONG, PATIENCE, repeatUntil, SECONDS, TIMEOUT_MS } from './chaos.js';
import { StepsJudge } from './steps-judge.js';

const QUEUES = ['default', 'other', 'threads'];
/** A new thread takes seconds to start on a busy machine. */
process.env['ASYNQ_STAMP_ORDERS_PER_DEATH'] = SECONDS > 60 ? '200' : '80';
const compiled = useThreadModules(new URL('./stamps.module.ts', import.meta.url));
const STATES = ['pending', 'active', 'scheduled', 'retry', 'waiting'] as const;

describe('chaos of handlers with steps', () => {
  it(
    'does each step, and ends each order, while servers, clients, threads and Redis are killed',
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
      const judge = new StepsJudge({ connection: { host, port }, stamps: compiled('stamps.module').href });
      onTestFinished(() => judge.kill().then(() => broker.close()));

      await Promise.all((['server', 'server', 'client', 'client'] as const).map((role) => judge.start(role)));
      const end = Date.now() + SECONDS * 1000;
      const endLeases = async (): Promise<void> => {
        const keys = new Keyspace();
        for (const queue of ['default', 'other']) await endStaleLeases(redis, keys.queue(queue));
        await endStaleLeases(redis, keys.queue('threads'), LEFT_OF_LONG); // a thread may take seconds to start
      };
      const killing = async (what: () => Promise<void>): Promise<void> => {
        judge.killed();
        await what();
        judge.killed();
      };
      const restart = async (): Promise<void> => {
        judge.count('killed Redis');
        await server.restart();
      };
      await Promise.all([
        repeatUntil(end, 1_500 * PATIENCE, () => killing(() => judge.replace('server'))),
        repeatUntil(end, 4_000 * PATIENCE, () => judge.replace('client')),
        repeatUntil(end, 3_000 * PATIENCE, () => killing(restart)),
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
      expect(await last(open, 60_000 * PATIENCE)).toEqual([]);
      await judge.stop('server');
      if (SECONDS > 60) console.log({ orders: judge.orders, repeats: judge.repeats, ...judge.deeds });
      expect(judge.faults()).toEqual([]);
      expect(judge.orders).toBeGreaterThan(10);
      expect(judge.deeds['died thread']).toBeGreaterThan(0);
      const [first, ...others] = await Promise.all(QUEUES.map((queue) => inspector.getQueueInfo(queue)));
      // Killed clients may have placed orders that they could not say.
      expect(first!.archived).toBeGreaterThanOrEqual(judge.soldOut);
      expect(others.map(({ archived }) => archived)).toEqual([0, 0]);
      expect(await redis.keys('asynq:{*}:links')).toEqual([]);
      expect(await redis.keys('asynq:{*}:outbox')).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
