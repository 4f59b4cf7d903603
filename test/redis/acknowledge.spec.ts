import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import type { EnqueueOptions } from '../../lib/client/types.js';
import type { AsynqClientOptions } from '../../lib/client/client-options.js';
import { AcknowledgeTimeoutError, InvalidOptionError } from '../../lib/errors.js';
import { defineTask } from '../../lib/task/definition.js';
import { startCluster, startRedis, type RedisProcess } from '../support/redis.js';
import { until } from '../support/redis-process.js';
import { startProxy } from './proxy.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const connect = (server: { host: string; port: number }): Redis => {
  const redis = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  return redis;
};

function clientOf({ host, port }: { host: string; port: number }, options: AsynqClientOptions = {}) {
  const broker = new RedisBroker(new RedisConnections({ host, port }));
  const client = new AsynqClient(broker, options);
  onTestFinished(async () => {
    await client.close();
    await broker.close();
  });
  return { client, broker };
}

/** Of calls that are to be acknowledged, however slow the machine is. */
const PATIENT = { acknowledge: { timeout: '5s' } } as const;

/** Resolves when the replica has all that the master has. */
const inStep = (replica: Redis, master: Redis): Promise<void> =>
  until('the replica is in step', async () => {
    const info = await replica.info('replication');
    return info.includes('master_link_status:up') && (await master.wait(1, 100)) === 1;
  });

