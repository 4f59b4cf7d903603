import fc from 'fast-check';
import { describe, expect, vi } from 'vitest';
import { LEASE_SECONDS, type LeasedTask, type Settlement } from '../../lib/broker/broker.js';
import { BrokerUnavailableError } from '../../lib/errors.js';
import { scriptSource } from '../../lib/broker/redis/scripts/script-source.js';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import { LeaseScores } from '../../lib/broker/redis/lease-scores.js';
import { encodeTaskMessage } from '../../lib/wire/codec.js';
import { utcDay } from '../../lib/wire/keys.js';
import { archival, done, leaseOf, retrial } from '../contract/driver.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { LinkSession } from '../contract/link-session.js';
import { message, request } from '../support/messages.js';
import { startProxy } from './proxy.js';

const MAX = '9223372036854775807';
/** The first total that equals MAX as a Lua number. */
const WRAPS_FROM = '9223372036854775296';

describe('a settlement whose reply is lost', () => {
  /** Settles through a proxy that loses the reply and then the connection, and once more. */
  async function settleTwice(
    driver: RedisDriver,
    make: (tasks: LeasedTask[]) => Settlement[],
    between = (): void => undefined,
  ) {
    const proxy = await startProxy(driver.server.port);
    const broker = driver.open(proxy.port);
    await driver.enqueue([request(), request()]);
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 2 });
    const batch = make(tasks);
    proxy.holdReplies();
    const first = broker.consumer.exchange('default', { settle: batch, take: 0 }).catch((error: unknown) => error);
    await expect.poll(() => driver.redis.zcard(driver.keys.lease)).toBe(2 - batch.length);
    proxy.cut();
    expect(await first).toBeInstanceOf(BrokerUnavailableError);
    between();
    const settled = () =>
      vi.waitFor(async () => (await broker.consumer.exchange('default', { settle: batch, take: 0 })).settled);
    return { settled, tasks };
  }

  it('is reported as stored', async ({ driver }) => {
    const { settled } = await settleTwice(driver, ([a, b]) => [done(a!), retrial(b!, driver.now + 60)]);
    expect(await settled()).toEqual(['settled', 'settled']);
    expect(await driver.redis.get(driver.keys.processed)).toBe('2');
    expect(await driver.redis.zcard(driver.keys.retry)).toBe(1);
  });

  it('is lost when another server may have had the task since', async ({ driver }) => {
    const { settled } = await settleTwice(
      driver,
      ([a]) => [done(a!)],
      () => driver.clock.advance(60_000),
    );
    expect(await settled()).toEqual(['lost']);
  });

  it('does not affect a task that was not part of it', async ({ driver }) => {
    const { settled, tasks } = await settleTwice(driver, ([a]) => [done(a!)]);
    await driver.redis.zrem(driver.keys.lease, tasks[1]!.lease.id);
    expect(await driver.settle(done(tasks[1]!))).toEqual(['lost']);
    expect(await settled()).toEqual(['settled']);
  });
});

describe('the engine of links', () => {
  /** The scripts that some calls run. */
  async function scriptsOf(calls: () => Promise<unknown>): Promise<string[]> {
    const run = vi.spyOn(Scripts.prototype, 'run');
    await calls();
    const names = run.mock.calls.map(([, name]) => name);
    run.mockRestore();
    return names;
  }
  const watch = (driver: RedisDriver, id: string): Promise<unknown> =>
    driver.broker.links.watch('default', [{ id, waiting: new LinkSession(driver).edge('x', 'other') }]);

  it('is not known to a Redis without links', async ({ driver }) => {
    await driver.redis.script('FLUSH');
    const task = await driver.takeNew();
    await driver.settle(done(task));
    expect(await driver.broker.links.places()).toEqual([]);
    expect(await driver.redis.script('EXISTS', scriptSource('exchangeLinked').sha1)).toEqual([0]);
  });

  it('is asked for when the queue has links, and for a minute after', async ({ driver }) => {
    const first = await driver.takeNew();
    await watch(driver, first.lease.id);
    await driver.enqueue([request()]);
    expect(await scriptsOf(() => driver.exchange([done(first)], 1))).toEqual(['exchange', 'exchangeLinked']);
    expect(await driver.redis.exists(driver.keys.links)).toBe(0);
    expect(await scriptsOf(() => driver.takeNew())).toEqual(['enqueue', 'exchangeLinked']);
    driver.clock.advance(60_000);
    expect(await scriptsOf(() => driver.takeNew())).toEqual(['enqueue', 'exchange']);
  });

  it('settles in the call in which links are found', async ({ driver }) => {
    const task = await driver.takeNew();
    await watch(driver, task.lease.id);
    const { settled, parcels } = await driver.exchange([done(task)], 0);
    expect(settled).toEqual(['settled']);
    expect(parcels).toHaveLength(1);
    expect(await driver.redis.get(driver.keys.processed)).toBe('1');
  });
});

