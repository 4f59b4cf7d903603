import type { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisWakeSource } from '../../lib/broker/redis/wake-source.js';
import { ManualClock } from '../../lib/clock.js';
import { BrokerUnavailableError, ClosedError, WakeUpRefusedError } from '../../lib/errors.js';
import { Keyspace } from '../../lib/wire/keys.js';
import type { RedisProcess } from '../support/redis.js';
import { clientsOf, connectionsTo, expectNoHandles, namesOf, observe, ownServer } from './support.js';

const keyspace = new Keyspace();
const keys = keyspace.queue('default');

/** The notices that a listener received, in order. */
class ReceivedNotices {
  readonly notices: string[] = [];
  private waiting: (() => void)[] = [];

  onPending = (queue: string): void => this.hear(`pending ${queue}`);
  onDelayed = (queue: string): void => this.hear(`delayed ${queue}`);
  onLost = (): void => this.hear('lost');

  /** Notices arrive in order: after the one of another queue, all earlier ones have arrived. */
  async all(source: RedisWakeSource, redis: Redis): Promise<string[]> {
    await source.armPending(['barrier']);
    await redis.lpush(keyspace.queue('barrier').pending, 'x');
    await vi.waitFor(() => expect(this.notices).toContain('pending barrier'));
    return this.notices.filter((notice) => notice !== 'pending barrier');
  }

