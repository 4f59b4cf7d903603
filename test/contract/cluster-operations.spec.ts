import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { InvalidOptionError } from '../../lib/errors.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { type RedisCluster, startCluster } from '../support/redis.js';

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster(3);
});

afterAll(() => cluster.stop());

it.each(['default', 'low', 'ü', 'a {b}', 'x}y', 'critical:eu'])(
  'returns the slot of the queue %j, and the node that holds its tasks',
  async (queue) => {
    const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
    onTestFinished(() => broker.close());
    const inspector = new AsynqInspector(broker);
    await broker.producer.enqueue(queue, [request({ id: 'a', queue })]);
    const key = new Keyspace().queue(queue).task('a');

    const nodes = cluster.nodes.map(({ host, port }) => ({
      name: `${host}:${port}`,
      redis: new Redis({ host, port }),
    }));
    onTestFinished(() => nodes.forEach(({ redis }) => redis.disconnect()));
    const slot = Number(await nodes[0]!.redis.call('CLUSTER', 'KEYSLOT', key));
    const holders = [];
    for (const { name, redis } of nodes) {
      if (Number(await redis.call('CLUSTER', 'COUNTKEYSINSLOT', slot)) > 0) holders.push(name);
    }
    expect(holders).toHaveLength(1);
    expect(await inspector.clusterKeySlot(queue)).toBe(slot);
    expect(await inspector.clusterNodes(queue)).toEqual(holders);
  },
);

it('returns the information of Redis, master by master', async () => {
  const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
  onTestFinished(() => broker.close());
  const { address, nodes, cluster: whole } = (await new AsynqInspector(broker).redisInfo())!;
  expect(nodes.map((node) => node.address)).toEqual(
    cluster.nodes.map(({ host, port }) => `${host}:${port}`).toSorted(),
  );
  expect(new Set(nodes.map(({ info }) => /^tcp_port:(\d+)/m.exec(info)?.[1]))).toEqual(
    new Set(cluster.nodes.map(({ port }) => String(port))),
  );
  expect(address).toContain(String(cluster.nodes[0]!.port));
  expect(whole?.info).toContain('cluster_state:ok');
  expect(whole?.nodes.match(/ master /g)).toHaveLength(cluster.nodes.length - 1);
});

it('returns version, eviction policy and time of every master', async () => {
  const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
  onTestFinished(() => broker.close());
  const info = await broker.operations.storeInfo();
  expect(info.map(({ address }) => address)).toEqual(
    cluster.nodes.map(({ host, port }) => `${host}:${port}`).toSorted(),
  );
  for (const { version, evictionPolicy, ahead } of info) {
    expect(Math.abs(ahead!)).toBeLessThan(5_000); // a slow reply counts as a difference
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(evictionPolicy).toBe('noeviction');
  }
});

it('replies to a ping as long as one master does', async () => {
  const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
  onTestFinished(() => broker.close());
  await broker.monitoring.ping();
  for (const { pid } of cluster.processes.slice(0, 2)) {
    process.kill(pid!, 'SIGSTOP');
    onTestFinished(() => void process.kill(pid!, 'SIGCONT'));
  }
  for (let time = 0; time < 20; time++) await expect(broker.monitoring.ping()).resolves.toBeUndefined();
});

it('returns where a queue will be that does not exist yet, and rejects a blank name', async () => {
  const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
  onTestFinished(() => broker.close());
  const inspector = new AsynqInspector(broker);
  expect(await inspector.clusterKeySlot('new')).toBeTypeOf('number');
  expect(await inspector.clusterNodes('new')).toHaveLength(1);
  await expect(inspector.clusterKeySlot(' ')).rejects.toThrow(InvalidOptionError);
  await expect(inspector.clusterNodes('')).rejects.toThrow(InvalidOptionError);
});

it('reports a name that no slot can hold as a bad name, not as an outage', async () => {
  const broker = new RedisBroker(new RedisConnections({ cluster: cluster.nodes }));
  onTestFinished(() => broker.close());
  const queue = '}x';
  const why = /a cluster cannot keep this queue: .* empty or begins with a brace/;
  for (const call of [
    () => broker.inspection.describeQueue(queue),
    () => broker.inspection.countsOfDays(queue, ['2030-01-01', '2030-01-02', '2030-01-03']),
    () => broker.producer.enqueue(queue, [request({ queue })]),
    () => broker.administration.deleteQueue(queue, { force: true }),
  ]) {
    await expect(call()).rejects.toThrow(InvalidOptionError);
    await expect(call()).rejects.toThrow(why);
  }
});