describe('taking', () => {
  it('changes pending, active, lease and hash as asynq does, task by task', async ({ driver }) => {
    const { keys, redis, now } = driver;
    await driver.enqueue([request({ id: 'a' }), request({ id: 'b' }), request({ id: 'c' })]);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['c', 'b', 'a']);
    await driver.take(2);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['c']);
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['b', 'a']);
    expect(await redis.zrange(keys.lease, '0', '-1', 'WITHSCORES')).toEqual(['a', `${now + 30}`, 'b', `${now + 30}`]);
    expect(await redis.hkeys(keys.task('a'))).toEqual(['msg', 'state']);
    expect(await redis.hget(keys.task('a'), 'state')).toBe('active');
  });

  it('skips ids without a message, removes their hashes, and fills the batch after them', async ({ driver }) => {
    const { keys, redis } = driver;
    await redis.hset(keys.task('stub'), 'state', 'pending');
    await redis.set(keys.task('foreign'), 'not ours');
    for (let i = 0; i < 50; i++) await redis.lpush(keys.pending, 'missing', 'stub', 'foreign');
    await driver.enqueue([request({ id: 'a' }), request({ id: 'b' }), request({ id: 'c' })]);
    const reply = await driver.broker.consumer.exchange('default', { settle: [], take: 2 });
    expect(reply.tasks.map(({ lease }) => lease.id)).toEqual(['a', 'b']);
    expect(reply.backlog).toBe(1);
    expect(await redis.exists(keys.task('stub'), keys.task('missing'))).toBe(0);
    expect(await redis.get(keys.task('foreign'))).toBe('not ours');
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['b', 'a']);
    expect(await redis.zcard(keys.lease)).toBe(2);
  });

  it('returns since when tasks were pending, also after dangling ids, unless it is unreadable', async ({ driver }) => {
    const { keys, redis } = driver;
    await redis.hset(keys.task('stub'), 'state', 'pending');
    await redis.set(keys.task('foreign'), 'not ours');
    await redis.lpush(keys.pending, 'missing', 'stub', 'foreign');
    await driver.enqueue(['none', 'text', 'far', 'short', 'real'].map((id) => request({ id })));
    await redis.hdel(keys.task('none'), 'pending_since');
    await redis.hset(keys.task('text'), 'pending_since', 'a while ago, some');
    await redis.hset(keys.task('far'), 'pending_since', '9'.repeat(40));
    await redis.hset(keys.task('short'), 'pending_since', '7');
    await redis.hset(keys.task('real'), 'pending_since', '1700000000123999999');
    const reply = await driver.broker.consumer.exchange('default', { settle: [], take: 5, since: true });
    expect(reply.tasks.map(({ lease, pendingSince }) => [lease.id, pendingSince])).toEqual([
      ['none', undefined],
      ['text', undefined],
      ['far', undefined],
      ['short', undefined],
      ['real', 1_700_000_000_123],
    ]);
    expect(await redis.exists(keys.task('stub'), keys.task('missing'))).toBe(0);
    expect(await redis.get(keys.task('foreign'))).toBe('not ours');
  });

  it('stops after a thousand ids without a message, and continues with the next call', async ({ driver }) => {
    const { keys, redis } = driver;
    await redis.lpush(keys.pending, ...Array.from({ length: 2_500 }, (_, index) => `dangling-${index}`));
    await driver.enqueue([request({ id: 'a' })]);
    const first = await driver.broker.consumer.exchange('default', { settle: [], take: 100 });
    expect(first.tasks).toEqual([]);
    expect(first.backlog).toBeLessThan(2_500);
    expect(first.backlog).toBeGreaterThan(1_000);
    const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: 2_000 });
    expect(tasks.map(({ lease }) => lease.id)).toEqual(['a']);
  });

  it('leases a damaged task apart from the others, so that it can be archived unchanged', async ({ driver }) => {
    const { keys, redis, now } = driver;
    const bad = {
      garbage: Buffer.from('ffff', 'hex'),
      empty: Buffer.alloc(0),
      foreign: encodeTaskMessage(message({ id: 'other' })),
    };
    for (const [id, bytes] of Object.entries(bad)) {
      await redis.hset(keys.task(id), { msg: bytes, state: 'pending' });
      await redis.lpush(keys.pending, id);
    }
    await driver.enqueue([request({ id: 'good' })]);
    const { tasks, damaged } = await driver.broker.consumer.exchange('default', { settle: [], take: 10 });
    expect(tasks.map(({ lease }) => lease.id)).toEqual(['good']);
    expect(damaged.map(({ lease, raw }) => [lease.id, raw])).toEqual(Object.entries(bad));
    expect(damaged.map(({ error }) => (error as { code?: string }).code)).toEqual(
      Array(3).fill('ASYNQ_UNDECODABLE_MESSAGE'),
    );
    const archive = damaged.map(({ lease }): Settlement => ({ kind: 'archive', lease, message: undefined }));
    expect(await driver.settle(...archive)).toEqual(['settled', 'settled', 'settled']);
    expect(await redis.zrange(keys.archived, '0', '-1', 'WITHSCORES')).toEqual(
      ['empty', 'foreign', 'garbage'].flatMap((id) => [id, String(now)]),
    );
    expect(await redis.hgetBuffer(keys.task('garbage'), 'msg')).toEqual(bad.garbage);
  });

  it.for([0, -1, NaN])('takes nothing when asked for %s', async (take, { driver }) => {
    await driver.enqueue([request()]);
    const reply = await driver.broker.consumer.exchange('default', { settle: [], take });
    expect(reply).toEqual({ settled: [], tasks: [], damaged: [], limitedFor: 0, backlog: 1 });
  });

  it('takes all tasks when asked for more', async ({ driver }) => {
    await driver.enqueue([request(), request()]);
    expect(await driver.take(Infinity)).toHaveLength(2);
  });
});

