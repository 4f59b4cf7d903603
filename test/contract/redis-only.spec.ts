import { describe, expect, onTestFinished, vi } from 'vitest';
import { decodeServerInfo, decodeWorkerInfo } from '../../lib/wire/codec.js';
import { ManualClock } from '../../lib/clock.js';
import { DEFAULT_KEY_PREFIX, Keyspace, utcDay } from '../../lib/wire/keys.js';
import type { ServerInfo, WorkerInfo } from '../../lib/wire/message.js';
import { dumpRedis } from '../support/redis-dump.js';
import { message, request } from '../support/messages.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { archival, done, retrial, expectQueue } from './driver.js';
import { it, type RedisDriver } from './redis-fixture.js';

const keyspace = new Keyspace();

describe('the layout', () => {
  it('is asynq’s: every key, type and field of a task in each state', async ({ driver }) => {
    const lock = driver.keys.unique('t', Buffer.from('x'));
    await driver.add({ id: 'a', uniqueKey: lock }, { uniqueTtl: 60 });
    await driver.add({ id: 's' }, { processAt: driver.now + 5 });
    await driver.add({ id: 'g', groupKey: 'n' });
    const types = await Promise.all(
      (await driver.redis.keys('*')).map(async (key) => [key, await driver.redis.type(key)] as const),
    );
    expect(Object.fromEntries(types)).toEqual({
      'asynq:queues': 'set',
      'asynq:{default}:pending': 'list',
      'asynq:{default}:scheduled': 'zset',
      'asynq:{default}:groups': 'set',
      'asynq:{default}:g:n': 'zset',
      'asynq:{default}:t:a': 'hash',
      'asynq:{default}:t:s': 'hash',
      'asynq:{default}:t:g': 'hash',
      [lock]: 'string',
    });
    const fields = async (id: string) => (await driver.redis.hkeys(driver.keys.task(id))).sort();
    expect(await fields('a')).toEqual(['msg', 'pending_since', 'state', 'unique_key']);
    expect(await fields('s')).toEqual(['msg', 'state']);
    expect(await fields('g')).toEqual(['group', 'msg', 'state']);
  });

  it('keeps the newest task at the head of pending and of active', async ({ driver }) => {
    await driver.enqueue(['a', 'b', 'c'].map((id) => request({ id })));
    expect(await driver.redis.lrange(driver.keys.pending, 0, -1)).toEqual(['c', 'b', 'a']);
    await driver.take(2);
    expect(await driver.redis.lrange(driver.keys.active, 0, -1)).toEqual(['b', 'a']);
  });

  it('writes pending_since as a whole number of nanoseconds', async ({ driver }) => {
    driver.clock.advance(7);
    const id = await driver.add();
    expect(await driver.redis.hget(driver.keys.task(id), 'pending_since')).toBe(`${driver.clock.now()}000000`);
  });

  it('sets an expiry on locks and daily counters only', async ({ driver }) => {
    await driver.takeNew({ uniqueKey: driver.keys.unique('t', undefined) }, { uniqueTtl: 60 });
    await driver.settle(archival(await driver.takeNew()));
    const lasting = [];
    for (const key of await driver.redis.keys('*')) if ((await driver.redis.ttl(key)) !== -1) lasting.push(key);
    const day = utcDay(driver.clock.now());
    const daily = [driver.keys.failedOn(day), driver.keys.processedOn(day)];
    expect(lasting.sort()).toEqual([...daily, driver.keys.unique('t', undefined)].sort());
  });

  it('lists a queue again in time when Redis has lost its list', async ({ driver }) => {
    await driver.add();
    await driver.redis.del(keyspace.queues);
    driver.clock.advance(60_000);
    await driver.add();
    await vi.waitFor(async () => expect(await driver.broker.inspection.queues()).toEqual(['default']));
  });
});