describe('acknowledge', () => {
  let master: RedisProcess;
  let replica: RedisProcess;

  beforeAll(async () => {
    master = await startRedis({ args: ['--repl-diskless-sync-delay', '0', '--repl-timeout', '600'] });
    replica = await startRedis({
      args: [
        '--replicaof',
        `${master.host} ${master.port}`,
        '--repl-timeout',
        '600',
        '--replica-serve-stale-data',
        'yes',
      ],
    });
  });
  afterAll(() => Promise.all([master.stop(), replica.stop()]));
  beforeEach(async () => {
    await connect(master).flushall();
    await inStep(connect(replica), connect(master));
  });

  /** Stops the replica as a lost network does, until the returned function is called. */
  const freeze = () => {
    const { pid } = replica;
    process.kill(pid!, 'SIGSTOP');
    const thaw = () => void process.kill(pid!, 'SIGCONT');
    onTestFinished(thaw);
    return thaw;
  };

  it.each([
    ['of the client', { acknowledge: {} }, {}, undefined],
    ['of the definition', {}, { acknowledge: { replicas: 1 } }, undefined],
    ['of the call', {}, {}, { acknowledge: { timeout: '3s' as const } }],
  ])('waits until the replica has the task, as an option %s', async (_, options, ofDefinition, ofCall) => {
    const { client } = clientOf(master, options);
    const { id } = await client.enqueue(defineTask<number>('t', ofDefinition), 1, ofCall);
    expect(await connect(replica).exists(`asynq:{default}:t:${id}`)).toBe(1);
    expect(await connect(replica).lrange('asynq:{default}:pending', 0, -1)).toEqual([id]);
  });

  it('says what is not known after its time, and the task is stored', async () => {
    const { client, broker } = clientOf(master, { acknowledge: { timeout: 100 } });
    const thaw = freeze();
    const error = await client.enqueue('t', 1, { taskId: 'kept' }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AcknowledgeTimeoutError);
    expect(error).toMatchObject({
      code: 'ASYNQ_ACKNOWLEDGE_TIMEOUT',
      task: { id: 'kept', queue: 'default', state: 'pending' },
      wanted: { replicas: 1, disk: false, timeout: 100 },
      found: { replicas: 0 },
      message:
        'task "t" kept is stored in queue "default", but after 100 ms only these are known to have it: 0 of 1 replicas ' +
        '(acknowledge). A failover may lose it. To be sure, enqueue it again under its id',
    });
    expect((await broker.inspection.getTask('default', 'kept'))?.state).toBe('pending');
    thaw();
    await client.enqueue('t', 2, PATIENT);
  });

  it.each<EnqueueOptions<unknown>>([
    { key: 'k', once: '1h' },
    { key: 'k', throttle: '1h' },
    { unique: { for: '1h', onDuplicate: 'existing' } },
    { unique: { for: '1h', onDuplicate: 'replace' } },
    { key: 'k', latest: true },
    { key: 'k', debounce: { wait: '1h' } },
    { key: 'k', supersede: true },
  ])('waits for a task that is there already, and for one that a call changes: %o', async (mode) => {
    const { client } = clientOf(master);
    const { client: waiting } = clientOf(master, { acknowledge: { timeout: 200 } });
    const { id } = await waiting.enqueue('t', 1, { ...mode, ...PATIENT }); // the replica has this
    const thaw = freeze();
    await client.enqueue('t', 1, { ...mode, key: mode.key && 'other' }).catch(() => undefined);
    const other = { ...mode, key: mode.key && 'other' };
    const missed = await waiting.enqueue('t', 1, other).catch((error: unknown) => error);
    expect(missed).toBeInstanceOf(AcknowledgeTimeoutError);
    expect(missed).toMatchObject({ task: { created: false }, found: { replicas: 0 } });
    thaw();
    const again = await waiting.enqueue('t', 1, { ...mode, ...PATIENT });
    expect(again).toMatchObject({ id, created: false });
  });

  describe('after a lost reply', () => {
    const changes = async () =>
      Number(/rdb_changes_since_last_save:(\d+)/.exec(await connect(master).info('persistence'))![1]);

    /** A client whose next call is done, while its reply is lost, with the connection. The replica has nothing of it. */
    async function lossy(call: (client: AsynqClient) => Promise<unknown>) {
      const proxy = await startProxy(master.port);
      const { client } = clientOf({ host: '127.0.0.1', port: proxy.port }, { acknowledge: { timeout: 300 } });
      await client.enqueue('warm', 1, { processIn: '1h', ...PATIENT }); // connects, and lists the queue
      freeze();
      const before = await changes();
      proxy.holdReplies();
      const lost = call(client).catch((error: unknown) => error);
      await until('Redis has done it', async () => (await changes()) > before);
      const after = await changes();
      proxy.cut();
      return { error: await lost, writes: (await changes()) - after };
    }

    it.each<EnqueueOptions<unknown>>([
      {},
      { taskId: 'mine' },
      { unique: '1h' },
      { key: 'k', once: '1h' },
      { key: 'k', throttle: '1h' },
      { unique: { for: '1h', onDuplicate: 'existing' } },
      { unique: { for: '1h', onDuplicate: 'replace' } },
      { key: 'k', latest: true },
      { key: 'k', debounce: { wait: '1h' } },
      { key: 'k', supersede: true },
    ])('says no more of a new task than is known: %o', async (mode) => {
      const { error, writes } = await lossy((client) => client.enqueue('t', 1, mode));
      expect(error).toBeInstanceOf(AcknowledgeTimeoutError);
      expect(error).toMatchObject({ task: { created: true }, found: { replicas: 0 } });
      // Redis 7.2 and later wait for the writes of this connection alone.
      expect(writes).toBeGreaterThan(0);
      expect(await connect(master).llen('asynq:{default}:pending')).toBe(mode.debounce ? 0 : 1);
    });

    it.each<EnqueueOptions<unknown>>([
      { unique: { for: '1h', by: 'key', onDuplicate: 'replace' } },
      { latest: true },
      { debounce: { wait: '1h' } },
      { supersede: true },
    ])('says no more of a task that the call has changed than is known: %o', async (mode) => {
      const { client } = clientOf(master);
      const { id } = await client.enqueue('t', 1, { key: 'k', ...mode });
      const { error, writes } = await lossy((other) => other.enqueue('t', 2, { key: 'k', ...mode }));
      expect(error).toBeInstanceOf(AcknowledgeTimeoutError);
      expect(error).toMatchObject({ task: { id, created: false }, found: { replicas: 0 } });
      expect(writes).toBeGreaterThan(0);
    });
  });

  it('makes nobody wait who has not asked', async () => {
    const { client } = clientOf(master);
    const thaw = freeze();
    const ended: string[] = [];
    const slow = client.enqueue('t', 1, PATIENT).finally(() => ended.push('slow'));
    await Promise.all(Array.from({ length: 20 }, (_, n) => client.enqueue('t', n)));
    await client.enqueue('t', 1, { acknowledge: false });
    ended.push('others');
    thaw();
    await slow;
    expect(ended).toEqual(['others', 'slow']);
  });

  it('waits once for all of a tick, and collects what comes meanwhile', async () => {
    const { client } = clientOf(master, { acknowledge: {} });
    const calls = async () =>
      Number(/cmdstat_wait:calls=(\d+)/.exec(await connect(master).info('commandstats'))?.[1] ?? 0);
    await client.enqueue('t', 0);
    const before = await calls();
    await Promise.all(Array.from({ length: 200 }, (_, n) => client.enqueue('t', n)));
    expect((await calls()) - before).toBe(1);
    const thaw = freeze();
    const first = client.enqueue('t', 1);
    const waiting: Promise<unknown>[] = [];
    for (let n = 0; n < 50; n++) {
      await new Promise((resolve) => setImmediate(resolve));
      waiting.push(client.enqueue('t', n));
    }
    thaw();
    await Promise.all([first, ...waiting]);
    expect((await calls()) - before).toBeLessThanOrEqual(4);
  });

  it('says of each task of enqueueMany whether it is acknowledged', async () => {
    const { client } = clientOf(master);
    const options = { acknowledge: { timeout: 100 } };
    expect((await client.enqueueMany('t', [1, 2, 3], PATIENT)).every(({ ok }) => ok)).toBe(true);
    freeze();
    const results = await client.enqueueMany('t', [1, 2], { ...options, taskId: 'one' });
    expect(results.map(({ error }) => (error as { code?: string }).code)).toEqual([
      'ASYNQ_ACKNOWLEDGE_TIMEOUT',
      'ASYNQ_TASK_ID_CONFLICT',
    ]);
  });

  it('keeps the bound of a queue', async () => {
    const { client } = clientOf(master, { acknowledge: {}, queues: { default: { maxPending: 1 } } });
    await client.enqueue('t', 1);
    await expect(client.enqueue('t', 2)).rejects.toMatchObject({ code: 'ASYNQ_QUEUE_FULL', pending: 1 });
  });

  it('waits for what others have written when the call stores nothing, where Redis does', async () => {
    const { broker } = clientOf(master);
    const [, major, minor] = /redis_version:(\d+)\.(\d+)/.exec(await connect(master).info('server'))!;
    const waitsForOthers = Number(major) < 7 || (Number(major) === 7 && Number(minor) < 2);
    freeze();
    await connect(master).set('written', 'before'); // which the replica has not
    const wish = { replicas: 1, disk: false, timeout: 100 };
    const reply = await broker.producer.enqueueAcknowledged('default', [], wish);
    expect(reply).toMatchObject(waitsForOthers ? { replicas: 0, isEnough: false } : { replicas: 1, isEnough: true });
  });

  it.each<EnqueueOptions<unknown>>([{ taskId: 'taken' }, { unique: '1h' }])(
    'promises nothing of a task that is there and that the call has not stored: %o',
    async (options) => {
      const { client } = clientOf(master);
      const { client: waiting } = clientOf(master, { acknowledge: { timeout: 100 } });
      freeze();
      await client.enqueue('t', 1, options); // which the replica has not
      // The call writes nothing. Redis 7.2 and later then wait for nothing, older ones for what others have written.
      const code = options.taskId ? 'ASYNQ_TASK_ID_CONFLICT' : 'ASYNQ_DUPLICATE_TASK';
      await expect(waiting.enqueue('t', 1, options)).rejects.toMatchObject({ code });
    },
  );

  it('refuses to wait for the disk where Redis cannot, before anything is written', async () => {
    const { client } = clientOf(master);
    const version = /redis_version:(\S+)/.exec(await connect(master).info('server'))![1]!;
    const refused = client.enqueue('t', 1, { acknowledge: { disk: true } });
    await expect(refused).rejects.toBeInstanceOf(InvalidOptionError);
    await expect(refused).rejects.toThrow(
      /^acknowledge: the Redis of queue "default" cannot wait for its disk: .* disk: true needs Redis 7\.2 or later with appendonly yes/,
    );
    expect(await connect(master).exists('asynq:{default}:pending'), `Redis ${version}`).toBe(0);
  });

  it('waits for the disk with Redis 7.2 or later, and refuses to with an older one', async () => {
    const server = await startRedis({ appendOnly: true, args: ['--appendfsync', 'always'] });
    onTestFinished(() => server.stop());
    const { client } = clientOf(server);
    const version = /redis_version:(\d+)\.(\d+)/.exec(await connect(server).info('server'))!;
    if (Number(version[1]) * 100 + Number(version[2]) < 702) {
      console.warn(`NOT TESTED HERE: that a call waits for the disk. WAITAOF needs Redis 7.2, this is ${version[0]}`);
      const refused = client.enqueue('t', 1, { acknowledge: { disk: true } });
      return expect(refused).rejects.toThrow('disk: true needs Redis 7.2 or later');
    }
    const { id } = await client.enqueue('t', 1, { acknowledge: { disk: true } });
    await server.restart();
    expect(await connect(server).exists(`asynq:{default}:t:${id}`)).toBe(1);
    const tooMany = client.enqueue('t', 1, { acknowledge: { disk: true, replicas: 1, timeout: 50 } });
    await expect(tooMany).rejects.toMatchObject({ found: { replicas: 0, disk: true } });
  });

  it('loses nothing that was acknowledged in a failover', async () => {
    const old = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
    const next = await startRedis({ args: ['--replicaof', `${old.host} ${old.port}`] });
    onTestFinished(() => Promise.all([old.stop(), next.stop()]).then(() => undefined));
    await inStep(connect(next), connect(old));
    const { client } = clientOf(old, { acknowledge: { timeout: '1s' } });
    const acknowledged: string[] = [];
    let isOver = false;
    const workers = Array.from({ length: 10 }, async (_, worker) => {
      for (let n = 0; !isOver; n++) {
        const taskId = `${worker}-${n}`;
        await client.enqueue('t', n, { taskId }).then(
          () => acknowledged.push(taskId),
          () => undefined,
        );
      }
    });
    await until('some are stored', async () => acknowledged.length > 300, 60_000);
    process.kill(next.pid!, 'SIGSTOP'); // from here on nothing reaches the replica
    const options = { taskId: 'late', acknowledge: { timeout: 50 } };
    const late = await client.enqueue('t', 0, options).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(AcknowledgeTimeoutError);
    await old.kill();
    isOver = true;
    process.kill(next.pid!, 'SIGCONT');
    const promoted = connect(next);
    await promoted.replicaof('NO', 'ONE');
    const kept = new Set(await promoted.lrange('asynq:{default}:pending', 0, -1));
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
    await Promise.all(workers);
  });
});

describe('in a cluster', () => {
  it('waits for the replica of the queue', async () => {
    const cluster = await startCluster(3, { replicas: 1 });
    onTestFinished(() => cluster.stop());
    const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
    const client = new AsynqClient(broker, PATIENT);
    onTestFinished(async () => {
      await client.close();
      await broker.close();
    });
    for (const queue of ['a', 'b', 'c', 'd', 'e']) await client.enqueue('t', 1, { queue, taskId: queue });
    for (const queue of ['a', 'b', 'c', 'd', 'e']) {
      expect((await broker.inspection.getTask(queue, queue))?.state).toBe('pending');
    }
    const tooMany = () => client.enqueue('t', 1, { queue: 'f', acknowledge: { replicas: 2, timeout: 50 } });
    // The one that there is may need longer.
    await expect.poll(() => tooMany().catch((error: unknown) => error)).toMatchObject({ found: { replicas: 1 } });
  });
});
