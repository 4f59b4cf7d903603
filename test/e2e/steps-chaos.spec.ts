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

const IS_LONG = SECONDS > 60;
const QUEUES = ['default', 'other', 'threads'];
/** A new thread takes seconds to start on a busy machine. */
process.env['ASYNQ_STAMP_ORDERS_PER_DEATH'] = IS_LONG ? '200' : '40';
/** Of a client, which lives for some seconds: on a busy machine servers do far less than clients ask for. */
const ORDERS = IS_LONG ? Number.MAX_SAFE_INTEGER : 80;
/** Between two orders of a client, on average. */
const PAUSE_MS = IS_LONG ? 5 : 20;
/** A long run has no more orders than it does in some seconds, so that what waits long waits for a cause, and not for those before it. */
const OPEN = IS_LONG ? 500 : Number.MAX_SAFE_INTEGER;
/** On average, in milliseconds. A long run has dozens of each in ten minutes, and time to work between them. */
const KILL_EVERY = IS_LONG
  ? { server: 10_000, client: 20_000, redis: 15_000 }
  : { server: 1_500, client: 4_000, redis: 3_000 };
const STATES = ['pending', 'active', 'scheduled', 'retry', 'waiting'] as const;

/** The states of its task and of those that it calls; `gone`: it is not there, or not yet. */
async function statesOf(redis: Redis, order: string): Promise<[string, string][]> {
  const tasks = [order, `${order}~invoice`, `${order}~stamp`];
  const keys = QUEUES.map((queue, n) => `${new Keyspace().queue(queue).base}t:${tasks[n]}`);
  const states = await Promise.all(keys.map((key) => redis.hget(key, 'state')));
  return states.map((state, n): [string, string] => [tasks[n]!, state ?? 'gone']);
}

describe('chaos of handlers with steps', () => {
  it(
    'does each step, and ends each order, while servers, clients, threads and Redis are killed',
    async () => {
      // What Redis reads when it starts is kept small: else a long run mostly waits for that.
      const server = await startRedis({ appendOnly: true, args: ['--auto-aof-rewrite-min-size', '4mb'] });
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
        threads: IS_LONG ? 4 : 2,
        orders: ORDERS,
        pause: PAUSE_MS,
        open: OPEN,
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
          // A thread may take seconds to start. In a long run, tasks may also wait for others to end, as their server has died before.
          const left = IS_LONG || queue === 'threads' ? LEFT_OF_LONG : LEFT_OF_SHORT;
          for (const id of await endStaleLeases(redis, keys.queue(queue), left)) judge.lost(id, left);
        }
      };
      const restart = async (): Promise<void> => {
        judge.count('killed Redis');
        judge.redis(false);
        await server.restart();
        judge.redis(true);
      };
      /** States of the tasks of orders that do nothing, for the account of their pauses. */
      const look = async (): Promise<void> => {
        for (const id of judge.silent()) {
          const at = Date.now();
          for (const [task, state] of await statesOf(redis, id)) judge.seen(task, state, at);
        }
      };
      const { base, scheduled } = new Keyspace().queue('default');
      /** A killed client has not signalled all that it has placed. */
      const signalLeft = async (isLeft: (id: string) => boolean): Promise<void> => {
        for (const id of await redis.zrange(scheduled, 0, '-1')) {
          if (isLeft(id) && (await redis.hexists(`${base}t:${id}`, 'signal:go')) === 0) await signal(id);
        }
      };
      await Promise.all([
        repeatUntil(end, KILL_EVERY.server, () => judge.replace('server')),
        repeatUntil(end, KILL_EVERY.client, () => judge.replace('client')),
        repeatUntil(end, KILL_EVERY.redis, restart),
        repeatUntil(end, 2_000, endLeases),
        ...(IS_LONG
          ? [
              repeatUntil(end, 5_000, look),
              repeatUntil(end, 2_000, () => signalLeft((id) => judge.hasLostClient(id)).catch(() => undefined)),
            ]
          : []),
      ]);

      judge.rest('client');
      const open = async (): Promise<string[]> => {
        await endLeases();
        if (IS_LONG) await look();
        await signalLeft(() => true);
        const infos = await Promise.all(QUEUES.map((queue) => inspector.getQueueInfo(queue)));
        return infos.flatMap((info) =>
          STATES.filter((state) => info[state] > 0).map((state) => `${info[state]} of ${info.queue} are ${state}`),
        );
      };
      const left = await last(open, 60_000 * PATIENCE);
      expect(left, left.length > 0 ? await dumpOpen(redis) : '').toEqual([]);
      await judge.stop('client'); // ends when it has heard of all that it has placed
      await judge.stop('server');
      const { count, unexplained } = judge.longPauses();
      if (IS_LONG) {
        console.log({
          orders: judge.orders,
          tasks: judge.tasks,
          heard: judge.heardOf,
          repeats: judge.repeats,
          ...judge.deeds,
          'long pauses': count,
          unexplained: unexplained.length,
        });
        console.log(judge.pauses(20).join('\n'));
      }
      expect(judge.faults()).toEqual([]);
      if (IS_LONG) expect(unexplained).toEqual([]);
      expect(judge.orders).toBeGreaterThan(10);
      expect(judge.heardOf).toBeGreaterThan(0);
      expect(judge.deeds['died thread']).toBeGreaterThan(0);
      const [first, ...others] = await Promise.all(QUEUES.map((queue) => inspector.getQueueInfo(queue)));
      // Killed clients may have placed orders that they could not say.
      const { maxTasks } = broker.archives.of('default');
      expect(first!.archived).toBeGreaterThanOrEqual(Math.min(judge.soldOut, maxTasks));
      expect(others.map(({ archived }) => archived)).toEqual([0, 0]);
      expect(await redis.keys('asynq:{*}:links')).toEqual([]);
      expect(await redis.keys('asynq:{*}:outbox')).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
