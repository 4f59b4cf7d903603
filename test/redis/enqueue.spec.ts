import { describe, expect } from 'vitest';
import type { EnqueueRequest } from '../../lib/broker/broker.js';
import { wasSent } from '../../lib/broker/redis/connection/broker-error.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { startProxy } from './proxy.js';

const keys = new Keyspace().queue('default');

const unique = (name: string, partial: Partial<TaskMessage> = {}, ttl = 60): EnqueueRequest =>
  request({ uniqueKey: keys.unique(name, undefined), ...partial }, { uniqueTtl: ttl });

const hash = (driver: RedisDriver, id: string): Promise<Record<string, string>> =>
  driver.redis.hgetall(driver.keys.task(id));

describe('what is written', () => {
  it('is asynq’s, field by field, and unique_key also for a group', async ({ driver }) => {
    const { keys, redis, now } = driver;
    const lock = keys.unique('u', undefined);
    driver.clock.advance(7);
    await driver.enqueue([
      request({ id: 'p' }),
      { ...request({ id: 's', groupKey: 'g' }), processAt: now + 5 },
      request({ id: 'g', groupKey: 'g' }),
      unique('u', { id: 'u' }, 6_100),
      unique('v', { id: 'gu', groupKey: 'g' }),
      { ...unique('w', { id: 'su' }), processAt: now + 6 },
    ]);
    const { msg, ...pending } = await hash(driver, 'p');
    expect(msg).toBeDefined();
    expect(pending).toEqual({ state: 'pending', pending_since: `${now}007000000` });
    expect(await hash(driver, 's')).toEqual({ msg: expect.any(String), state: 'scheduled', group: 'g' });
    expect(await hash(driver, 'g')).toEqual({ msg: expect.any(String), state: 'aggregating', group: 'g' });
    expect(await hash(driver, 'u')).toMatchObject({ state: 'pending', unique_key: lock });
    expect(await hash(driver, 'gu')).toMatchObject({ group: 'g', unique_key: keys.unique('v', undefined) });
    expect(await hash(driver, 'su')).toMatchObject({ state: 'scheduled', unique_key: keys.unique('w', undefined) });
    expect(await redis.get(lock)).toBe('u');
    const left = await redis.pttl(lock);
    expect(left).toBeGreaterThan(6_000_000);
    expect(left).toBeLessThanOrEqual(6_100_000);
    expect(await redis.zrange(keys.group('g'), '0', '-1', 'WITHSCORES')).toEqual(['g', `${now}`, 'gu', `${now}`]);
    expect(await redis.smembers(keys.groups)).toEqual(['g']);
    expect(await redis.zrange(keys.delayedGroups, '0', '-1', 'WITHSCORES')).toEqual([`${now + 5}:g`, `${now + 5}`]);
    expect(await redis.zrange(keys.scheduled, '0', '-1', 'WITHSCORES')).toEqual([
      's',
      `${now + 5}`,
      'su',
      `${now + 6}`,
    ]);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['u', 'p']);
  });

  it('is nothing for a rejected task, not even a lock', async ({ driver }) => {
    await driver.redis.hset(driver.keys.task('dangling'), 'result', 'x');
    expect(await driver.enqueue([unique('u', { id: 'dangling' }), request({ id: 'dangling' })])).toEqual([
      'conflict',
      'conflict',
    ]);
    expect(await hash(driver, 'dangling')).toEqual({ result: 'x' });
    expect(await driver.redis.exists(driver.keys.unique('u', undefined))).toBe(0);
  });

  it('is nothing when a time is no whole number, or a lock is shorter than a second', async ({ driver }) => {
    const bad = [{ processAt: NaN }, { processAt: 1.5 }, { uniqueTtl: 0 }, { uniqueTtl: 0.5 }, { uniqueTtl: Infinity }];
    for (const options of bad) {
      const wrong = { ...unique('u'), uniqueTtl: 1, ...options };
      await expect(driver.enqueue([request(), wrong])).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
    }
    expect(await driver.contents()).toEqual({});
  });

  it('is nothing when the set of a group has another type', async ({ driver }) => {
    await driver.redis.set(driver.keys.group('g'), 'x');
    await expect(driver.enqueue([request(), request({ groupKey: 'g' })])).rejects.toMatchObject({
      code: 'ASYNQ_WRONG_KEY_TYPE',
    });
    expect(await driver.redis.llen(driver.keys.pending)).toBe(0);
  });
});