describe('the active list', () => {
  it('keeps the other tasks and their order, whichever are settled', async ({ driver }) => {
    const { keys, redis } = driver;
    const positions = fc.uniqueArray(fc.nat(59), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), positions, async (count, chosen) => {
        await redis.flushall();
        const tasks = await driver.takeNewMany(count);
        const picked = chosen.filter((position) => position < count).map((position) => tasks[position]!);
        expect(await driver.settle(...picked.map(done))).toEqual(picked.map(() => 'settled'));
        const left = tasks.filter((task) => !picked.includes(task)).map(({ lease }) => lease.id);
        expect(await redis.lrange(keys.active, 0, -1)).toEqual(left.toReversed());
        expect((await redis.zrange(keys.lease, '0', '-1')).sort()).toEqual(left.toSorted());
      }),
      { numRuns: 40 },
    );
  });

  it('loses an id that is at its end more than once', async ({ driver }) => {
    const { keys, redis } = driver;
    const tasks = await driver.takeNewMany(6);
    const [first, second] = tasks.map(({ lease }) => lease.id);
    await redis.rpush(keys.active, second!, first!, first!);
    await driver.settle(...tasks.slice(0, 5).map(done));
    expect(await redis.lrange(keys.active, 0, -1)).toEqual([tasks[5]!.lease.id]);
  });
});

