import { describe, expect } from 'vitest';
import { it } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';

const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

describe('forward', () => {
  it('removes ids without a message, with their hashes', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await broker.producer.enqueue('default', [request({ id: 'due' }, { processAt: now })]);
    await redis.hset(keys.task('stub'), 'state', 'scheduled');
    await redis.set(keys.task('foreign'), 'not ours');
    for (const set of [keys.scheduled, keys.retry])
      await redis.zadd(set, now - 1, 'stub', now - 1, 'missing', now, 'foreign');
    expect(await broker.maintenance.forward('default')).toEqual({ moved: 1, nextDue: undefined });
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['due']);
    expect(await redis.exists(keys.scheduled, keys.retry, keys.task('stub'), keys.task('missing'))).toBe(0);
    expect(await redis.get(keys.task('foreign'))).toBe('not ours');
  });

  it('ends when a score is infinite', async ({ driver }) => {
    const { keys, redis, broker } = driver;
    await broker.producer.enqueue('default', [
      request({ id: 'never' }, { processAt: 1 }),
      request({ id: 'long' }, { processAt: 1 }),
    ]);
    await redis.zadd(keys.scheduled, '+inf', 'never', '-inf', 'long');
    expect(await broker.maintenance.forward('default')).toEqual({ moved: 1, nextDue: Infinity });
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['long']);
  });

  it('moves nothing into a group whose set has another type', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await broker.producer.enqueue('default', [request({ id: 'a' }, { processAt: now })]);
    await redis.hset(keys.task('a'), 'group', 'g');
    await redis.set(keys.group('g'), 'x');
    const before = await driver.contents();
    await expect(broker.maintenance.forward('default')).rejects.toMatchObject({ code: 'ASYNQ_WRONG_KEY_TYPE' });
    expect(await driver.contents()).toEqual(before);
  });
});

describe('listExpiredLeases', () => {
  it('removes ids without a message or not active, page by page, and lists the ids after them', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await broker.producer.enqueue('default', [request({ id: 'a' }), request({ id: 'gone-on' })]);
    await driver.take(2);
    await redis.hset(keys.task('gone-on'), 'state', 'retry');
    await redis.hset(keys.task('stub'), 'state', 'active');
    const dangling = [...numbered('dangling', 25), 'stub', 'gone-on'];
    for (const id of dangling) {
      await redis.zadd(keys.lease, now - 100, id);
      await redis.lrem(keys.active, 0, id);
      await redis.rpush(keys.active, id);
    }
    const expired = await broker.maintenance.listExpiredLeases('default', now + 30, 10);
    expect(expired.tasks.map(({ lease }) => lease)).toEqual([{ queue: 'default', id: 'a', expiresAt: now + 30 }]);
    expect(expired.dangling).toBe(dangling.length);
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['a']);
    expect(await redis.zrange(keys.lease, '0', '-1')).toEqual(['a']);
    expect(await redis.exists(keys.task('stub'))).toBe(0);
    expect(await redis.hget(keys.task('gone-on'), 'state')).toBe('retry');
  });

  it('lists a lease with a score of -inf so that it can be settled', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await broker.producer.enqueue('default', [request({ id: 'a' })]);
    await driver.take(1);
    await redis.zadd(keys.lease, '-inf', 'a');
    const [task] = (await broker.maintenance.listExpiredLeases('default', now, 10)).tasks;
    const archive = { kind: 'archive', ...task! } as const;
    expect((await broker.consumer.exchange('default', { settle: [archive], take: 0 })).settled).toEqual(['settled']);
  });

  it('returns damaged tasks apart from the others', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await broker.producer.enqueue('default', [request({ id: 'good' }), request({ id: 'bad' })]);
    await driver.take(2);
    await redis.hset(keys.task('bad'), 'msg', Buffer.from('ffff', 'hex'));
    const { tasks, damaged, dangling } = await broker.maintenance.listExpiredLeases('default', now + 30, 10);
    expect(tasks.map(({ lease }) => lease.id)).toEqual(['good']);
    expect(damaged).toMatchObject([{ lease: { id: 'bad', expiresAt: now + 30 }, raw: Buffer.from('ffff', 'hex') }]);
    expect(dangling).toBe(0);
  });
});

describe('repairActive', () => {
  it('leases tasks without a lease, however long the list, and keeps the other leases', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    const ids = numbered('id', 1_234);
    await redis.rpush(keys.active, ...ids);
    const leased = ids.filter((_, index) => index % 3 === 0);
    await redis.zadd(keys.lease, ...leased.flatMap((id) => [now - 5, id]));
    expect(await broker.maintenance.repairActive('default')).toBe(ids.length - leased.length);
    expect(await redis.zcount(keys.lease, now + 30, now + 30)).toBe(ids.length - leased.length);
    expect(await redis.zcount(keys.lease, now - 5, now - 5)).toBe(leased.length);
    expect(await broker.maintenance.repairActive('default')).toBe(0);
  });

  it('makes tasks without a lease visible to recovery', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await broker.producer.enqueue('default', [request({ id: 'a' })]);
    await driver.take(1);
    await redis.del(keys.lease);
    expect((await broker.maintenance.listExpiredLeases('default', now + 60, 10)).tasks).toEqual([]);
    expect(await broker.maintenance.repairActive('default')).toBe(1);
    expect((await broker.maintenance.listExpiredLeases('default', now + 60, 10)).tasks).toHaveLength(1);
  });
});