  next(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private hear(notice: string): void {
    this.notices.push(notice);
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

function watch(connections: RedisConnections, received: ReceivedNotices, clock?: ManualClock): RedisWakeSource {
  const source = new RedisWakeSource(connections, keyspace, received, clock);
  onTestFinished(() => source.close());
  return source;
}

describe('RedisWakeSource', () => {
  let server: RedisProcess;
  let redis: Redis;
  let received: ReceivedNotices;
  beforeEach(async () => {
    server = await ownServer();
    redis = observe(server.port);
    received = new ReceivedNotices();
  });

  it('connects at the first arming, a pair of RESP2 connections', async () => {
    const source = watch(connectionsTo(server.url), received);
    expect(await namesOf(redis)).toEqual([]);
    expect(await source.armPending(['default', 'low'])).toEqual(new Map(Object.entries({ default: 0, low: 0 })));
    expect(await source.armDelayed(['default'])).toBeUndefined();
    expect(await namesOf(redis)).toEqual(['nestjs-asynq:notices', 'nestjs-asynq:track']);
    await source.close();
    await vi.waitFor(async () => expect(await namesOf(redis)).toEqual([]));
    await expect(source.armPending(['default'])).rejects.toThrow(ClosedError);
    expect(received.notices).toEqual([]);
  });

  it('returns the work to do: the backlog unless paused, and the lowest score', async () => {
    const source = watch(connectionsTo(server.url), received);
    await redis.lpush(keys.pending, 'a', 'b');
    await redis.lpush(keyspace.queue('low').pending, 'c');
    await redis.set(keyspace.queue('low').paused, '1');
    expect(await source.armPending(['default', 'low'])).toEqual(new Map(Object.entries({ default: 2, low: 0 })));
    await redis.zadd(keys.scheduled, 1_700_000_500, 'd', 1_700_000_600, 'e');
    await redis.zadd(keyspace.queue('low').retry, 1_700_000_400, 'f');
    expect(await source.armDelayed(['default', 'low'])).toBe(1_700_000_400);
  });

  it('returns an infinite score like any other', async () => {
    const source = watch(connectionsTo(server.url), received);
    await redis.zadd(keys.scheduled, '+inf', 'never');
    expect(await source.armDelayed(['default'])).toBe(Infinity);
    await redis.zadd(keys.retry, 1_700_000_500, 'x');
    expect(await source.armDelayed(['default'])).toBe(1_700_000_500);
  });

  it('reports a push by any client once, within a few round trips', async () => {
    const source = watch(connectionsTo(server.url), received);
    const delays: number[] = [];
    for (let round = 0; round < 50; round++) {
      await source.armPending(['default']);
      let isReported = false;
      const notice = received.next().then(() => (isReported = true));
      await redis.lpush(keys.pending, 'x', 'y');
      let trips = 0;
      for (; !isReported; trips++) await redis.ping();
      await notice;
      delays.push(trips);
    }
    expect(received.notices).toEqual(Array.from({ length: 50 }, () => 'pending default'));
    delays.sort((a, b) => a - b);
    expect(delays[25]).toBeLessThan(5); // a poll every 20 ms would take a hundred
  });

  it('reports a pause and its end', async () => {
    const source = watch(connectionsTo(server.url), received);
    for (const change of [() => redis.set(keys.paused, '1'), () => redis.del(keys.paused)]) {
      await source.armPending(['default']);
      const notice = received.next();
      await change();
      await notice;
    }
    expect(received.notices).toEqual(['pending default', 'pending default']);
  });

  it('reports scheduled and retried tasks separately from pending ones', async () => {
    const source = watch(connectionsTo(server.url), received);
    for (const key of [keys.scheduled, keys.retry]) {
      await source.armDelayed(['default']);
      const notice = received.next();
      await redis.zadd(key, 1_700_000_000, 'x');
      await redis.lpush(keys.pending, 'x');
      await notice;
    }
    expect(await received.all(source, redis)).toEqual(['delayed default', 'delayed default']);
  });

  it('emits nothing unless armed: before, after a notice, and for other queues', async () => {
    const source = watch(connectionsTo(server.url), received);
    await source.armPending(['low']);
    await redis.lpush(keys.pending, 'x');
    await source.armPending(['default']);
    const notice = received.next();
    await redis.lpush(keys.pending, 'x');
    await notice;
    await redis.lpush(keys.pending, 'y');
    await redis.set(keys.paused, '1');
    await redis.lpush(keyspace.queue('high').pending, 'x');
    expect(await received.all(source, redis)).toEqual(['pending default']);
  });

  it('reports everything armed when the database is flushed', async () => {
    const source = watch(connectionsTo(server.url), received);
    await source.armPending(['default', 'low']);
    await source.armDelayed(['low']);
    await redis.flushall();
    await vi.waitFor(() =>
      expect(received.notices.toSorted()).toEqual(['delayed low', 'pending default', 'pending low']),
    );
    await redis.flushall();
    expect(await received.all(source, redis)).toHaveLength(3);
  });

  it('supports queue names that are not ASCII', async () => {
    const source = watch(connectionsTo(server.url), received);
    await source.armPending(['очередь {1}']);
    const notice = received.next();
    await redis.lpush(keyspace.queue('очередь {1}').pending, 'x');
    await notice;
    expect(received.notices).toEqual(['pending очередь {1}']);
  });

  it.each(['track', 'notices'])('reports lost once when its connection %s is killed, and arms again', async (name) => {
    const source = watch(connectionsTo(server.url), received);
    await source.armPending(['default']);
    await source.armDelayed(['default', 'low']);
    const row = (await clientsOf(redis)).find((client) => client.name === `nestjs-asynq:${name}`);
    const lost = received.next();
    await redis.call('CLIENT', 'KILL', 'ID', row?.id ?? '');
    await lost;
    await redis.lpush(keys.pending, 'x');
    expect(await source.armPending(['default'])).toEqual(new Map([['default', 1]]));
    expect(await namesOf(redis)).toEqual(['nestjs-asynq:notices', 'nestjs-asynq:track']);
    const notice = received.next();
    await redis.lpush(keys.pending, 'x');
    await notice;
    expect(received.notices).toEqual(['lost', 'pending default']);
  });

  it('does not report a lost connection when nothing was armed', async () => {
    const source = watch(connectionsTo(server.url), received);
    await source.armPending(['default']);
    const notice = received.next();
    await redis.lpush(keys.pending, 'x');
    await notice;
    const [row] = await clientsOf(redis);
    await redis.call('CLIENT', 'KILL', 'ID', row?.id ?? '');
    await vi.waitFor(async () => expect(await namesOf(redis)).toEqual([]));
    await source.armPending(['default']);
    expect(received.notices).toEqual(['pending default']);
  });

  it('rejects while Redis is down and works when it is back', async () => {
    const source = watch(connectionsTo(server.url), received);
    await source.armPending(['default']);
    await server.kill();
    await vi.waitFor(() => expect(received.notices).toEqual(['lost']));
    const rejected = await Promise.allSettled([source.armPending(['default']), source.armDelayed(['default'])]);
    for (const outcome of rejected) {
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(BrokerUnavailableError);
    }
    await server.start();
    await source.armPending(['default']);
    const notice = received.next();
    await redis.lpush(keys.pending, 'x');
    await notice;
    expect(received.notices).toEqual(['lost', 'pending default']);
  });

  it.each([
    ['CLIENT TRACKING', ['-client|tracking'], /tracking/],
    ['SUBSCRIBE', ['resetchannels'], /NOPERM/],
  ])('rejects when %s is refused, and does not try again for a minute', async (_what, rule, reason) => {
    await redis.call('ACL', 'SETUSER', 'poor', 'on', '>pw', '~*', '&*', '+@all', ...rule);
    const clock = new ManualClock();
    const source = watch(connectionsTo(`redis://poor:pw@127.0.0.1:${server.port}`), received, clock);
    const first = source.armPending(['default']);
    await expect(first).rejects.toThrow(WakeUpRefusedError);
    await expect(first).rejects.toThrow(reason);
    await vi.waitFor(async () => expect(await namesOf(redis)).toEqual([]));
    const connected = async () => /total_connections_received:(\d+)/.exec(await redis.info('stats'))?.[1];
    const before = await connected();
    await redis.call('ACL', 'SETUSER', 'poor', '+@all', 'allchannels');
    clock.advance(59_000);
    await expect(source.armDelayed(['default'])).rejects.toThrow(WakeUpRefusedError);
    expect(await connected()).toBe(before);
    clock.advance(2_000);
    expect(await source.armPending(['default'])).toEqual(new Map([['default', 0]]));
    expect(received.notices).toEqual([]);
  });

  it('works on a client of ioredis 5', async () => {
    const client = new Redis5({ port: server.port, lazyConnect: true });
    const source = watch(connectionsTo(client), received);
    await source.armPending(['default']);
    const notice = received.next();
    await redis.lpush(keys.pending, 'x');
    await notice;
    await source.armPending(['default']);
    await redis.flushall();
    await vi.waitFor(() => expect(received.notices).toEqual(['pending default', 'pending default']));
  });

  it('closes while its first connection is made, and leaves nothing behind', async () => {
    redis.disconnect();
    const connections = connectionsTo(server.url);
    const source = watch(connections, received);
    const arming = source.armPending(['default']);
    const outcome = arming.then(
      () => 'armed',
      () => 'rejected',
    );
    await source.close();
    await connections.close();
    expect(['armed', 'rejected']).toContain(await outcome);
    await expectNoHandles();
    expect(received.notices).toEqual([]);
  });
});