describe('the counters', () => {
  it('expire 90 days after their first increment, whatever comes later', async ({ driver }) => {
    const noon = Math.ceil(driver.clock.now() / 86_400_000) * 86_400_000 + 43_200_000;
    driver.clock.moveTo(noon);
    await driver.settle(done(await driver.takeNew()));
    driver.clock.advance(5000);
    await driver.settle(archival(await driver.takeNew()));
    const expiry = async (key: string) => Number(await driver.redis.call('EXPIRETIME', key));
    const days = 90 * 86_400;
    expect(await expiry(driver.keys.processedOn(utcDay(noon)))).toBe(noon / 1000 + days);
    expect(await expiry(driver.keys.failedOn(utcDay(noon)))).toBe(noon / 1000 + 5 + days);
  });

  it('start again at 1 where Go does: at the greatest int64, as a double', async ({ driver }) => {
    for (const total of ['9223372036854775807', '9223372036854775296']) {
      await driver.redis.set(driver.keys.processed, total);
      await driver.redis.set(driver.keys.failed, '7');
      await driver.settle(done(await driver.takeNew()));
      expect(await driver.redis.mget(driver.keys.processed, driver.keys.failed)).toEqual(['1', '7']);
      await driver.redis.set(driver.keys.processed, total);
      await driver.settle(retrial(await driver.takeNew(), driver.now));
      expect(await driver.redis.mget(driver.keys.processed, driver.keys.failed)).toEqual(['1', '1']);
    }
  });

  it('continue just below that limit, and across it in the middle of a batch', async ({ driver }) => {
    await driver.redis.set(driver.keys.processed, '9223372036854775294');
    await driver.settle(done(await driver.takeNew()));
    expect(await driver.redis.get(driver.keys.processed)).toBe('9223372036854775295');
    const tasks = await driver.takeNewMany(5);
    await driver.settle(...tasks.map(done));
    // One more reaches the double that stands for the maximum; the next starts again at 1.
    expect(await driver.redis.get(driver.keys.processed)).toBe('4');
    expect(await driver.redis.get(driver.keys.processedOn(utcDay(driver.clock.now())))).toBe('6');
  });
});

describe('what servers publish', () => {
  const info: ServerInfo = {
    host: 'h',
    pid: 42,
    serverId: 's',
    concurrency: 10,
    queues: { default: 6, low: 1 },
    strictPriority: true,
    status: 'active',
    startTime: 1_700_000_000_123,
    activeWorkerCount: 2,
  };
  const worker = (taskId: string): WorkerInfo => ({
    host: 'h',
    pid: 42,
    serverId: 's',
    taskId,
    taskType: 't',
    taskPayload: Buffer.from([0, 255]),
    queue: 'default',
    startTime: 1_700_000_000_123,
    deadline: 1_700_000_001_000,
  });
  const serverKey = keyspace.server('h', 42, 's');
  const workersKey = keyspace.serverWorkers('h', 42, 's');

  it('is where asynq’s tools read it, for the given time', async ({ driver }) => {
    driver.clock.advance(999);
    await driver.broker.monitoring.writeServerState(info, [worker('a'), worker('b')], 10);
    expect(await driver.redis.zrange(keyspace.servers, '0', '-1', 'WITHSCORES')).toEqual([
      serverKey,
      `${driver.now + 10}`,
    ]);
    expect(await driver.redis.zrange(keyspace.workers, '0', '-1', 'WITHSCORES')).toEqual([
      workersKey,
      `${driver.now + 10}`,
    ]);
    const stored = decodeServerInfo((await driver.redis.getBuffer(serverKey)) ?? Buffer.alloc(0));
    expect({ ...stored, queues: { ...stored.queues } }).toEqual(info);
    const workers = await driver.redis.hgetallBuffer(workersKey);
    expect(Object.keys(workers).sort()).toEqual(['a', 'b']);
    expect(decodeWorkerInfo(workers['a'] ?? Buffer.alloc(0))).toEqual(worker('a'));
    for (const key of [serverKey, workersKey]) {
      const left = await driver.redis.pttl(key);
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(10_000);
    }
  });

  it('removes the tasks that have ended since', async ({ driver }) => {
    await driver.broker.monitoring.writeServerState(info, [worker('a'), worker('b')], 10);
    await driver.broker.monitoring.writeServerState(info, [worker('b')], 10);
    expect(await driver.redis.hkeys(workersKey)).toEqual(['b']);
    await driver.broker.monitoring.writeServerState(info, [], 10);
    expect(await driver.redis.exists(workersKey)).toBe(0);
  });

  it('is removed when that server clears it, and only for that server', async ({ driver }) => {
    await driver.broker.monitoring.writeServerState(info, [worker('a')], 10);
    await driver.broker.monitoring.writeServerState({ ...info, serverId: 'other' }, [], 10);
    await driver.broker.monitoring.clearServerState(info);
    expect(await driver.redis.exists(serverKey, workersKey)).toBe(0);
    expect(await driver.redis.zrange(keyspace.servers, '0', '-1')).toEqual([keyspace.server('h', 42, 'other')]);
    expect(await driver.redis.zrange(keyspace.workers, '0', '-1')).toEqual([keyspace.serverWorkers('h', 42, 'other')]);
  });
});