describe('deletion', () => {
  it('continues in steps until the limit', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    const ids = numbered('id', 1_700);
    for (const id of ids) await redis.hset(keys.task(id), 'msg', 'x');
    await redis.zadd(keys.completed, ...ids.flatMap((id) => [now - 1, id]));
    expect(await broker.maintenance.deleteExpiredCompleted('default', 1_201)).toBe(1_201);
    expect(await broker.maintenance.deleteExpiredCompleted('default', Infinity)).toBe(499);
    expect(await redis.exists(...ids.map((id) => keys.task(id)))).toBe(0);
    expect(await broker.maintenance.deleteExpiredCompleted('default', 0)).toBe(0);
  });

  it('keeps the lock of a completed task that another task holds by then', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    await redis.hset(keys.task('a'), { msg: 'x', unique_key: keys.unique('u', undefined) });
    await redis.set(keys.unique('u', undefined), 'a');
    await redis.zadd(keys.completed, now, 'a');
    expect(await broker.maintenance.deleteExpiredCompleted('default', 10)).toBe(1);
    expect(await redis.exists(keys.unique('u', undefined))).toBe(1);
  });
});

describe('monitoring data', () => {
  it('is what asynq’s tools read, and is gone after it was cleared', async ({ driver }) => {
    const { redis, broker, keyspace, now } = driver;
    const info = { host: 'h', pid: 42, serverId: 'sid' };
    const server = {
      ...info,
      concurrency: 10,
      queues: { default: 1 },
      strictPriority: true,
      status: 'active' as const,
      startTime: 0,
      activeWorkerCount: 1,
    };
    const worker = {
      ...info,
      taskId: 'id1',
      taskType: 't',
      taskPayload: Buffer.from('p'),
      queue: 'default',
      startTime: 0,
      deadline: 0,
    };
    const [serverKey, workersKey] = [keyspace.server('h', 42, 'sid'), keyspace.serverWorkers('h', 42, 'sid')];
    await broker.monitoring.writeServerState(server, [worker, { ...worker, taskId: 'id2' }], 10);
    expect(await redis.zrange(keyspace.servers, '0', '-1', 'WITHSCORES')).toEqual([serverKey, `${now + 10}`]);
    expect(await redis.zrange(keyspace.workers, '0', '-1', 'WITHSCORES')).toEqual([workersKey, `${now + 10}`]);
    expect(await redis.hkeys(workersKey)).toEqual(['id1', 'id2']);
    for (const key of [serverKey, workersKey]) {
      const left = await redis.pttl(key);
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(10_000);
    }
    await broker.monitoring.writeServerState(server, [], 10);
    expect(await redis.exists(serverKey, workersKey)).toBe(1);
    await broker.monitoring.clearServerState(info);
    expect(await redis.exists(serverKey, workersKey, keyspace.servers, keyspace.workers)).toBe(0);
  });
});

describe('late results', () => {
  it('are what Go has written for a task that was gone: nothing else is deleted', async ({ driver }) => {
    const { keys, redis, broker } = driver;
    await driver.enqueue(numbered('task', 1_200).map((id) => request({ id })));
    for (const id of numbered('gone', 700)) await redis.hset(keys.task(id), 'result', 'late');
    await redis.hset(keys.task('task-0'), 'result', 'of an attempt');
    await redis.hset(keys.task('odd'), 'state', 'pending');
    await redis.hset(driver.keyspace.queue('other').task('gone'), 'result', 'late');
    await redis.hset(driver.keyspace.queue('default}:t:x').task('gone'), 'result', 'late');
    await redis.sadd(driver.keyspace.queues, 'default}:t:x');
    await redis.set(keys.task('foreign'), 'not ours');
    expect(await broker.maintenance.deleteLateResults('default')).toBe(700);
    expect(await redis.keys('*gone*')).toHaveLength(2);
    expect(await redis.keys(`${keys.taskPrefix}task-*`)).toHaveLength(1_200);
    expect(await redis.exists(keys.task('odd'), keys.task('foreign'))).toBe(2);
    expect(await broker.maintenance.deleteLateResults('default')).toBe(0);
  });
});

describe('moveTasks', () => {
  it('searches a long list of pending tasks once for all that it removes, not once for each', async ({ driver }) => {
    const { redis, broker } = driver;
    const ids = numbered('t', 3_000);
    await broker.producer.enqueue(
      'default',
      ids.map((id) => request({ id })),
    );
    const some = ids.slice(1_500, 1_900).filter((_, index) => index % 2 === 0);
    await redis.config('RESETSTAT');
    const statuses = await broker.administration.moveTasks('default', 'delete', some, { state: 'pending' });
    expect(new Set(statuses)).toEqual(new Set(['moved']));
    const calls = [...(await redis.info('commandstats')).matchAll(/cmdstat_(lrem|lpos):calls=(\d+)/g)];
    expect(calls.map(([, command, count]) => `${command} ${count}`).toSorted()).toEqual(['lpos 1', 'lrem 1']);
    expect(await redis.llen(driver.keys.pending)).toBe(2_800);
  });
});
