import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { Keyspace } from '../../lib/wire/keys.js';
import type { RedisProcess } from '../support/redis.js';
import { clientsOf, connectionsTo, namesOf, observe, ownServer } from './support.js';
import { startProxy } from './proxy.js';

const keys = new Keyspace().queue('default');

function clientOn(input: ConnectionInput): AsynqClient {
  const client = new AsynqClient(new RedisBroker(connectionsTo(input)));
  onTestFinished(() => client.close());
  return client;
}

/** A server that runs `double`, when a test lets it. */
async function serve(url: string, handle: (task: TaskContext) => unknown): Promise<void> {
  const broker = new RedisBroker(connectionsTo(url));
  const server = new Server({ broker, handlers: [{ pattern: 'double', handle }] });
  await server.start();
  onTestFinished(() => server.shutdown());
}

const double = (task: TaskContext): number => 2 * Number(task.payload);

const PAIR = ['nestjs-asynq:notices', 'nestjs-asynq:track'];
const pairs = async (redis: Redis): Promise<string[]> => (await namesOf(redis)).filter((name) => PAIR.includes(name));

describe('waits for results on Redis', () => {
  let server: RedisProcess;
  let redis: Redis;
  beforeEach(async () => {
    server = await ownServer();
    redis = observe(server.port);
  });

  const calls = async (): Promise<Record<string, number>> => {
    const stats = await redis.info('commandstats');
    return Object.fromEntries(
      [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(([, name, count]) => [name!, Number(count)]),
    );
  };

  it('share one pair of connections, and cost nothing while they wait', async () => {
    const client = clientOn(server.url);
    expect(await pairs(redis)).toEqual([]);
    const waits = Array.from({ length: 1000 }, (_, n) => client.call('double', n));
    await vi.waitFor(async () => expect((await calls())['hmget']).toBe(1000));
    expect(await pairs(redis)).toEqual(PAIR);
    const before = await calls();
    await new Promise((resolve) => setTimeout(resolve, 300)); // nothing is to happen
    expect((await calls())['hmget']).toBe(before['hmget']);
    await serve(server.url, double);
    expect(await Promise.all(waits)).toEqual(Array.from({ length: 1000 }, (_, n) => 2 * n));
    // Each is read when it begins, and once or twice more: when it runs, and when it has ended.
    expect((await calls())['hmget']! - before['hmget']!).toBeLessThanOrEqual(4000);
    const [id] = await redis.zrange(keys.completed, '0', '0');
    expect(await redis.hget(keys.task(id!), 'state')).toBe('completed');
  });

  it('keep the result for a minute, or for as long as the call waits', async () => {
    await serve(server.url, double);
    const client = clientOn(server.url);
    const now = Math.floor(Date.now() / 1000);
    await client.call('double', 1);
    await client.call('double', 2, { timeout: '10m' });
    await client.call('double', 3, { retention: '1d' });
    const scores = await redis.zrange(keys.completed, '0', '-1', 'WITHSCORES');
    const kept = scores.filter((_, n) => n % 2 === 1).map((score) => Number(score) - now);
    for (const [n, seconds] of [60, 601, 86_400].entries()) {
      expect(kept[n]).toBeGreaterThanOrEqual(seconds);
      expect(kept[n]).toBeLessThan(seconds + 10);
    }
  });

  it.each(['track', 'notices'])('go on when the connection %s is cut', async (name) => {
    const client = clientOn(server.url);
    const waits = Array.from({ length: 10 }, (_, n) => client.call('double', n));
    await vi.waitFor(async () => expect((await calls())['hmget']).toBe(10));
    const row = (await clientsOf(redis)).find((one) => one.name === `nestjs-asynq:${name}`);
    await redis.call('CLIENT', 'KILL', 'ID', row?.id ?? '');
    await vi.waitFor(async () => expect((await calls())['hmget']).toBe(20));
    expect(await pairs(redis)).toEqual(PAIR);
    await serve(server.url, double);
    expect(await Promise.all(waits)).toEqual(Array.from({ length: 10 }, (_, n) => 2 * n));
  });

  it('end when a task has ended while every connection was away', async () => {
    const proxy = await startProxy(server.port);
    const client = clientOn({ host: '127.0.0.1', port: proxy.port });
    const wait = client.call('double', 21);
    await vi.waitFor(async () => expect((await calls())['hmget']).toBe(1));
    proxy.cut();
    await serve(server.url, double);
    expect(await wait).toBe(42);
  });

  it('go on when Redis forgets what it tracks', async () => {
    const client = clientOn(server.url);
    const wait = client.call('double', 21, { timeout: '20s' });
    await vi.waitFor(async () => expect((await calls())['hmget']).toBe(1));
    await redis.call('CONFIG', 'SET', 'tracking-table-max-keys', '1');
    await serve(server.url, double);
    expect(await wait).toBe(42);
  });

  it.each([
    ['CLIENT TRACKING', ['-client|tracking']],
    ['SUBSCRIBE', ['resetchannels']],
  ])('poll when %s is refused', async (_what, rule) => {
    await redis.call('ACL', 'SETUSER', 'poor', 'on', '>pw', '~*', '&*', '+@all', ...rule);
    const client = clientOn(`redis://poor:pw@127.0.0.1:${server.port}`);
    const waits = Array.from({ length: 50 }, (_, n) => client.call('double', n));
    await vi.waitFor(async () => expect((await calls())['hmget']).toBeGreaterThan(100));
    expect(await pairs(redis)).toEqual([]);
    await serve(server.url, double);
    expect(await Promise.all(waits)).toEqual(Array.from({ length: 50 }, (_, n) => 2 * n));
  });

  it('say why they could not read when their time is over', async () => {
    const client = clientOn(server.url);
    const wait = client.call('double', 1, { timeout: '500ms' });
    await vi.waitFor(async () => expect((await calls())['hmget']).toBe(1));
    await server.kill();
    await expect(wait).rejects.toMatchObject({
      code: 'ASYNQ_RESULT_TIMEOUT',
      cause: { code: 'ASYNQ_BROKER_UNAVAILABLE' },
    });
  });

  it('end by their signal, and leave nothing behind', async () => {
    const client = clientOn(server.url);
    const controller = new AbortController();
    const info = await client.enqueue('double', 1);
    const wait = client.result(info, { signal: controller.signal });
    controller.abort(new Error('the browser has gone'));
    await expect(wait).rejects.toThrow('the browser has gone');
    await expect(client.result(info, { signal: controller.signal })).rejects.toThrow('the browser has gone');
    await client.close();
    await vi.waitFor(async () => expect(await pairs(redis)).toEqual([]));
  });
});
