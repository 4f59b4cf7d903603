import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { RedisWakeSource } from '../../lib/broker/redis/wake-source.js';
import { slotOf } from '../../lib/broker/redis/connection/slot.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { type RedisCluster, startCluster, startSentinel } from '../support/redis.js';
import { connectionsTo, namesOf, observe, signal } from './support.js';

const keyspace = new Keyspace();
const pending = (queue: string): string => keyspace.queue(queue).pending;

function listener() {
  const notices: string[] = [];
  return {
    notices,
    onPending: (queue: string) => void notices.push(`pending ${queue}`),
    onDelayed: (queue: string) => void notices.push(`delayed ${queue}`),
    onLost: () => void notices.push('lost'),
  };
}

/** The name of a queue that the node at this index of three holds. */
function queueOn(index: number, not = ''): string {
  for (let number = 0; ; number++) {
    const queue = `queue${number}`;
    if (queue !== not && nodeOfSlot(slotOf(pending(queue))) === index) return queue;
  }
}

/** The index of the node that has the slot, unless it was moved. */
const nodeOfSlot = (slot: number): number => Math.min(2, Math.floor((slot * 3) / 16_384));

describe('RedisWakeSource in a cluster', () => {
  const queues = [queueOn(0), queueOn(1), queueOn(2), queueOn(0, queueOn(0))] as const;
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster(3);
  });
  afterAll(() => cluster.stop());
  beforeEach(async () => {
    for (const { port } of cluster.nodes) await observe(port).flushall();
  });

  const nodeOf = (index: number) => observe(cluster.nodes[index]?.port ?? 0);

  function watch() {
    const received = listener();
    const connections = connectionsTo({ cluster: cluster.nodes });
    const source = new RedisWakeSource(connections, keyspace, received);
    onTestFinished(() => source.close());
    return { source, received, connections };
  }

  it('receives notices of queues on every node, over one pair of connections to each', async () => {
    const { source, received } = watch();
    await nodeOf(1).lpush(pending(queues[1]), 'x');
    expect(await source.armPending(queues)).toEqual(
      new Map(queues.map((queue, index) => [queue, index === 1 ? 1 : 0])),
    );
    for (const index of [0, 1, 2]) {
      const names = await namesOf(nodeOf(index));
      expect(names.filter((name) => /:(track|notices)$/.test(name))).toEqual([
        'nestjs-asynq:notices',
        'nestjs-asynq:track',
      ]);
    }
    for (const [index, queue] of queues.entries()) await nodeOf(index % 3).lpush(pending(queue), 'x');
    await vi.waitFor(() =>
      expect(received.notices.toSorted()).toEqual(queues.map((queue) => `pending ${queue}`).sort()),
    );
  });

  it('returns the lowest score of all nodes', async () => {
    const { source, received } = watch();
    await nodeOf(0).zadd(keyspace.queue(queues[0]).retry, 1_700_000_900, 'x');
    await nodeOf(2).zadd(keyspace.queue(queues[2]).scheduled, 1_700_000_800, 'x');
    expect(await source.armDelayed(queues)).toBe(1_700_000_800);
    await nodeOf(1).zadd(keyspace.queue(queues[1]).scheduled, 1_700_000_700, 'x');
    await vi.waitFor(() => expect(received.notices).toEqual([`delayed ${queues[1]}`]));
  });

  it('reports lost once when a node is killed, and works when it is back', async () => {
    const { source, received } = watch();
    await source.armPending(queues);
    await cluster.killNode(1);
    await vi.waitFor(() => expect(received.notices).toEqual(['lost']));
    await expect(source.armPending(queues)).rejects.toThrow(/Redis is unavailable/);
    await cluster.processes[1]?.restart();
    await vi.waitFor(() => source.armPending(queues), { interval: 100 });
    await nodeOf(1).lpush(pending(queues[1]), 'x');
    await vi.waitFor(() => expect(received.notices).toContain(`pending ${queues[1]}`));
  });

  it('reports lost once when all nodes are killed, and works when they are back', async () => {
    const { source, received } = watch();
    await source.armPending(queues);
    await Promise.all(cluster.processes.map((process) => process.kill()));
    await vi.waitFor(() => expect(received.notices).toContain('lost'));
    await expect(source.armPending(queues)).rejects.toThrow(/Redis is unavailable/);
    await Promise.all(cluster.processes.map((process) => process.start()));
    await vi.waitFor(() => source.armPending(queues), { interval: 100 });
    expect(received.notices).toEqual(['lost']);
    await nodeOf(2).lpush(pending(queues[2]), 'x');
    await vi.waitFor(() => expect(received.notices).toEqual(['lost', `pending ${queues[2]}`]));
  });

  it('follows a slot that moves to another node', async () => {
    const { source, received } = watch();
    const queue = queueOn(0);
    await source.armPending([queue]);
    const slot = slotOf(pending(queue));
    const ids = await Promise.all([0, 1, 2].map((index) => nodeOf(index).cluster('MYID')));
    onTestFinished(() => move(slot, ids[0] as string));
    await move(slot, ids[2] as string);
    expect(await source.armPending([queue])).toEqual(new Map([[queue, 0]]));
    received.notices.length = 0;
    await nodeOf(2).lpush(pending(queue), 'x');
    await vi.waitFor(() => expect(received.notices).toEqual([`pending ${queue}`]));
    await nodeOf(2).del(pending(queue));
  });

  it('lets a busy server find tasks in a slot that has moved, and wakes it for them again', async () => {
    const [queue, busy] = [queueOn(0), queueOn(1)];
    const broker = new RedisBroker(connectionsTo({ cluster: cluster.nodes }));
    const put = (type: string, to: string) => broker.producer.enqueue(to, [request({ type, queue: to })]);
    const ran: string[] = [];
    let rounds = true;
    const handlers = [
      { pattern: 'round', handle: async () => void (rounds && (await put('round', busy))) },
      { pattern: 'task', handle: ({ id }: TaskContext) => void ran.push(id) },
    ];
    const options = {
      queues: [queue, busy],
      concurrency: 2,
      taskCheckInterval: 200,
      delayedTaskCheckInterval: 200,
    };
    const server = new Server({ broker, handlers, options });
    onTestFinished(() => server.shutdown());
    await server.start();
    const slot = slotOf(pending(queue));
    const ids = await Promise.all([0, 2].map((index) => nodeOf(index).cluster('MYID')));
    onTestFinished(async () => {
      await nodeOf(2).flushall();
      await move(slot, ids[0] as string);
    });
    const armed = (index: number) =>
      vi.waitFor(async () => {
        const keys = 4 + (nodeOfSlot(slotOf(keyspace.linked)) === index ? 1 : 0);
        expect(await nodeOf(index).info('stats')).toContain(`tracking_total_keys:${keys}\r`);
      });
    await armed(0);
    await put('round', busy);
    await move(slot, ids[1] as string);
    await put('task', queue);
    await vi.waitFor(() => expect(ran).toHaveLength(1));
    rounds = false;
    await armed(2);
    await put('task', queue);
    await vi.waitFor(() => expect(ran).toHaveLength(2));
  });

  it('lets a server run scheduled tasks of other queues while a node hangs', async () => {
    const [queue, hanging] = [queueOn(0), queueOn(1)];
    for (const index of [0, 1, 2]) await nodeOf(index).config('SET', 'cluster-require-full-coverage', 'no');
    const broker = new RedisBroker(connectionsTo({ cluster: cluster.nodes }));
    const ran = signal();
    const handlers = [{ pattern: 'task', handle: () => ran.fire() }];
    const server = new Server({ broker, handlers, options: { queues: [queue, hanging] } });
    onTestFinished(() => server.shutdown());
    await server.start();
    for (const name of [queue, hanging]) await broker.producer.enqueue(name, [request({ type: 'task', queue: name })]);
    await vi.waitFor(() => expect(ran.values).toHaveLength(2));
    const pid = cluster.processes[1]!.pid!;
    process.kill(pid, 'SIGSTOP');
    const thaw = () => void process.kill(pid, 'SIGCONT');
    onTestFinished(thaw);
    const scheduled = request({ type: 'task', queue }, { processAt: Math.floor(Date.now() / 1000) + 1 });
    await broker.producer.enqueue(queue, [scheduled]);
    await vi.waitFor(() => expect(ran.values).toHaveLength(3), 8_000); // a node that hangs is given up after ten seconds
    thaw();
    for (const index of [0, 1, 2]) {
      await vi.waitFor(async () => expect(await nodeOf(index).cluster('INFO')).toContain('cluster_state:ok'));
      await nodeOf(index).config('SET', 'cluster-require-full-coverage', 'yes');
    }
  });

  /** What nodes say of a slot with the epoch of before may still be on its way: the new owner gets one that is above theirs. */
  const move = async (slot: number, id: string): Promise<void> => {
    for (const { port } of cluster.nodes) {
      const node = observe(port);
      await node.cluster('SETSLOT', slot, 'NODE', id);
      if ((await node.cluster('MYID')) === id) await node.call('CLUSTER', 'BUMPEPOCH');
    }
  };
});

describe('RedisWakeSource with sentinels', () => {
  it('follows the master', { timeout: 240_000 }, async () => {
    const group = await startSentinel();
    onTestFinished(() => group.stop());
    const received = listener();
    const connections = connectionsTo({ sentinels: group.sentinels, name: group.name });
    const source = new RedisWakeSource(connections, keyspace, received);
    onTestFinished(() => source.close());
    await source.armPending(['default']);
    await group.master.kill();
    await vi.waitFor(() => expect(received.notices).toEqual(['lost']));
    await group.promoted();
    await vi.waitFor(() => source.armPending(['default']), { interval: 200 });
    await observe(group.replica.port).lpush(pending('default'), 'x');
    await vi.waitFor(() => expect(received.notices).toEqual(['lost', 'pending default']));
  });
});
