import type { Redis } from 'ioredis';
import { expect, it, onTestFinished, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { request } from '../support/messages.js';
import { startCluster, startSentinel } from '../support/redis.js';
import { connectionsTo, observe, ownServer } from './support.js';

const CALLS = 500;

/** Texts of scripts that this Redis has got. */
async function texts(client: Redis): Promise<number> {
  return Number(/^cmdstat_eval:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0);
}

/** Calls of one tick, each of its own. */
const enqueueMany = (broker: RedisBroker, queue = 'default'): Promise<unknown> =>
  Promise.all(Array.from({ length: CALLS }, () => broker.producer.enqueue(queue, [request({ queue })])));

const ALL_ENQUEUED = Array.from({ length: CALLS }, () => ['enqueued']);

async function setUp(): Promise<{ client: Redis; broker: RedisBroker }> {
  const { port } = await ownServer();
  const broker = new RedisBroker(connectionsTo({ host: '127.0.0.1', port }));
  await broker.producer.enqueue('default', [request()]);
  return { client: observe(port), broker };
}

it('one call of many sends the text of a script that Redis has lost', async () => {
  const { client, broker } = await setUp();
  for (let flush = 1; flush <= 3; flush++) {
    await client.script('FLUSH');
    expect(await enqueueMany(broker)).toEqual(ALL_ENQUEUED);
    expect(await texts(client)).toBe(1 + flush);
  }
});

it('a text that is refused does not keep the next one from being sent', async () => {
  const { client, broker } = await setUp();
  await client.script('FLUSH');
  await client.call('ACL', 'SETUSER', 'default', '-eval');
  await expect(enqueueMany(broker)).rejects.toThrow(/eval/);
  await client.call('ACL', 'SETUSER', 'default', '+eval');
  expect(await enqueueMany(broker)).toEqual(ALL_ENQUEUED);
});

it('each node of a cluster gets the text once, a new master too', async () => {
  const cluster = await startCluster(3, { replicas: 1 });
  onTestFinished(() => cluster.stop());
  const broker = new RedisBroker(connectionsTo({ cluster: cluster.nodes }));
  const queues = ['default', 'a', 'b', 'c', 'd', 'e', 'f'];
  const clients = cluster.processes.map(({ port }) => observe(port));
  const enqueue = () => Promise.all(queues.map((queue) => enqueueMany(broker, queue)));
  await enqueue();
  expect(await Promise.all(clients.map(texts))).toEqual([1, 1, 1, 0, 0, 0]);
  await cluster.failOver(0);
  const before = await Promise.all(clients.map(texts));
  await enqueue();
  const after = await Promise.all(clients.map(texts));
  const sent = after.map((count, index) => count - before[index]!);
  expect(sent.toSpliced(3, 1)).toEqual([0, 0, 0, 0, 0]);
  // Another one when the client learns meanwhile that the slots have moved.
  expect([1, 2]).toContain(sent[3]);
});

it('a replica that became the master gets the text once', { timeout: 240_000 }, async () => {
  const group = await startSentinel();
  onTestFinished(() => group.stop());
  const input = { sentinels: group.sentinels, name: group.name };
  const broker = new RedisBroker(connectionsTo(input));
  expect(await enqueueMany(broker)).toEqual(ALL_ENQUEUED);
  await group.master.kill();
  // Of the calls that go on at the new master, and of those that the old one has lost.
  await Promise.allSettled(Array.from({ length: CALLS }, () => broker.producer.enqueue('default', [request()])));
  await group.promoted();
  await vi.waitFor(() => broker.producer.enqueue('default', [request()]));
  const client = observe(group.replica.port);
  expect(await texts(client)).toBe(1);
  expect(await enqueueMany(broker)).toEqual(ALL_ENQUEUED);
  expect(await texts(client)).toBe(1);
});
