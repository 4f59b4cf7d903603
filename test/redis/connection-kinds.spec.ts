import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { wasSent } from '../../lib/broker/redis/connection/broker-error.js';
import type { ConnectionPurpose } from '../../lib/broker/redis/connection/connections.js';
import { slotOf } from '../../lib/broker/redis/connection/slot.js';
import { freePort } from '../support/redis-process.js';
import { type RedisCluster, startCluster, startSentinel } from '../support/redis.js';
import { startProxy } from './proxy.js';
import { connectionsTo, failure, namesOf, observe, ownServer, signal, expectNoHandles } from './support.js';
import { makeCertificate } from './tls.js';

async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'redis-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

describe('TLS', () => {
  it('is used by rediss:// and rejects a certificate that is not trusted', async () => {
    const dir = await temporaryDir();
    const { cert, key, ca } = await makeCertificate(dir);
    const port = await freePort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    await ownServer({ args: ['--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files] });
    const trusting = connectionsTo({ url: `rediss://localhost:${port}`, tls: { ca, servername: 'localhost' } });
    expect(await trusting.run('produce', 'INCR', (client) => client.incr('n'))).toBe(1);
    const passing = await trusting.open('test', () => undefined);
    expect(await passing.client.get('n')).toBe('1');
    const error = await failure(connectionsTo(`rediss://localhost:${port}`).ready('consume'));
    expect(error.message).toContain('self-signed certificate');
    expect(wasSent(error)).toBe(false);
  });
});

describe('a unix socket', () => {
  it('is used by redis-socket:// and by path', async () => {
    const path = join(await temporaryDir(), 'redis.sock');
    const server = await ownServer({ args: ['--unixsocket', path] });
    const byUrl = connectionsTo(`redis-socket://${path}?db=3`);
    expect(await byUrl.run('produce', 'INCR', (client) => client.incr('n'))).toBe(1);
    const byPath = connectionsTo({ path, db: 3 });
    expect(await byPath.run('consume', 'INCR', (client) => client.incr('n'))).toBe(2);
    expect(await observe(server.port, { db: 3 }).get('n')).toBe('2');
  });
});

/** Of tests with a failover, on a slow disk. */
const SLOWLY = { timeout: 240_000 };

describe('Sentinel', () => {
  it('follows the master through a failover, by URL and by options, and never sends twice', SLOWLY, async () => {
    const group = await startSentinel();
    onTestFinished(() => group.stop());
    const hosts = group.sentinels.map(({ host, port }) => `${host}:${port}`).join(',');
    const connections = connectionsTo(`redis-sentinel://${hosts}/1?master=${group.name}`);
    const byOptions = connectionsTo({ sentinels: group.sentinels, name: group.name, db: 1 });
    expect(await connections.run('consume', 'INCR', (client) => client.incr('n'))).toBe(1);
    expect(await byOptions.run('produce', 'INCR', (client) => client.incr('n'))).toBe(2);
    expect(await observe(group.master.port).call('WAIT', 1, 5_000)).toBe(1);
    const back = signal();
    connections.onStateChange((_role, state) => state === 'ready' && back.fire());
    const unanswered = failure(connections.run('consume', 'BLPOP', (client) => client.blpop('none', 0)));
    await vi.waitFor(async () => expect(await observe(group.master.port).client('LIST')).toContain('cmd=blpop'));
    await group.master.kill();
    expect(wasSent(await unanswered)).toBe(true);
    await group.promoted();
    await back.fired;
    const info = await connections.run('consume', 'INFO', (client) => client.info('server'));
    expect(info).toContain(`tcp_port:${group.replica.port}`);
    await vi.waitFor(async () => expect(await byOptions.run('produce', 'INCR', (client) => client.incr('n'))).toBe(3));
    expect(await observe(group.replica.port).client('LIST')).not.toContain('cmd=blpop');
  });

  it('leaves a healthy master as soon as another one replaces it', SLOWLY, async () => {
    const group = await startSentinel();
    onTestFinished(() => group.stop());
    const connections = connectionsTo({ sentinels: group.sentinels, name: group.name });
    const gone = signal<Error>();
    await connections.open('test', gone.fire);
    for (const role of ['consume', 'produce'] as const) await connections.ready(role);
    const [old, next] = [observe(group.master.port), observe(group.replica.port)];
    const sentinel = observe(group.sentinels[0]!.port);
    await vi.waitFor(() => sentinel.call('SENTINEL', 'FAILOVER', group.name)); // refused while the replica is slow to reply
    await gone.fired;
    expect((await old.role())[0]).toBe('master'); // sentinels turn it into a replica, and close its connections, ten seconds later
    const ours = async (redis: Redis) => (await namesOf(redis)).filter((name) => name.startsWith('nestjs-asynq'));
    await vi.waitFor(async () => {
      expect(await ours(old)).toEqual([]);
      expect(await ours(next)).toEqual(['nestjs-asynq:consume', 'nestjs-asynq:produce']);
    }, 10_000);
    expect(await connections.run('produce', 'INCR', (client) => client.incr('n'))).toBe(1);
    await connections.close();
    const left = (await observe(group.sentinels[0]!.port).call('CLIENT', 'LIST')) as string;
    expect(left).not.toContain('nestjs-asynq:failovers');
  });

  it('rejects a fetch as soon as all sentinels have failed to reply, and reports it once', async () => {
    const sentinels = [{ host: '127.0.0.1', port: await freePort() }];
    const connections = connectionsTo({ sentinels, name: 'm' });
    const lost = signal<Error | undefined>();
    connections.onStateChange((_role, state, error) => state === 'lost' && lost.fire(error));
    const first = await failure(connections.ready('consume'));
    expect(first.message).toMatch(
      /no connection to the master "m" of the sentinels: All sentinels are unreachable\.(?! Retrying)/,
    );
    const again = signal();
    connections.command('consume').once('error', () => again.fire());
    await again.fired;
    expect(lost.values).toEqual([first.cause]);
    expect(await failure(connections.ready('consume'))).toMatchObject({ name: 'BrokerUnavailableError' });
  });

  it('reports that no sentinel replies, and closes at once', async () => {
    const sentinels = [{ host: '127.0.0.1', port: await freePort() }];
    const connections = connectionsTo({ sentinels, name: 'm' });
    const call = failure(connections.ready('produce'));
    const client = connections.command('produce');
    const error = await new Promise<Error>((resolve) => client.once('error', resolve));
    expect(error.message).toContain('sentinels are unreachable');
    await connections.close();
    expect((await call).name).toBe('ClosedError');
    await expectNoHandles();
  });
});

describe('Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster(3);
  });
  afterAll(() => cluster.stop());
  afterEach(async () => {
    for (const process of cluster.processes) if (process.pid === undefined) await process.start();
    for (const index of cluster.nodes.keys()) {
      await vi.waitFor(async () => expect(await nodeAt(index).cluster('INFO')).toContain('cluster_state:ok'));
      await nodeAt(index).flushall();
    }
  });

  const nodeAt = (index: number) => observe(cluster.nodes[index]?.port ?? 0);

  /** A key that the node at this index holds. */
  const keyOn = (index: number): string => {
    for (let number = 0; ; number++) {
      const key = `key${number}`;
      if (Math.min(2, Math.floor((slotOf(key) * 3) / 16_384)) === index) return key;
    }
  };

  it('reaches every node, lazily, in RESP2, and closes', async () => {
    const connections = connectionsTo({ cluster: [cluster.nodes[0] ?? ''] });
    expect(connections.isCluster).toBe(true);
    const replies = [0, 1, 2, 0, 1, 2].map((index) =>
      connections.run('consume', 'INCR', (client) => client.incr(keyOn(index))),
    );
    expect(await Promise.all(replies)).toEqual([1, 1, 1, 2, 2, 2]);
    const observer = observe(cluster.nodes[2]?.port ?? 0);
    expect(await namesOf(observer)).toContain('nestjs-asynq:consume');
    await connections.close();
    observer.disconnect();
    await expectNoHandles();
  });

  it('is not known by one of its nodes alone', async () => {
    const connections = connectionsTo({ host: '127.0.0.1', port: cluster.nodes[0]?.port ?? 0 });
    const calls = ['a', 'b', 'c', 'd', 'e'].map((key) =>
      connections.run('consume', 'GET', (client) => client.get(key)),
    );
    const refused = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected');
    expect(String((refused as PromiseRejectedResult).reason)).toMatch(
      /GET: Redis is unavailable: MOVED .*; this is a node of a cluster: give connection: \{ cluster: \['host:port'\] \}$/,
    );
  });

  it('never sends a command again to which a node did not reply', async () => {
    const proxies = await Promise.all(cluster.nodes.map(({ port }) => startProxy(port)));
    const natMap = Object.fromEntries(
      cluster.nodes.map(({ host, port }, index) => [
        `${host}:${port}`,
        { host: '127.0.0.1', port: proxies[index]?.port ?? 0 },
      ]),
    );
    const connections = connectionsTo({ cluster: [cluster.nodes[0] ?? ''], options: { natMap } });
    const key = keyOn(1);
    await connections.run('consume', 'SET', (client) => client.set(key, 0));
    proxies[1]?.holdReplies();
    const call = failure(connections.run('consume', 'INCR', (client) => client.incr(key)));
    const observer = observe(cluster.nodes[1]?.port ?? 0);
    await vi.waitFor(async () => expect(await observer.get(key)).toBe('1'));
    proxies[1]?.cut();
    expect(wasSent(await call)).toBe(true);
    await vi.waitFor(async () => {
      expect(await connections.run('consume', 'INCR', (client) => client.incr(keyOn(0)))).toBeGreaterThan(0);
      expect(await connections.run('consume', 'GET', (client) => client.get(key))).toBe('1');
    });
  });

  it('makes an enqueue wait until the cluster is up again, and rejects a fetch', async () => {
    const connections = connectionsTo({ cluster: cluster.nodes });
    const incr = (role: ConnectionPurpose) => connections.run(role, 'INCR', (client) => client.incr(keyOn(0)));
    expect([await incr('produce'), await incr('consume')]).toEqual([1, 2]);
    await cluster.killNode(2);
    await vi.waitFor(async () => expect(await nodeAt(0).cluster('INFO')).toContain('cluster_state:fail'));
    const error = await failure(incr('consume'));
    expect(error.message).toContain('CLUSTERDOWN');
    expect(wasSent(error)).toBe(false);
    const waiting = incr('produce');
    await cluster.processes[2]?.restart();
    expect(await waiting).toBe(3);
  });

  it('rejects commands for a dead node, continues with the others, and recovers', async () => {
    const connections = connectionsTo({ cluster: cluster.nodes });
    const incr = (index: number) => connections.run('consume', 'INCR', (client) => client.incr(keyOn(index)));
    await Promise.all([0, 1, 2].map(incr));
    await cluster.killNode(2);
    expect((await failure(incr(2))).name).toBe('BrokerUnavailableError');
    await cluster.processes[2]?.restart();
    await vi.waitFor(async () => expect(await Promise.all([0, 1, 2].map(incr))).toBeDefined(), {
      interval: 200,
    });
  });

  it('survives the loss of all nodes', async () => {
    const connections = connectionsTo({ cluster: cluster.nodes });
    const incr = () => connections.run('consume', 'INCR', (client) => client.incr(keyOn(0)));
    await incr();
    const states: string[] = [];
    connections.onStateChange((_role, state) => states.push(state));
    await Promise.all(cluster.processes.map((process) => process.kill()));
    await vi.waitFor(async () => {
      await failure(incr());
      expect(states).toContain('lost');
    });
    const times: number[] = [];
    for (let n = 0; n < 5; n++) {
      const start = performance.now();
      expect(wasSent(await failure(incr()))).toBe(false);
      times.push(performance.now() - start);
    }
    expect(Math.min(...times)).toBeLessThan(100); // a busy machine delays some
    await Promise.all(cluster.processes.map((process) => process.start()));
    await vi.waitFor(() => expect(states).toContain('ready'));
    expect(await incr()).toBe(1);
  });

  it('survives a redirection to a node that is gone', async () => {
    const connections = connectionsTo({ cluster: cluster.nodes });
    await connections.ready('consume');
    const ids = (await Promise.all([0, 2].map((index) => nodeAt(index).cluster('MYID')))) as string[];
    const slot = slotOf(keyOn(0));
    await nodeAt(2).cluster('SETSLOT', slot, 'IMPORTING', ids[0] ?? '');
    await nodeAt(0).cluster('SETSLOT', slot, 'MIGRATING', ids[1] ?? '');
    await cluster.killNode(2);
    const error = await failure(connections.run('consume', 'INCR', (client) => client.incr(keyOn(0))));
    expect(error.name).toBe('BrokerUnavailableError');
    await cluster.processes[2]?.start();
    for (const index of [0, 2]) await nodeAt(index).cluster('SETSLOT', slot, 'STABLE');
  });

  it.each<[string, () => Cluster]>([
    ['6', () => new Cluster(cluster.nodes, { lazyConnect: true })],
    ['5', () => new Cluster5(cluster.nodes, { lazyConnect: true }) as unknown as Cluster],
  ])('takes its options from a client of ioredis %s', async (_version, make) => {
    const client = make();
    onTestFinished(() => client.disconnect());
    const connections = connectionsTo(client);
    expect(connections.isCluster).toBe(true);
    const call = (index: number) => connections.run('produce', 'INCR', (used) => used.incr(keyOn(index)));
    expect(await Promise.all([0, 1, 2].map(call))).toEqual([1, 1, 1]);
    expect(client.status).toBe('wait');
    const passing = await connections.open('test', () => undefined, `127.0.0.1:${cluster.nodes[1]?.port}`);
    expect(await passing.client.get(keyOn(1))).toBe('1');
    expect(passing.client.options.connectionName).toBe('nestjs-asynq:test');
    await connections.close();
    await client.connect();
    expect(await client.get(keyOn(2))).toBe('1');
  });
});

