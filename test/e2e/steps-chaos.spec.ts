import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { startRedis } from '../support/redis.js';
import { compiled } from '../support/programs.js';
import { dumpOpen } from './dump-open.js';
import {
  endStaleLeases,
  last,
  LEFT_OF_LONG,
  LEFT_OF_SHORT,
  PATIENCE,
  repeatUntil,
  SECONDS,
  TIMEOUT_MS,
} from './chaos.js';
import { StepsJudge } from './steps-judge.js';

const QUEUES = ['default', 'other', 'threads'];
/** A new thread takes seconds to start on a busy machine. */
process.env['ASYNQ_STAMP_ORDERS_PER_DEATH'] = SECONDS > 60 ? '200' : '40';
/** Of a client, which lives for some seconds: on a busy machine servers do far less than clients ask for. */
const ORDERS = SECONDS > 60 ? Number.MAX_SAFE_INTEGER : 80;
/** Between two orders of a client, on average; a long run is given what the machine can do, so that what waits long waits for a cause. */
const PAUSE_MS = Number(process.env.ASYNQ_CHAOS_PAUSE_MS ?? 20);
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
      const judge = new StepsJudge({
        connection: { host, port },
        stamps: await compiled(new URL('./stamps.module.ts', import.meta.url)),
        orders: ORDERS,
        pause: PAUSE_MS,
      });
      onTestFinished(() => judge.kill().then(() => broker.close()));
      const signal = async (id: string): Promise<void> => {
        await broker.checkpoints.signal('default', id, 'go', Buffer.alloc(0));
        judge.signalled(id);
      };

      await Promise.all((['server', 'server', 'client', 'client'] as const).map((role) => judge.start(role)));
      const end = Date.now() + SECONDS * 1000;
      const endLeases = async (): Promise<void> => {
        const keys = new Keyspace();
        for (const queue of QUEUES) {
          const left = queue === 'threads' ? LEFT_OF_LONG : LEFT_OF_SHORT; // a thread may take seconds to start
          for (const id of await endStaleLeases(redis, keys.queue(queue), left)) judge.lost(id);
        }
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

      judge.rest('client');
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
      const left = await last(open, 60_000 * PATIENCE);
      expect(left, left.length > 0 ? await dumpOpen(redis) : '').toEqual([]);
      await judge.stop('client'); // ends when it has heard of all that it has placed
      await judge.stop('server');
      if (SECONDS > 60) {
        console.log({
          orders: judge.orders,
          tasks: judge.tasks,
          heard: judge.heardOf,
          repeats: judge.repeats,
          ...judge.deeds,
        });
        console.log(judge.pauses(20).join('\n'));
      }
      expect(judge.faults()).toEqual([]);
      expect(judge.orders).toBeGreaterThan(10);
      expect(judge.heardOf).toBeGreaterThan(0);
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
