import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { SEATS } from '../../lib/broker/seats.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';

const SERVERS = 20;
const SEAT_KEYS = 'asynq:crews:*:seat:*';

/** Servers of one slot, whose polls never come. */
describe('a crew with standbys', () => {
  let redis: RedisProcess;
  let client: Redis;
  let producer: RedisBroker;
  const brokers: RedisBroker[] = [];
  const servers: Server[] = [];
  const running = new Set<() => void>();
  let began = 0;

  const makeBroker = (): RedisBroker => {
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: redis.port }));
    brokers.push(broker);
    return broker;
  };
  const startServer = async (): Promise<void> => {
    const handle = (): Promise<void> => {
      began += 1;
      return new Promise((resolve) => running.add(resolve));
    };
    const options = { concurrency: 1, taskCheckInterval: '1h', delayedTaskCheckInterval: '1h' } as const;
    const server = new Server({ broker: makeBroker(), handlers: [{ pattern: 't', handle }], options });
    servers.push(server);
    await server.start();
  };
  const add = (count: number) =>
    producer.producer.enqueue(
      'default',
      Array.from({ length: count }, () => request({ type: 't' })),
    );
  const endAll = (): void => {
    for (const end of running) end();
    running.clear();
  };
  const allEnd = (): Promise<void> =>
    vi.waitFor(async () => {
      endAll();
      expect(await client.llen('asynq:{default}:active')).toBe(0);
      expect(await client.llen('asynq:{default}:pending')).toBe(0);
    }, 5_000);
  const seatsTaken = (): number => servers.filter((server) => (server.stats().seat ?? 0) > 0).length;
  const allKnow = (): Promise<void> =>
    vi.waitFor(() => expect(servers.every((server) => server.stats().seat !== undefined)).toBe(true), 10_000);
  const expectRunning = (count: number): Promise<void> => vi.waitFor(() => expect(running.size).toBe(count), 5_000);

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.port);
    producer = makeBroker();
    for (let count = 0; count < SERVERS; count++) await startServer();
  });

  afterAll(async () => {
    endAll();
    await Promise.all(servers.map((server) => server.shutdown()));
    await Promise.all(brokers.map((broker) => broker.close()));
    client.disconnect();
    await redis.stop();
  });

  beforeEach(async () => {
    await allEnd();
    began = 0;
  });

  it('has as many seats as are free, each taken by one', async () => {
    await allKnow();
    expect(seatsTaken()).toBe(SEATS);
    const keys = await client.keys(SEAT_KEYS);
    expect(new Set(await client.mget(keys)).size).toBe(SEATS);
  });

  it('starts tasks that come one by one on all servers, though those with a seat are full', async () => {
    for (let count = 1; count <= SERVERS; count++) {
      await add(1);
      await expectRunning(count);
    }
  });

  it('starts a burst on all servers', async () => {
    await add(SERVERS);
    await expectRunning(SERVERS);
  });

  it('starts what is left when slots are free, each task once', async () => {
    await add(3 * SERVERS);
    await expectRunning(SERVERS);
    endAll();
    await expectRunning(SERVERS);
    endAll();
    await expectRunning(SERVERS);
    expect(began).toBe(3 * SERVERS);
  });

  it('calls standbys that sleep', { timeout: 60_000 }, async () => {
    // Nobody is awake but those with a seat: one notice per server at most.
    const wakeups = () => servers.map((server) => server.stats().wakeups.notices);
    await vi.waitFor(
      async () => {
        const before = wakeups();
        await add(1);
        await vi.waitFor(() => expect(running.size).toBeGreaterThan(0), 5_000);
        endAll();
        expect(wakeups().filter((count, index) => count > before[index]!).length).toBeLessThanOrEqual(SEATS);
      },
      { timeout: 40_000, interval: 1_000 },
    );
    await allEnd();
    await add(SERVERS);
    await expectRunning(SERVERS);
  });

  it('takes its seats anew when Redis has lost all', async () => {
    await client.flushall();
    await vi.waitFor(async () => expect(await client.keys(SEAT_KEYS)).toHaveLength(SEATS), 10_000);
    endAll();
    await vi.waitFor(() => expect(seatsTaken()).toBe(SEATS), 10_000);
    await add(SERVERS);
    await expectRunning(SERVERS);
  });

  it('hands a seat over at once when its server pauses', async () => {
    const holder = servers.find((server) => server.stats().seat === 1)!;
    holder.pauseFetching();
    await vi.waitFor(() => expect(holder.stats().seat).toBe(0));
    await vi.waitFor(() => expect(seatsTaken()).toBe(SEATS), 5_000);
    holder.resumeFetching();
  });

  it('fills the seats of servers that are gone without a word', { timeout: 60_000 }, async () => {
    const holders = servers.filter((server) => (server.stats().seat ?? 0) > 0);
    for (const holder of holders) await brokers[servers.indexOf(holder) + 1]!.close();
    await vi.waitFor(
      () => expect(servers.filter((one) => !holders.includes(one) && (one.stats().seat ?? 0) > 0)).toHaveLength(SEATS),
      { timeout: 20_000, interval: 100 },
    );
    await add(1);
    await expectRunning(1);
  });
});