describe('a key prefix', () => {
  const PREFIX = 'tenant:1';

  const openTenant = (driver: RedisDriver): RedisBroker => {
    const { host, port } = driver.redis.options;
    return new RedisBroker(new RedisConnections({ host, port }), { clock: driver.clock, keyPrefix: PREFIX });
  };

  it('separates tenants: tasks, locks, queues, pauses, counters and cancellations', async ({ driver }) => {
    const tenant = openTenant(driver);
    const received: string[] = [];
    const ends = [
      await driver.broker.cancellation.subscribeCancellations((id) => void received.push(`ours ${id}`)),
      await tenant.cancellation.subscribeCancellations((id) => void received.push(`theirs ${id}`)),
    ];
    const own = (prefix: string) => ({
      message: message({ id: 'same', uniqueKey: new Keyspace(prefix).queue('default').unique('t', undefined) }),
      uniqueTtl: 60,
    });
    expect(await tenant.producer.enqueue('default', [own(PREFIX)])).toEqual(['enqueued']);
    expect(await driver.enqueue([own(DEFAULT_KEY_PREFIX)])).toEqual(['enqueued']);
    await tenant.administration.pauseQueue('default');
    await tenant.cancellation.publishCancellation('a');
    await driver.broker.cancellation.publishCancellation('b');
    expect(await driver.settle(done(await driver.takeOne()))).toEqual(['settled']);
    await tenant.producer.enqueue('more', [request({ queue: 'more' })]);
    expect(await driver.broker.inspection.queues()).toEqual(['default']);
    expect((await tenant.inspection.queues()).sort()).toEqual(['default', 'more']);
    await vi.waitFor(() => expect([...received].sort()).toEqual(['ours b', 'theirs a']));
    const theirs = await dumpRedis([driver.redis], driver.clock, PREFIX);
    expect(theirs['default']).toMatchObject({ pending: ['same'], processed: 0, pausedAt: driver.now });
    expect(Object.keys(theirs['default']?.locks ?? {})).toEqual([`${PREFIX}:{default}:unique:t:`]);
    await expectQueue(driver, { pending: [], processed: 1, pausedAt: undefined, locks: {} });
    for (const end of ends) await end();
    await tenant.close();
  });

  it('starts every key that is written', async ({ driver }) => {
    const tenant = openTenant(driver);
    await tenant.producer.enqueue('q', [request(), request({}, { processAt: driver.now }), request({ groupKey: 'g' })]);
    await tenant.maintenance.forward('q');
    const { tasks } = await tenant.consumer.exchange('q', { settle: [], take: 9 });
    await tenant.consumer.exchange('q', { settle: tasks.map((task) => archival(task)), take: 0 });
    await tenant.monitoring.writeServerState(
      {
        host: 'h',
        pid: 1,
        serverId: 's',
        concurrency: 1,
        queues: {},
        strictPriority: false,
        status: 'active',
        startTime: 0,
        activeWorkerCount: 0,
      },
      [],
      10,
    );
    await tenant.administration.pauseQueue('q');
    const keys = await driver.redis.keys('*');
    expect(keys.length).toBeGreaterThan(10);
    expect(keys.filter((key) => !key.startsWith(`${PREFIX}:`))).toEqual([]);
    await tenant.close();
  });
});

describe('the information of Redis', () => {
  it('comes from INFO, also without CONFIG; it is empty where both are forbidden', async ({ driver }) => {
    const { broker, redis } = driver;
    await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
    await redis.acl('SETUSER', 'default', '-config');
    onTestFinished(async () => {
      await redis.acl('SETUSER', 'default', '+config', '+info');
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
    });
    expect(await broker.operations.storeInfo()).toMatchObject([{ evictionPolicy: 'volatile-lru' }]);
    await redis.acl('SETUSER', 'default', '-info');
    expect(await broker.operations.storeInfo()).toEqual([]);
  });

  it.for([-3600, 0, 3600])('includes the difference to our clock, which is %s s ahead', async (seconds, { driver }) => {
    const { host, port } = driver.redis.options;
    const clock = new ManualClock(Date.now() + seconds * 1000);
    const broker = new RedisBroker(new RedisConnections({ host: host!, port: port! }), { clock });
    onTestFinished(() => broker.close());
    const [info] = await broker.operations.storeInfo();
    expect(info!.ahead! / 1000 - seconds).toBeLessThanOrEqual(0); // the manual clock stands still meanwhile
    expect(info!.ahead! / 1000 - seconds).toBeGreaterThan(-5);
  });
});
