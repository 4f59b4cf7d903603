import { existsSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { startCluster, startRedis, startSentinel } from './redis.js';
import { until } from './redis-process.js';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const client = (port: number): Redis => {
  const redis = new Redis({ host: '127.0.0.1', port });
  redis.on('error', () => undefined);
  stops.push(async () => redis.disconnect());
  return redis;
};

describe('the redis-server fixture', () => {
  it('keeps acknowledged writes over a SIGKILL and a restart when append-only', async () => {
    const server = await startRedis({ appendOnly: true });
    stops.push(() => server.stop());
    const redis = client(server.port);
    await redis.set('a', '1');
    await server.restart();
    expect(await redis.get('a')).toBe('1');
  });

  it('removes its directory and its process at the end', async () => {
    const server = await startRedis();
    const pid = server.pid ?? 0;
    expect(existsSync(server.dir)).toBe(true);
    await server.stop();
    expect(existsSync(server.dir)).toBe(false);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('tells what redis-server said when it does not start', async () => {
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow(/no-such-option/);
  });

  it('says what to install when there is no redis-server', async () => {
    vi.stubEnv('PATH', '/nowhere');
    stops.push(async () => vi.unstubAllEnvs());
    await expect(startRedis()).rejects.toThrow('apt-get install redis-server');
  });

  it('makes a cluster that knows its slots', async () => {
    const cluster = await startCluster(3);
    stops.push(() => cluster.stop());
    const first = client(cluster.nodes[0]?.port ?? 0);
    const slots = (await first.call('CLUSTER', 'SLOTS')) as unknown[];
    expect(slots).toHaveLength(3);
  });

  it('makes a cluster whose replicas take over, and back', async () => {
    const cluster = await startCluster(3, { replicas: 1 });
    stops.push(() => cluster.stop());
    const pair = [1, 4].map((index) => client(cluster.processes[index]!.port));
    const roles = (): Promise<unknown[]> => Promise.all(pair.map(async (node) => (await node.role())[0]));
    await cluster.failOver(1);
    expect(await roles()).toEqual(['slave', 'master']);
    await cluster.killMaster(1);
    expect(await roles()).toEqual(['master', 'slave']);
  });

  it('makes sentinels that carry out a failover', { timeout: 240_000 }, async () => {
    const group = await startSentinel();
    stops.push(() => group.stop());
    await group.master.kill();
    await group.promoted();
    const sentinel = client(group.sentinels[0]?.port ?? 0);
    await until(
      'failover',
      async () => {
        const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', group.name)) as string[];
        return port === `${group.replica.port}`;
      },
      60_000,
    );
    expect(await client(group.replica.port).role()).toContain('master');
  });
});
