import { Redis } from 'ioredis';
import { until } from './redis-process.js';
import { type RedisProcess, startRedis } from './redis-server.js';

const SLOTS = 16_384;

export interface RedisCluster {
  readonly nodes: { host: string; port: number }[];
  readonly processes: RedisProcess[];
  /**
   * SIGKILL to the node at this index; there are no replicas, so its slots are gone until
   * `processes[index].restart()`.
   */
  killNode(index: number): Promise<void>;
  stop(): Promise<void>;
}

const bounds = (index: number, count: number): [number, number] => [
  Math.floor((SLOTS * index) / count),
  Math.floor((SLOTS * (index + 1)) / count) - 1,
];

async function assignSlots(node: Redis, index: number, count: number): Promise<void> {
  const [first, last] = bounds(index, count);
  try {
    await node.call('CLUSTER', 'ADDSLOTSRANGE', first, last);
  } catch {
    // Redis 6 does not know ranges.
    const slots = Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
    await node.call('CLUSTER', 'ADDSLOTS', ...slots);
  }
}

async function isComplete(node: Redis, count: number): Promise<boolean> {
  const info = String(await node.call('CLUSTER', 'INFO'));
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}\r`);
}

async function join(processes: readonly RedisProcess[], clients: readonly Redis[]): Promise<void> {
  const count = clients.length;
  for (const [index, client] of clients.entries()) {
    await assignSlots(client, index, count);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  }
  for (const other of processes.slice(1)) await clients[0]?.call('CLUSTER', 'MEET', other.host, other.port);
  for (const client of clients) await until('the cluster is complete', () => isComplete(client, count), 30_000);
}

/**
 * Starts masters that share all slots; resolves when every node says `cluster_state:ok` (a good two
 * seconds).
 */
export async function startCluster(nodes = 3): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-node-timeout', '2000'];
  const processes: RedisProcess[] = [];
  for (let index = 0; index < nodes; index++) processes.push(await startRedis({ args }));
  const stop = async (): Promise<void> => void (await Promise.all(processes.map((process) => process.stop())));
  const clients = processes.map(({ host, port }) => new Redis({ host, port }));
  try {
    await join(processes, clients);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
  return {
    nodes: processes.map(({ host, port }) => ({ host, port })),
    processes,
    killNode: async (index) => processes[index]?.kill(),
    stop,
  };
}
