import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';

const SERVERS = 20;
const TASKS = 300;

describe('many idle servers', () => {
  let redis: RedisProcess;
  let client: Redis;
  const brokers: RedisBroker[] = [];
  const servers: Server[] = [];
  let onRun = (): void => {};

  const makeBroker = (): RedisBroker => {
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: redis.port }));
    brokers.push(broker);
    return broker;
  };

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.port);
    for (let count = 0; count < SERVERS; count++) {
      const server = new Server({
        broker: makeBroker(),
        handlers: [{ pattern: 't', handle: () => onRun() }],
        options: { taskCheckInterval: '1h', delayedTaskCheckInterval: '1h' },
      });
      servers.push(server);
      await server.start();
    }
  });

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.shutdown()));
    await Promise.all(brokers.map((broker) => broker.close()));
    client.disconnect();
    await redis.stop();
  });

  /** Calls of scripts so far. */
  async function scriptCalls(): Promise<number> {
    const info = await client.info('commandstats');
    const calls = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(info)?.[1] ?? 0);
    return calls('evalsha') + calls('eval');
  }

  it('do not all claim at every task: those that come too late rest', async () => {
    const producer = makeBroker();
    const runOne = async (): Promise<void> => {
      const ran = new Promise<void>((resolve) => (onRun = resolve));
      await producer.producer.enqueue('default', [request({ type: 't' })]);
      await ran;
    };
    await runOne();
    const before = await scriptCalls();
    for (let count = 0; count < TASKS; count++) await runOne();
    const perTask = ((await scriptCalls()) - before) / TASKS;
    // A task costs its enqueue, the exchange that takes it and the one that settles it; a stampede
    // would add one per server.
    expect(perTask).toBeGreaterThanOrEqual(2);
    expect(perTask).toBeLessThan(SERVERS / 2);
    console.log(`${SERVERS} idle servers: ${perTask.toFixed(1)} script calls per task`);
  });
});
