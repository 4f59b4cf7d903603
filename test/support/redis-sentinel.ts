import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type ServerProcess, freePort, launch, until, untilPong } from './redis-process.js';
import { type RedisProcess, startRedis } from './redis-server.js';

const NAME = 'mymaster';
/**
 * Two seconds suffice if nothing is slow. Sentinels write their file at each step, and wait for the disk; one whose own timer was late, too,
 * does nothing for half a minute.
 */
const FAILOVER_TIMEOUT_MS = 120_000;

export interface RedisSentinels {
  readonly sentinels: { host: string; port: number }[];
  /** Name of the master in the sentinels. */
  readonly name: string;
  /** The master at the start; kill it for a failover. */
  readonly master: RedisProcess;
  readonly replica: RedisProcess;
  /** Resolves when the replica is the master. A test that waits for it needs more time than others. */
  promoted(): Promise<void>;
  stop(): Promise<void>;
}

interface Sentinel {
  readonly port: number;
  readonly dir: string;
  readonly process: ServerProcess;
}

const configuration = (port: number, master: RedisProcess, quorum: number): string =>
  [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${NAME} ${master.host} ${master.port} ${quorum}`,
    `sentinel down-after-milliseconds ${NAME} 500`,
    `sentinel failover-timeout ${NAME} 3000`,
    '',
  ].join('\n');

async function startOne(master: RedisProcess, quorum: number): Promise<Sentinel> {
  const dir = await mkdtemp(join(tmpdir(), 'redis-test-'));
  const port = await freePort();
  const file = join(dir, 'sentinel.conf');
  await writeFile(file, configuration(port, master, quorum));
  const process = launch([file, '--sentinel'], dir, true);
  await untilPong(process, port);
  return { port, dir, process };
}

/**
 * Whether this sentinel knows the replica and all of its fellows, without which there is no
 * failover.
 */
async function knowsAll(port: number, count: number): Promise<boolean> {
  const client = new Redis({ host: '127.0.0.1', port, retryStrategy: null });
  client.on('error', () => undefined);
  try {
    const reply = (await client.call('SENTINEL', 'MASTER', NAME)) as string[] | Record<string, string>;
    const fields = Array.isArray(reply) ? pairs(reply) : reply;
    return fields['num-slaves'] === '1' && fields['num-other-sentinels'] === `${count - 1}`;
  } finally {
    client.disconnect();
  }
}

const pairs = (flat: readonly string[]): Record<string, string> =>
  Object.fromEntries(flat.flatMap((name, index) => (index % 2 ? [] : [[name, flat[index + 1] ?? '']])));

async function untilPromoted({ host, port }: RedisProcess): Promise<void> {
  const client = new Redis({ host, port });
  client.on('error', () => undefined);
  try {
    await until('the failover', async () => (await client.role())[0] === 'master', FAILOVER_TIMEOUT_MS);
  } finally {
    client.disconnect();
  }
}

/**
 * Starts a master, its replica and sentinels that watch them; resolves when a failover could be
 * carried out.
 */
export async function startSentinel(count = 3): Promise<RedisSentinels> {
  const master = await startRedis();
  const replica = await startRedis({ args: ['--replicaof', master.host, `${master.port}`] });
  const sentinels: Sentinel[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(sentinels.map(({ process }) => process.end('SIGKILL')));
    await Promise.all(sentinels.map(({ dir }) => rm(dir, { recursive: true, force: true })));
    await Promise.all([master.stop(), replica.stop()]);
  };
  try {
    const quorum = Math.floor(count / 2) + 1;
    for (let index = 0; index < count; index++) sentinels.push(await startOne(master, quorum));
    for (const { port } of sentinels) await until('the sentinels know each other', () => knowsAll(port, count), 30_000);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
    name: NAME,
    master,
    replica,
    promoted: () => untilPromoted(replica),
    stop,
  };
}
