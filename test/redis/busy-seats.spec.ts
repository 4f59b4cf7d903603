import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { SEATS } from '../../lib/broker/seats.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { RedisFleet } from '../support/redis-fleet.js';

const SERVERS = 20;
const SEAT_KEYS = 'asynq:crews:*:seat:*';

/** Servers of one slot, whose polls never come. */
describe('a crew with standbys', () => {
  let fleet: RedisFleet;
  let producer: RedisBroker;
  const running = new Set<() => void>();
  let began = 0;

  const startServer = async (): Promise<void> => {
    const handle = (): Promise<void> => {
      began += 1;
      return new Promise((resolve) => running.add(resolve));
    };
    const options = { concurrency: 1, taskCheckInterval: '1h', delayedTaskCheckInterval: '1h' } as const;
    const server = new Server({ broker: fleet.makeBroker(), handlers: [{ pattern: 't', handle }], options });
    fleet.servers.push(server);
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
      expect(await fleet.client.llen('asynq:{default}:active')).toBe(0);
      expect(await fleet.client.llen('asynq:{default}:pending')).toBe(0);
    }, 5_000);
  const seatsTaken = (): number => fleet.servers.filter((server) => (server.stats().seat ?? 0) > 0).length;
  const allKnow = (): Promise<void> =>
    vi.waitFor(() => expect(fleet.servers.every((server) => server.stats().seat !== undefined)).toBe(true));
  const expectRunning = (count: number): Promise<void> => vi.waitFor(() => expect(running.size).toBe(count), 5_000);

  beforeAll(async () => {
    fleet = await RedisFleet.start();
    producer = fleet.makeBroker();
    for (let count = 0; count < SERVERS; count++) await startServer();
  });

  afterAll(async () => {
    endAll();
    await fleet.stop();
  });

  beforeEach(async () => {
    await allEnd();
    began = 0;
  });

  it('has as many seats as are free, each taken by one', async () => {
    await allKnow();
    expect(seatsTaken()).toBe(SEATS);
    const keys = await fleet.client.keys(SEAT_KEYS);
    expect(new Set(await fleet.client.mget(keys)).size).toBe(SEATS);
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
    const wakeups = () => fleet.servers.map((server) => server.stats().wakeups.notices);
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
    await fleet.client.flushall();
    await vi.waitFor(async () => expect(await fleet.client.keys(SEAT_KEYS)).toHaveLength(SEATS));
    endAll();
    await vi.waitFor(() => expect(seatsTaken()).toBe(SEATS));
    await add(SERVERS);
    await expectRunning(SERVERS);
  });

  it('hands a seat over at once when its server pauses', async () => {
    const holder = fleet.servers.find((server) => server.stats().seat === 1)!;
    holder.pauseFetching();
    await vi.waitFor(() => expect(holder.stats().seat).toBe(0));
    await vi.waitFor(() => expect(seatsTaken()).toBe(SEATS), 5_000);
    holder.resumeFetching();
  });

  it('fills the seats of servers that are gone without a word', { timeout: 60_000 }, async () => {
    const holders = fleet.servers.filter((server) => (server.stats().seat ?? 0) > 0);
    for (const holder of holders) await fleet.brokers[fleet.servers.indexOf(holder) + 1]!.close();
    await vi.waitFor(
      () =>
        expect(fleet.servers.filter((one) => !holders.includes(one) && (one.stats().seat ?? 0) > 0)).toHaveLength(
          SEATS,
        ),
      { timeout: 20_000, interval: 100 },
    );
    await add(1);
    await expectRunning(1);
  });
});