describe('settling', () => {
  it('is rejected for a task whose hash is gone or in another state, except done', async ({ driver }) => {
    const { keys, redis } = driver;
    const [gone, moved, finished] = await driver.takeNewMany(3);
    await redis.del(keys.task(gone!.lease.id), keys.task(finished!.lease.id));
    await redis.hset(keys.task(moved!.lease.id), 'state', 'pending');
    expect(
      await driver.settle(retrial(gone!, driver.now + 60), retrial(moved!, driver.now + 60), done(finished!)),
    ).toEqual(['lost', 'lost', 'settled']);
    expect(await redis.exists(keys.task(gone!.lease.id), keys.retry)).toBe(0);
  });

  it('is rejected for a result, too', async ({ driver }) => {
    const { keys, redis, broker } = driver;
    const [gone, moved] = await driver.takeNewMany(2);
    await redis.del(keys.task(gone!.lease.id));
    await redis.hset(keys.task(moved!.lease.id), 'state', 'pending');
    expect(await broker.consumer.writeResult(gone!.lease, Buffer.from('r'))).toBe(false);
    expect(await broker.consumer.writeResult(moved!.lease, Buffer.from('r'))).toBe(false);
    expect(await redis.exists(keys.task(gone!.lease.id))).toBe(0);
    expect(await redis.hexists(keys.task(moved!.lease.id), 'result')).toBe(0);
  });

  it('releases a lock that the task still holds, and no other', async ({ driver }) => {
    const { keys, redis } = driver;
    const requests = ['own', 'taken', 'strange'].map((id) =>
      request({ id, uniqueKey: keys.unique(id, undefined) }, { uniqueTtl: 60 }),
    );
    await driver.enqueue(requests);
    await redis.set(keys.unique('taken', undefined), 'another');
    await redis.del(keys.unique('strange', undefined));
    await redis.rpush(keys.unique('strange', undefined), 'a list');
    const tasks = await driver.take(3);
    expect(await driver.settle(...tasks.map(done))).toEqual(['settled', 'settled', 'settled']);
    const locks = ['own', 'taken', 'strange'].map((id) => keys.unique(id, undefined));
    expect(await Promise.all(locks.map((lock) => redis.exists(lock)))).toEqual([0, 1, 1]);
  });

  it('does not release a lock of another queue', async ({ driver }) => {
    const { redis } = driver;
    const requests = ['a', 'b'].map((id) => request({ id, uniqueKey: 'elsewhere' }));
    await driver.enqueue(requests);
    await redis.set('elsewhere', 'a');
    const [first, second] = await driver.take(2);
    const completion: Settlement = { kind: 'complete', lease: second!.lease, message: second!.message, expiresAt: 1 };
    expect(await driver.settle(done(first!), completion)).toEqual(['settled', 'settled']);
    expect(await redis.get('elsewhere')).toBe('a');
  });

  it('rejects a time that is no whole number before anything is sent', async ({ driver }) => {
    const [task] = await driver.takeNewMany(1);
    const before = await driver.contents();
    for (const retryAt of [NaN, 1.5, Infinity]) {
      const settlement = { ...retrial(task!, 0), retryAt } as Settlement;
      await expect(driver.settle(settlement)).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
    }
    expect(await driver.contents()).toEqual(before);
  });

  it('works when Redis is full, as it frees memory', async ({ driver }) => {
    const { redis } = driver;
    const tasks = await driver.takeNewMany(10);
    await redis.config('SET', 'maxmemory', '1');
    try {
      await expect(driver.enqueue([request()])).rejects.toThrow(/OOM/);
      const settlements = tasks.map((task, index) => (index % 2 ? done(task) : retrial(task, driver.now + 60)));
      expect(await driver.settle(...settlements)).toEqual(Array(10).fill('settled'));
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    expect(await redis.zcard(driver.keys.retry)).toBe(5);
    expect(await redis.llen(driver.keys.active)).toBe(0);
  });
});

describe('counters', () => {
  const day = (driver: RedisDriver) => utcDay(driver.clock.now());

  it('set the end of a daily counter once, in 90 days', async ({ driver }) => {
    const { keys, redis } = driver;
    const [first, second, third] = await driver.takeNewMany(3);
    await driver.settle(done(first!), retrial(second!, driver.now + 60));
    for (const key of [keys.processedOn(day(driver)), keys.failedOn(day(driver))]) {
      expect(await redis.call('EXPIRETIME', key)).toBe(driver.now + 90 * 86_400);
      await redis.persist(key);
    }
    await driver.settle(retrial(third!, driver.now + 60));
    expect(await redis.ttl(keys.processedOn(day(driver)))).toBe(-1);
    expect(await redis.mget(keys.processedOn(day(driver)), keys.failedOn(day(driver)))).toEqual(['3', '2']);
  });

  it.for([
    [WRAPS_FROM, '1', '1'],
    [MAX, '1', '1'],
    ['9223372036854775295', WRAPS_FROM, '8'],
    ['41', '42', '8'],
  ] as const)('after %s the totals of a failure are %s and %s', async ([before, processed, failures], { driver }) => {
    const { keys, redis } = driver;
    await redis.mset(keys.processed, before, keys.failed, '7');
    const [task] = await driver.takeNewMany(1);
    await driver.settle(retrial(task!, driver.now + 60));
    expect(await redis.mget(keys.processed, keys.failed)).toEqual([processed, failures]);
  });

  it.for(['1.5', '1e3', '0x10', '007', '', MAX, '99999999999999999999', '-9223372036854775809'])(
    'of which one holds %j fail the call before anything is written',
    async (value, { driver }) => {
      const { keys, redis } = driver;
      const [task] = await driver.takeNewMany(1);
      const total = value === MAX ? [] : [keys.processed];
      for (const key of [keys.processedOn(day(driver)), keys.failedOn(day(driver)), keys.failed, ...total]) {
        await redis.set(key, value);
        const before = await driver.contents();
        await expect(driver.settle(retrial(task!, driver.now + 60))).rejects.toThrow(key);
        expect(await driver.contents()).toEqual(before);
        await redis.del(key);
      }
      expect(await driver.settle(retrial(task!, driver.now + 60))).toEqual(['settled']);
    },
  );

  it('wrap within a batch as they would one by one', async ({ driver }) => {
    const { keys, redis } = driver;
    await redis.mset(keys.processed, '9223372036854775294', keys.failed, '7');
    const tasks = await driver.takeNewMany(5);
    await driver.settle(...tasks.map((task, index) => (index === 4 ? retrial(task, driver.now + 60) : done(task))));
    // …295, …296, 1, 2, and the failure, which finds 2.
    expect(await redis.mget(keys.processed, keys.failed)).toEqual(['3', '8']);
  });
});

describe('a limit of starts', () => {
  it.for(['1.5', '0x1', 'none'])(
    'that reads %j as its counter neither fails nor stops half-way',
    async (value, { driver }) => {
      const { broker, clock, keys, redis } = driver;
      const [running] = await driver.takeNewMany(1);
      await broker.producer.enqueue(
        'default',
        Array.from({ length: 4 }, () => request()),
      );
      await redis.hset(keys.rate(4000), String(clock.now()), value);
      const settlements = [done(running!)];
      const limits = { active: 0, rate: 4, window: 4000 };
      const { settled, tasks, backlog } = await broker.consumer.exchange('default', {
        settle: settlements,
        take: 3,
        limits,
      });
      expect([settled, tasks.length, backlog]).toEqual([['settled'], 3, 1]);
      expect(await redis.zcard(keys.lease)).toBe(3);
      expect(await redis.hget(keys.rate(4000), String(clock.now()))).toBe('3');
    },
  );
});

describe('archiving', () => {
  it('trims a bounded number of tasks afterwards, and never fails because of it', async ({ driver }) => {
    const { keys, redis, now } = driver;
    const old = now - 91 * 86_400;
    for (let i = 0; i < 300; i++) {
      await redis.hset(keys.task(`old-${i}`), { msg: 'x', state: 'archived' });
      await redis.zadd(keys.archived, old + i, `old-${i}`);
    }
    const [task, other] = await driver.takeNewMany(2);
    expect(await driver.settle(archival(task!))).toEqual(['settled']);
    expect(await redis.zcard(keys.archived)).toBe(300 - 101 + 1);
    expect(await redis.exists(keys.task('old-0'))).toBe(0);
    await redis.hset(keys.task('old-101'), 'unique_key', keys.pending); // not a string: GET fails
    await redis.hset(keys.task('old-102'), 'unique_key', keys.paused);
    await redis.set(keys.paused, 'old-102'); // holds the id: by all appearances its lock
    expect(await driver.settle(archival(other!))).toEqual(['settled']);
    expect(await redis.exists(keys.task('old-101'), keys.task('old-102'), keys.paused)).toBe(0);
  });
});

describe('a lease that moves while its settlement is under way', () => {
  it('is settled by its new score', async ({ driver }) => {
    const { keys, redis, now } = driver;
    const [task, other] = await driver.takeNewMany(2);
    await redis.zadd(keys.lease, now + 99, task!.lease.id, now + 99, other!.lease.id);
    const settling = driver.settle(done(task!), done(other!)); // carries the old score …
    task!.lease.expiresAt = now + 99; // … when the reply to an extension comes in
    expect(await settling).toEqual(['settled', 'lost']);
  });

  it('is lost when another server holds it', async ({ driver }) => {
    const { keys, redis, now } = driver;
    const [task] = await driver.takeNewMany(1);
    await redis.zadd(keys.lease, now + 99, task!.lease.id);
    const settling = driver.settle(done(task!));
    task!.lease.renewing = now + 60;
    expect(await settling).toEqual(['lost']);
    expect(await redis.exists(keys.task(task!.lease.id))).toBe(1);
  });
});

describe('extensions', () => {
  it('continue when Redis is full: running tasks must not count as abandoned', async ({ driver }) => {
    const { keys, redis, broker, now } = driver;
    const leases = (await driver.takeNewMany(3)).map(({ lease }) => lease);
    await redis.config('SET', 'maxmemory', '1');
    try {
      expect(await broker.consumer.extendLeases('default', leases, now + 60)).toEqual([true, true, true]);
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    expect(await redis.zcount(keys.lease, now + 60, now + 60)).toBe(3);
  });
});

describe('extensions whose replies are lost', () => {
  it.for([0, 1, 2])('prove the lease with the one that arrived last: number %s', async (arrived, { driver }) => {
    const { keys, redis, server, now } = driver;
    const [task] = await driver.takeNewMany(1);
    const { lease } = task!;
    const ends = [now + 35, now + 40, now + 45];
    const proxy = await startProxy(server.port);
    const broker = driver.open(proxy.port);
    await driver.broker.consumer.extendLeases('default', [leaseOf('nobody', 1)], 2); // Redis knows the script
    for (const end of ends) {
      await vi.waitFor(() => broker.maintenance.listExpiredLeases('default', 0, 1)); // connected (again)
      proxy.holdReplies();
      const extending = broker.consumer.extendLeases('default', [lease], end);
      await vi.waitFor(async () => expect(await redis.zscore(keys.lease, lease.id)).toBe(String(end)));
      proxy.cut();
      await expect(extending).rejects.toThrow(BrokerUnavailableError);
    }
    expect(lease).toMatchObject({ expiresAt: now + LEASE_SECONDS, renewing: ends[2] });
    await vi.waitFor(() => broker.maintenance.listExpiredLeases('default', 0, 1));
    await redis.zadd(keys.lease, ends[arrived]!, lease.id);
    expect(await broker.consumer.writeResult(lease, Buffer.from('r'))).toBe(true);
    expect(await broker.consumer.extendLeases('default', [lease], now + 50)).toEqual([true]);
    expect(lease).toEqual({ queue: 'default', id: lease.id, expiresAt: now + 50, renewing: undefined });
    await redis.zadd(keys.lease, ends[arrived]!, lease.id);
    expect(await driver.settle(done(task!))).toEqual(['lost']);
  });

  it('leave nothing behind when they were certainly not sent, however often they are retried', async ({ driver }) => {
    const { server, now } = driver;
    const [task] = await driver.takeNewMany(1);
    const { lease } = task!;
    const proxy = await startProxy(server.port);
    const broker = driver.open(proxy.port);
    await broker.maintenance.listExpiredLeases('default', 0, 1);
    lease.renewing = now + 31; // a lost reply from before
    proxy.close();
    await expect(broker.consumer.exchange('default', { settle: [], take: 0 })).rejects.toThrow(BrokerUnavailableError);
    for (let second = 0; second < 100; second++) {
      await expect(broker.consumer.extendLeases('default', [lease], now + 40 + second)).rejects.toThrow(
        BrokerUnavailableError,
      );
    }
    expect(lease).toMatchObject({ expiresAt: now + LEASE_SECONDS, renewing: now + 31 });
    await driver.redis.zadd(driver.keys.lease, now + 31, lease.id);
    expect(await driver.broker.consumer.extendLeases('default', [lease], now + 200)).toEqual([true]);
  });

  it('prove the lease also when only the reply to an earlier one has arrived', () => {
    const scores = new LeaseScores();
    const lease = leaseOf('a', 30);
    scores.beginRenewal(lease, 35);
    scores.beginRenewal(lease, 40);
    scores.endRenewal(lease, 35, true);
    expect(scores.fences([lease])).toEqual(['35,40', '1']);
    scores.endRenewal(lease, 40, true);
    expect(scores.fences([lease])).toEqual(['40', '1']);
  });

  it('are distinguished within one call', async ({ driver }) => {
    const { keys, redis, now } = driver;
    const ids = Array.from({ length: 30 }, (_, index) => `id-${index}`);
    for (const [index, id] of ids.entries()) await redis.zadd(keys.lease, now + (index % 7), id);
    const leases = ids.map((id, index) => ({
      ...leaseOf(id, now + (index % 5)),
      renewing: index % 2 ? now + 6 : undefined,
    }));
    const expected = ids.map((_, index) => index % 7 === index % 5 || (index % 2 === 1 && index % 7 === 6));
    expect(await driver.broker.consumer.extendLeases('default', leases, now + 30)).toEqual(expected);
  });

  it('compare scores as numbers, whatever their notation', async ({ driver }) => {
    const { keys, redis } = driver;
    await redis.zadd(keys.lease, '1700000000.1', 'a', '1e9', 'b');
    const leases = [leaseOf('a', 1700000000.1), leaseOf('b', 1_000_000_000), leaseOf('c', 1)];
    expect(await driver.broker.consumer.extendLeases('default', leases, driver.now)).toEqual([true, true, false]);
  });
});

describe('a take of large tasks', () => {
  const large = (id: string, bytes: number) => request({ id, payload: Buffer.alloc(bytes, 'x') });
  const take = async (driver: RedisDriver, settle: Settlement[] = []) => {
    const { tasks, backlog } = await driver.broker.consumer.exchange('default', { settle, take: 256 });
    return { tasks, ids: tasks.map(({ message: { id } }) => id), backlog };
  };
  const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `task ${from + n}`);

  it('ends at about a megabyte, and the next one goes on in order', async ({ driver }) => {
    await driver.enqueue(numbered(0, 40).map((id) => large(id, 90_000)));
    const first = await take(driver);
    expect(first.ids).toEqual(numbered(0, 11));
    expect(first.backlog).toBe(29);
    expect(await driver.redis.llen(driver.keys.pending)).toBe(29);
    const second = await take(driver, first.tasks.map(done));
    expect(second.ids).toEqual(numbered(11, 22));
    expect(await driver.redis.lrange(driver.keys.active, '0', '-1')).toEqual(second.ids.toReversed());
    expect(await driver.redis.zcard(driver.keys.lease)).toBe(11);
  });

  it('gets a task beyond that alone', async ({ driver }) => {
    await driver.enqueue([large('a', 3_000_000), large('b', 3_000_000), request({ id: 'c' })]);
    expect(await take(driver)).toMatchObject({ ids: ['a'], backlog: 2 });
    expect(await take(driver)).toMatchObject({ ids: ['b'], backlog: 1 });
    expect(await take(driver)).toMatchObject({ ids: ['c'], backlog: 0 });
  });

  it('passes over ids without a task, and counts only what it took against a rate', async ({ driver }) => {
    await driver.redis.rpush(driver.keys.pending, 'gone', 'gone, too');
    await driver.enqueue(numbered(0, 5).map((id) => large(id, 600_000)));
    const limits = { active: 0, rate: 2, window: 60_000 };
    const next = async () => driver.broker.consumer.exchange('default', { settle: [], take: 256, limits });
    const [first, second, third] = [await next(), await next(), await next()];
    expect([first, second].map(({ tasks }) => tasks.map(({ message: { id } }) => id))).toEqual([
      ['task 0'],
      ['task 1'],
    ]);
    expect(first.backlog).toBe(4);
    expect(third.tasks).toEqual([]);
    expect(third.limitedFor).toBeGreaterThan(0);
  });
});
