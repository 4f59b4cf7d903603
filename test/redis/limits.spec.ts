import { setImmediate } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import type { QueueOptions } from '../../lib/server/queue-options.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';

describe('limits of a queue, several servers on one Redis', () => {
  let redis: RedisProcess;
  let client: Redis;
  let brokers: RedisBroker[];
  let servers: Server[];
  let taken: { at: number; count: number }[];

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.port);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    await client.flushall();
    brokers = [];
    servers = [];
    taken = [];
  });
  afterEach(async () => {
    await Promise.all(servers.map((server) => server.shutdown()));
    await Promise.all(brokers.map((broker) => broker.close()));
  });

  /** A broker that notes what it takes, and the time by which the script takes it. */
  const makeBroker = (): RedisBroker => {
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: redis.port }));
    const exchange = broker.exchange.bind(broker);
    broker.exchange = async (queue, asked) => {
      const at = broker.clock.now();
      const reply = await exchange(queue, asked);
      taken.push({ at, count: reply.tasks.length });
      return reply;
    };
    brokers.push(broker);
    return broker;
  };

  /** Runs so many tasks of `options` on three servers; resolves when all have ended. */
  async function run(count: number, options: QueueOptions, handle: () => unknown): Promise<void> {
    let ended = 0;
    const requests = Array.from({ length: count }, () => request({ type: 't' }));
    await makeBroker().enqueue('default', requests);
    await new Promise<void>((resolve) => {
      const counted = async (): Promise<void> => {
        await handle();
        if (++ended === count) resolve();
      };
      for (let index = 0; index < 3; index++) {
        const handlers = [{ pattern: 't', handle: counted }];
        const server = new Server({ broker: makeBroker(), handlers, options: { queues: { default: options } } });
        servers.push(server);
        void server.start();
      }
    });
  }

  it('globalConcurrency is never exceeded and always used', async () => {
    let running = 0;
    let most = 0;
    await run(300, { globalConcurrency: 4 }, async () => {
      most = Math.max(most, ++running);
      await setImmediate();
      running--;
    });
    expect(most).toBe(4);
    expect(servers.every(({ status }) => status === 'active')).toBe(true);
  });

  it('rateLimit is never exceeded, by however many servers', async () => {
    const window = 160;
    await run(60, { rateLimit: { max: 20, per: window } }, () => undefined);
    const starts = taken.flatMap(({ at, count }) => Array.from({ length: count }, () => at)).sort((a, b) => a - b);
    expect(starts).toHaveLength(60);
    for (let index = 20; index < starts.length; index++) {
      expect(starts[index]! - starts[index - 20]!).toBeGreaterThanOrEqual(window - 1); // `at` is read a moment before the script's time
    }
    const key = 'asynq:{default}:rate:160';
    expect(await client.type(key)).toBe('hash');
    expect(await client.pttl(key)).toBeGreaterThan(0);
  });
});
