import type { Redis } from 'ioredis';
import { beforeEach, expect, it } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { decodeWorkerInfo } from '../../lib/wire/codec.js';
import { Keyspace } from '../../lib/wire/keys.js';
import type { WorkerInfo } from '../../lib/wire/message.js';
import { connectionsTo, observe, ownServer } from './support.js';

const SIZE = 100_000;
const of = { host: 'h', pid: 42, serverId: 's' };
const server = { ...of, concurrency: 99, queues: {}, strictPriority: false, status: 'active', startTime: 0 };
const { workers: INDEX } = new Keyspace('asynq');
const KEY = `${INDEX}:{h:42:s}`;

const worker = (taskId: string, partial: Partial<WorkerInfo> = {}): WorkerInfo => ({
  ...of,
  taskId,
  taskType: 't',
  taskPayload: Buffer.alloc(SIZE, taskId),
  queue: 'default',
  startTime: 1_700_000_000_000,
  deadline: 1_700_000_001_000,
  ...partial,
});

let client: Redis;
let publish: (...workers: WorkerInfo[]) => Promise<number>;

/** What is published, by id of task. */
async function published(): Promise<Record<string, WorkerInfo>> {
  const fields = await client.hgetallBuffer(KEY);
  return Object.fromEntries(Object.entries(fields).map(([id, bytes]) => [id, decodeWorkerInfo(bytes)]));
}

beforeEach(async () => {
  const { port } = await ownServer();
  client = observe(port);
  const { monitoring } = new RedisBroker(connectionsTo({ host: '127.0.0.1', port }));
  const received = async (): Promise<number> =>
    Number(/^total_net_input_bytes:(\d+)/m.exec(await client.info('stats'))![1]);
  /** Returns the bytes that were sent. */
  publish = async (...workers) => {
    const before = await received();
    await monitoring.writeServerState({ ...server, activeWorkerCount: workers.length }, workers, 10);
    return (await received()) - before;
  };
});

it('sends only the tasks that have started or ended since the last time', async () => {
  const [a, b, c] = [worker('a'), worker('b'), worker('c')];
  expect(await publish(a, b)).toBeGreaterThan(2 * SIZE);
  expect(await publish(a, b)).toBeLessThan(5_000);
  expect(await published()).toEqual({ a, b });
  const sent = await publish(b, c);
  expect(sent).toBeGreaterThan(SIZE);
  expect(sent).toBeLessThan(SIZE + 5_000);
  expect(await published()).toEqual({ b, c });
  expect(await publish()).toBeLessThan(5_000);
  expect(await client.exists(KEY)).toBe(0);
});

it('keeps what has not changed from expiring', async () => {
  await publish(worker('a'));
  await client.pexpire(KEY, 100_000);
  await publish(worker('a'));
  // It has the ten seconds of the others again.
  expect(await client.pttl(KEY)).toBeLessThanOrEqual(10_000);
  expect(await client.exists(KEY)).toBe(1);
});

it('sends the next attempt of a task, and a task of the same id in another queue', async () => {
  await publish(worker('a'));
  const again = worker('a', { startTime: 1_700_000_009_000 });
  await publish(again);
  expect(await published()).toEqual({ a: again });
  const other = worker('a', { queue: 'other', startTime: again.startTime });
  await publish(other);
  expect(await published()).toEqual({ a: other });
});

it.each([
  ['is gone', () => client.del(KEY)],
  ['has lost a task', () => client.hdel(KEY, 'a')],
  ['has tasks of somebody else', () => client.hset(KEY, 'x', 'x')],
  ['has another type', async () => (await client.del(KEY), client.set(KEY, 'x'))],
])('publishes all again when the key %s', async (_, damage) => {
  const [a, b] = [worker('a'), worker('b')];
  await publish(a, b);
  await damage();
  await publish(a, b);
  expect(await published()).toEqual({ a, b });
});

it('publishes all again after a failure', async () => {
  const [a, b] = [worker('a'), worker('b')];
  await publish(a);
  await client.call('ACL', 'SETUSER', 'default', '-evalsha');
  await expect(publish(a, b)).rejects.toThrow(/evalsha/i);
  await client.call('ACL', 'SETUSER', 'default', '+evalsha');
  await publish(b);
  expect(await published()).toEqual({ b });
});

it('sends about a megabyte a call, and holds Redis only briefly', async () => {
  const workers = Array.from({ length: 50 }, (_, n) => worker(`task ${n}`));
  workers.push(worker('large', { taskPayload: Buffer.alloc(3_000_000) }));
  await publish();
  await client.config('RESETSTAT');
  await publish(...workers);
  const calls = Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await client.info('commandstats'))![1]);
  expect(calls).toBe(6); // ten tasks each, and the large one
  expect(Object.keys(await published())).toHaveLength(51);
});
