import { describe, expect, it } from 'vitest';
import type { EnqueueRequest } from '../../lib/broker/broker.js';
import { wasSent } from '../../lib/broker/redis/connection/broker-error.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { request } from '../support/messages.js';
import { useBroker } from './broker-fixture.js';
import { startProxy } from './proxy.js';

const fixture = useBroker();

const enqueue = (...requests: EnqueueRequest[]) => fixture.broker.producer.enqueue('default', requests);
const unique = (name: string, partial: Partial<TaskMessage> = {}, ttl = 60): EnqueueRequest =>
  request({ uniqueKey: fixture.keys.unique(name, undefined), ...partial }, { uniqueTtl: ttl });

const hash = (id: string): Promise<Record<string, string>> => fixture.redis.hgetall(fixture.keys.task(id));

describe('what is written', () => {
  it('is asynq’s, field by field, and unique_key also for a group', async () => {
    const { keys, redis, now } = fixture;
    const lock = keys.unique('u', undefined);
    fixture.clock.advance(7);
    await enqueue(
      request({ id: 'p' }),
      { ...request({ id: 's', groupKey: 'g' }), processAt: now + 5 },
      request({ id: 'g', groupKey: 'g' }),
      unique('u', { id: 'u' }, 61),
      unique('v', { id: 'gu', groupKey: 'g' }),
      { ...unique('w', { id: 'su' }), processAt: now + 6 },
    );
    const { msg, ...pending } = await hash('p');
    expect(msg).toBeDefined();
    expect(pending).toEqual({ state: 'pending', pending_since: `${now}007000000` });
    expect(await hash('s')).toEqual({ msg: expect.any(String), state: 'scheduled', group: 'g' });
    expect(await hash('g')).toEqual({ msg: expect.any(String), state: 'aggregating', group: 'g' });
    expect(await hash('u')).toMatchObject({ state: 'pending', unique_key: lock });
    expect(await hash('gu')).toMatchObject({ group: 'g', unique_key: keys.unique('v', undefined) });
    expect(await hash('su')).toMatchObject({ state: 'scheduled', unique_key: keys.unique('w', undefined) });
    expect(await redis.get(lock)).toBe('u');
    expect(await redis.ttl(lock)).toBe(61);
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

  it('is nothing for what is refused, not even a lock', async () => {
    await fixture.redis.hset(fixture.keys.task('ghost'), 'result', 'x');
    expect(await enqueue(unique('u', { id: 'ghost' }), request({ id: 'ghost' }))).toEqual(['conflict', 'conflict']);
    expect(await hash('ghost')).toEqual({ result: 'x' });
    expect(await fixture.redis.exists(fixture.keys.unique('u', undefined))).toBe(0);
  });

  it('is nothing when a time is no whole number, or a lock would not live a second', async () => {
    const bad = [{ processAt: NaN }, { processAt: 1.5 }, { uniqueTtl: 0 }, { uniqueTtl: 0.5 }, { uniqueTtl: Infinity }];
    for (const options of bad) {
      const wrong = { ...unique('u'), uniqueTtl: 1, ...options };
      await expect(enqueue(request(), wrong)).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
    }
    expect(await fixture.content()).toEqual({});
  });

  it('is nothing when the set of a group is something else', async () => {
    await fixture.redis.set(fixture.keys.group('g'), 'x');
    await expect(enqueue(request(), request({ groupKey: 'g' }))).rejects.toMatchObject({
      code: 'ASYNQ_WRONG_KEY_TYPE',
    });
    expect(await fixture.redis.llen(fixture.keys.pending)).toBe(0);
  });
});

describe('a call whose reply is lost', () => {
  /** Enqueues through a proxy that lets the call through, loses the reply and then the connection. */
  async function enqueueTwice(requests: EnqueueRequest[], between: () => Promise<unknown> = async () => undefined) {
    const proxy = await startProxy(fixture.server.port);
    const broker = fixture.open(proxy.port);
    await broker.producer.enqueue('default', [request({ id: 'before' })]);
    proxy.holdReplies();
    const enqueued = broker.producer.enqueue('default', requests);
    await expect.poll(() => fixture.redis.exists(fixture.keys.task(requests[0]!.message.id))).toBe(1);
    await between();
    proxy.cut();
    return enqueued;
  }

  it('is sent again, and finds its tasks in place', async () => {
    const requests = [
      request({ id: 'p' }),
      unique('u', { id: 'u' }),
      { ...unique('s', { id: 's' }), processAt: fixture.now + 9 },
      request({ id: 'g', groupKey: 'g' }),
    ];
    expect(await enqueueTwice(requests)).toEqual(Array(4).fill('enqueued'));
    expect(await fixture.redis.lrange(fixture.keys.pending, 0, -1)).toEqual(['u', 'p', 'before']);
    expect(await fixture.redis.get(fixture.keys.unique('u', undefined))).toBe('u');
  });

  it('still refuses what the first call refused', async () => {
    await enqueue(request({ id: 'taken' }), unique('held', { id: 'holder' }));
    const requests = [
      request({ id: 'new' }),
      request({ id: 'new' }),
      request({ id: 'taken', payload: Buffer.from('another') }),
      unique('held'),
      unique('own', { id: 'own' }),
      unique('own', { id: 'own' }),
    ];
    expect(await enqueueTwice(requests)).toEqual([
      'enqueued',
      'conflict',
      'conflict',
      'duplicate',
      'enqueued',
      'duplicate',
    ]);
  });

  it('takes a task that has changed since for another one', async () => {
    const change = () => fixture.redis.hset(fixture.keys.task('a'), 'msg', 'rewritten');
    expect(await enqueueTwice([request({ id: 'a' })], change)).toEqual(['conflict']);
  });

  it('knows tasks whose ids were made for them, whatever has become of them meanwhile', async () => {
    const { redis, keys } = fixture;
    const requests = [
      request({ id: 'failed' }, { madeId: true }),
      { ...unique('u', { id: 'u' }), madeId: true },
      { ...unique('e', { id: 'ended' }), madeId: true },
    ];
    const change = async () => {
      for (const id of ['failed', 'u', 'ended']) await redis.hset(keys.task(id), 'msg', 'rewritten');
      await redis.set(keys.unique('e', undefined), 'the next one');
    };
    expect(await enqueueTwice(requests, change)).toEqual(Array(3).fill('enqueued'));
    expect(await hash('failed')).toMatchObject({ msg: 'rewritten' });
    expect(await redis.llen(keys.pending)).toBe(4);
  });

  it('creates what the first call did not', async () => {
    const { redis, keys } = fixture;
    const lose = () => redis.multi().del(keys.task('a'), keys.pending, keys.unique('u', undefined)).exec();
    expect(await enqueueTwice([unique('u', { id: 'a' })], lose)).toEqual(['enqueued']);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['a']);
  });

  it('fails in the end as one that may have happened', async () => {
    const proxy = await startProxy(fixture.server.port);
    const broker = fixture.open(proxy.port);
    await broker.producer.enqueue('default', [request({ id: 'before' })]);
    proxy.holdReplies();
    const enqueued = broker.producer.enqueue('default', [request({ id: 'a' })]).catch((error: unknown) => error);
    await expect.poll(() => fixture.redis.exists(fixture.keys.task('a'))).toBe(1);
    const closing = broker.close();
    proxy.cut();
    const error = await enqueued;
    await closing;
    expect(error).toMatchObject({ code: 'ASYNQ_BROKER_UNAVAILABLE' });
    expect(wasSent(error)).toBe(true);
  });
});

describe('the set of queues', () => {
  const listed = () => fixture.redis.sismember(fixture.keyspace.queues, 'default');

  it('names a queue from its first task on, and again within a minute after Redis has lost it', async () => {
    const { redis, keyspace } = fixture;
    await enqueue(request());
    expect(await listed()).toBe(1);
    await redis.del(keyspace.queues);
    fixture.clock.advance(59_000);
    await enqueue(request());
    expect(await listed()).toBe(0);
    fixture.clock.advance(1_000);
    await enqueue(request());
    await expect.poll(listed).toBe(1);
  });

  it('is not written by every call', async () => {
    await enqueue(request());
    await fixture.redis.config('RESETSTAT');
    for (let i = 0; i < 5; i++) await enqueue(request());
    expect(await fixture.redis.info('commandstats')).not.toContain('cmdstat_sadd');
  });

  it('fails an enqueue only as long as the queue was never listed', async () => {
    const { redis, keyspace } = fixture;
    await redis.set(keyspace.queues, 'x');
    await expect(enqueue(request())).rejects.toMatchObject({ code: 'ASYNQ_WRONG_KEY_TYPE' });
    expect(await redis.keys('*')).toEqual([keyspace.queues]);
    await redis.del(keyspace.queues);
    await enqueue(request());
    await redis.set(keyspace.queues, 'x');
    fixture.clock.advance(60_000);
    expect(await enqueue(request())).toEqual(['enqueued']);
    await redis.del(keyspace.queues);
    await enqueue(request());
    await expect.poll(listed).toBe(1);
  });

  it('is not written for no tasks', async () => {
    expect(await enqueue()).toEqual([]);
    expect(await fixture.content()).toEqual({});
  });
});