describe('a call whose reply is lost', () => {
  /**
   * Enqueues through a proxy that lets the call through, loses the reply and then the connection.
   */
  async function enqueueTwice(
    driver: RedisDriver,
    requests: EnqueueRequest[],
    between: () => Promise<unknown> = async () => undefined,
  ) {
    const proxy = await startProxy(driver.server.port);
    const broker = driver.open(proxy.port);
    await broker.producer.enqueue('default', [request({ id: 'before' })]);
    proxy.holdReplies();
    const enqueued = broker.producer.enqueue('default', requests);
    await expect.poll(() => driver.redis.exists(driver.keys.task(requests[0]!.message.id))).toBe(1);
    await between();
    proxy.cut();
    return enqueued;
  }

  it('is sent again, and finds its tasks', async ({ driver }) => {
    const requests = [
      request({ id: 'p' }),
      unique('u', { id: 'u' }),
      { ...unique('s', { id: 's' }), processAt: driver.now + 9 },
      request({ id: 'g', groupKey: 'g' }),
    ];
    expect(await enqueueTwice(driver, requests)).toEqual(Array(4).fill('enqueued'));
    expect(await driver.redis.lrange(driver.keys.pending, 0, -1)).toEqual(['u', 'p', 'before']);
    expect(await driver.redis.get(driver.keys.unique('u', undefined))).toBe('u');
  });

  it('still rejects what the first call rejected', async ({ driver }) => {
    await driver.enqueue([request({ id: 'taken' }), unique('held', { id: 'holder' })]);
    const requests = [
      request({ id: 'new' }),
      request({ id: 'new' }),
      request({ id: 'taken', payload: Buffer.from('another') }),
      unique('held'),
      unique('own', { id: 'own' }),
      unique('own', { id: 'own' }),
    ];
    expect(await enqueueTwice(driver, requests)).toEqual([
      'enqueued',
      'conflict',
      'conflict',
      'duplicate',
      'enqueued',
      'duplicate',
    ]);
  });

  it('treats a task that has changed since as another one', async ({ driver }) => {
    const change = () => driver.redis.hset(driver.keys.task('a'), 'msg', 'rewritten');
    expect(await enqueueTwice(driver, [request({ id: 'a' })], change)).toEqual(['conflict']);
  });

  it('recognizes tasks with generated ids, whatever has happened to them since', async ({ driver }) => {
    const { redis, keys } = driver;
    const requests = [
      request({ id: 'failed' }, { madeId: true }),
      { ...unique('u', { id: 'u' }), madeId: true },
      { ...unique('e', { id: 'ended' }), madeId: true },
    ];
    const change = async () => {
      for (const id of ['failed', 'u', 'ended']) await redis.hset(keys.task(id), 'msg', 'rewritten');
      await redis.set(keys.unique('e', undefined), 'the next one');
    };
    expect(await enqueueTwice(driver, requests, change)).toEqual(Array(3).fill('enqueued'));
    expect(await hash(driver, 'failed')).toMatchObject({ msg: 'rewritten' });
    expect(await redis.llen(keys.pending)).toBe(4);
  });

  it('creates what the first call did not', async ({ driver }) => {
    const { redis, keys } = driver;
    const lose = () => redis.multi().del(keys.task('a'), keys.pending, keys.unique('u', undefined)).exec();
    expect(await enqueueTwice(driver, [unique('u', { id: 'a' })], lose)).toEqual(['enqueued']);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['a']);
  });

  it('fails in the end as a call that may have been executed', async ({ driver }) => {
    const proxy = await startProxy(driver.server.port);
    const broker = driver.open(proxy.port);
    await broker.producer.enqueue('default', [request({ id: 'before' })]);
    proxy.holdReplies();
    const enqueued = broker.producer.enqueue('default', [request({ id: 'a' })]).catch((error: unknown) => error);
    await expect.poll(() => driver.redis.exists(driver.keys.task('a'))).toBe(1);
    const closing = broker.close();
    proxy.cut();
    const error = await enqueued;
    await closing;
    expect(error).toMatchObject({ code: 'ASYNQ_BROKER_UNAVAILABLE' });
    expect(wasSent(error)).toBe(true);
  });
});

describe('the set of queues', () => {
  const listed = (driver: RedisDriver) => driver.redis.sismember(driver.keyspace.queues, 'default');

  it('contains a queue from its first task on, and again within a minute after Redis lost it', async ({ driver }) => {
    const { redis, keyspace } = driver;
    await driver.enqueue([request()]);
    expect(await listed(driver)).toBe(1);
    await redis.del(keyspace.queues);
    driver.clock.advance(59_000);
    await driver.enqueue([request()]);
    expect(await listed(driver)).toBe(0);
    driver.clock.advance(1_000);
    await driver.enqueue([request()]);
    await expect.poll(() => listed(driver)).toBe(1);
  });

  it('is not written by every call', async ({ driver }) => {
    await driver.enqueue([request()]);
    await driver.redis.config('RESETSTAT');
    for (let i = 0; i < 5; i++) await driver.enqueue([request()]);
    expect(await driver.redis.info('commandstats')).not.toContain('cmdstat_sadd');
  });

  it('makes an enqueue fail only while the queue was never listed', async ({ driver }) => {
    const { redis, keyspace } = driver;
    await redis.set(keyspace.queues, 'x');
    await expect(driver.enqueue([request()])).rejects.toMatchObject({ code: 'ASYNQ_WRONG_KEY_TYPE' });
    expect(await redis.keys('*')).toEqual([keyspace.queues]);
    await redis.del(keyspace.queues);
    await driver.enqueue([request()]);
    await redis.set(keyspace.queues, 'x');
    driver.clock.advance(60_000);
    expect(await driver.enqueue([request()])).toEqual(['enqueued']);
    await redis.del(keyspace.queues);
    await driver.enqueue([request()]);
    await expect.poll(() => listed(driver)).toBe(1);
  });

  it('is not written for no tasks', async ({ driver }) => {
    expect(await driver.enqueue([])).toEqual([]);
    expect(await driver.contents()).toEqual({});
  });
});