describe('an existing client', () => {
  const kinds: [string, (port: number) => Redis][] = [
    ['6', (port) => new Redis({ port, db: 2 })],
    ['6 that waits', (port) => new Redis({ port, db: 2, lazyConnect: true, maxRetriesPerRequest: null })],
    ['6 with RESP3 replies', (port) => new Redis({ port, db: 2, replyMapping: 'resp3' }) as unknown as Redis],
    ['5', (port) => new Redis5({ port, db: 2, stringNumbers: true }) as unknown as Redis],
    ['5 that does not queue', (port) => new Redis5({ port, db: 2, enableOfflineQueue: false }) as unknown as Redis],
  ];

  it.each(kinds)('of ioredis %s is only a template: it is neither used nor closed', async (_version, make) => {
    const server = await ownServer();
    const client = make(server.port);
    onTestFinished(() => client.disconnect());
    const connections = connectionsTo(client);
    expect(await connections.run('consume', 'INCR', (used) => used.incr('n'))).toBe(1);
    expect(connections.command('consume')).not.toBe(client);
    const ended = vi.fn();
    client.on('end', ended);
    await connections.close();
    await vi.waitFor(async () => expect(await client.get('n')).toBe('1'));
    expect(ended).not.toHaveBeenCalled();
  });

  it.each(kinds)('of ioredis %s: a command without a reply is not sent again', async (_version, make) => {
    const server = await ownServer();
    const observer = observe(server.port, { db: 2 });
    const proxy = await startProxy(server.port);
    const client = make(proxy.port);
    client.on('error', () => undefined);
    onTestFinished(() => client.disconnect());
    const connections = connectionsTo(client);
    await connections.ready('produce');
    proxy.holdReplies();
    const call = failure(connections.run('produce', 'enqueue', (used) => used.incr('n')));
    await vi.waitFor(async () => expect(await observer.get('n')).toBe('1'));
    proxy.cut();
    expect(wasSent(await call)).toBe(true);
    expect(await connections.run('produce', 'GET', (used) => used.get('n'))).toBe('1');
  });

  it('of ioredis 5 leaves no timer that would destroy a later connection', async () => {
    const server = await ownServer();
    const proxy = await startProxy(server.port);
    const client = new Redis5({ port: proxy.port, lazyConnect: true, socketTimeout: 1_000 });
    const connections = connectionsTo(client);
    await connections.ready('consume');
    proxy.holdReplies();
    const unanswered = failure(connections.run('consume', 'PING', (used) => used.ping()));
    proxy.cut();
    await unanswered;
    const states: string[] = [];
    await connections.ready('produce');
    await vi.waitFor(() => connections.run('consume', 'PING', (used) => used.ping()));
    connections.onStateChange((role, state) => states.push(`${role} ${state}`));
    for (let round = 0; round < 4; round++) {
      expect(await connections.run('consume', 'BLPOP', (used) => used.blpop('none', 0.3))).toBeNull();
    }
    expect(states).toEqual([]);
  });
});
