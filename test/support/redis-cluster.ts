import { Redis } from 'ioredis';
import { until } from './redis-process.js';
import { type RedisProcess, startRedis } from './redis-server.js';

const SLOTS = 16_384;

export interface ClusterOptions {
  /** Of each master. Default 0. */
  replicas?: 0 | 1;
}

export interface RedisCluster {
  /** The masters of the beginning. */
  readonly nodes: { host: string; port: number }[];
  /** Masters, then their replicas in the same order. */
  readonly processes: RedisProcess[];
  /**
   * SIGKILL to the node at this index. Without replicas its slots are gone until
   * `processes[index].restart()`.
   */
  killNode(index: number): Promise<void>;
  /** Makes the replica of the part at this index its master, and the master the replica; no write is lost. */
  failOver(index: number): Promise<void>;
  /**
   * SIGKILL to the master of the part at this index. Resolves when its replica has taken over (what had not reached it is lost)
   * and the killed one is the replica.
   */
  killMaster(index: number): Promise<void>;
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

async function replicate(master: Redis, replica: Redis): Promise<void> {
  const id = await master.call('CLUSTER', 'MYID');
  // It must have heard of its master first.
  await until('a replica has joined', async () => (await replica.call('CLUSTER', 'REPLICATE', String(id))) === 'OK');
  await until(
    'a replica is in step',
    async () => /slave0:.*state=online/.test(await master.info('replication')),
    30_000,
  );
}

async function join(processes: readonly RedisProcess[], clients: readonly Redis[], masters: number): Promise<void> {
  for (const [index, client] of clients.entries()) {
    if (index < masters) await assignSlots(client, index, masters);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  }
  for (const other of processes.slice(1)) await clients[0]?.call('CLUSTER', 'MEET', other.host, other.port);
  const replicas = clients.slice(masters);
  await Promise.all(replicas.map((replica, index) => replicate(clients[index]!, replica)));
  for (const client of clients)
    await until('the cluster is complete', () => isComplete(client, clients.length), 30_000);
}

const isMaster = async (client: Redis): Promise<boolean> => (await client.role())[0] === 'master';

/** Calls back with a client of the master of a pair and one of its replica, which is in step. */
async function withPair(
  pair: readonly RedisProcess[],
  callback: (master: Redis, replica: Redis, masterProcess: RedisProcess) => Promise<void>,
): Promise<void> {
  const clients = pair.map(({ host, port }) => new Redis({ host, port }));
  for (const client of clients) client.on('error', () => undefined);
  try {
    const at = (await isMaster(clients[0]!)) ? 0 : 1;
    const [master, replica] = [clients[at]!, clients[1 - at]!];
    await untilInStep(replica);
    await callback(master, replica, pair[at]!);
  } finally {
    for (const client of clients) client.disconnect();
  }
}

const untilInStep = (replica: Redis): Promise<void> =>
  until('the replica is in step', async () => (await replica.info('replication')).includes('link_status:up'), 30_000);

const failOver = (pair: readonly RedisProcess[]): Promise<void> =>
  withPair(pair, async (master, replica) => {
    const isOver = async (): Promise<boolean> => (await isMaster(replica)) && !(await isMaster(master));
    await until('the replica is the master', async () => {
      // Refused, or given up after five seconds, when a vote is missing.
      if (!(await isMaster(replica))) await replica.call('CLUSTER', 'FAILOVER');
      await until('the failover is over', isOver, 6_000);
      return true;
    });
  });

const killMaster = (pair: readonly RedisProcess[]): Promise<void> =>
  withPair(pair, async (master, replica, process) => {
    await process.kill();
    await until('the replica is the master', () => isMaster(replica), 30_000);
    await process.start();
    await until('the killed master is a replica', async () => !(await isMaster(master)), 30_000);
    await untilInStep(master);
  });

/**
 * Starts masters that share all slots, with their replicas; resolves when every node says
 * `cluster_state:ok` (a good two seconds).
 */
export async function startCluster(nodes = 3, { replicas = 0 }: ClusterOptions = {}): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-node-timeout', '2000'];
  args.push('--repl-diskless-sync-delay', '0'); // else a replica waits five seconds for others
  const processes: RedisProcess[] = [];
  for (let index = 0; index < nodes * (1 + replicas); index++) processes.push(await startRedis({ args }));
  const stop = async (): Promise<void> => void (await Promise.all(processes.map((process) => process.stop())));
  const clients = processes.map(({ host, port }) => new Redis({ host, port }));
  try {
    await join(processes, clients, nodes);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
  const pairOf = (index: number): RedisProcess[] => [processes[index]!, processes[nodes + index]!];
  return {
    nodes: processes.slice(0, nodes).map(({ host, port }) => ({ host, port })),
    processes,
    killNode: async (index) => processes[index]?.kill(),
    failOver: (index) => failOver(pairOf(index)),
    killMaster: (index) => killMaster(pairOf(index)),
    stop,
  };
}
