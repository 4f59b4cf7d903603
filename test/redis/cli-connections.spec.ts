import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../support/redis-process.js';
import { runInProcess } from '../support/command-line.js';
import { type RedisCluster, startCluster, startSentinel } from '../support/redis.js';
import { ownServer } from './support.js';
import { makeCertificate } from './tls.js';

const enqueue = ['task', 'enqueue', '-t', 'x', '-l', '{}', '--id', 'one'];

/** Enqueues a task and lists it. */
async function expectExchange(flags: string[], env: Record<string, string> = {}): Promise<void> {
  expect(await runInProcess([...flags, ...enqueue], { env })).toMatchObject({ status: 0, stderr: '' });
  const { status, stdout } = await runInProcess(['task', 'ls', '-q', 'default', '-s', 'pending', '--json', ...flags], {
    env,
  });
  expect([status, JSON.parse(stdout)]).toEqual([
    0,
    expect.objectContaining({ tasks: [expect.objectContaining({ id: 'one' })] }),
  ]);
}

describe('the command line reaches', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'asynq-cli-'));
  });
  afterAll(() => rm(dir, { recursive: true }));

  it('a database with user and password, by flags, environment and URL', async () => {
    const { port } = await ownServer({ args: ['--user', 'joe', 'on', '>secret', '+@all', '~*', '&*'] });
    await expectExchange(['-u', `localhost:${port}`, '-n', '3', '-U', 'joe', '-p', 'secret']);
    const env = { URI: `localhost:${port}`, ASYNQ_DB: '3', DB: '1', ASYNQ_USERNAME: 'joe', PASSWORD: 'secret' };
    expect((await runInProcess(['queue', 'ls'], { env })).stdout).toBe('default\n');
    expect((await runInProcess(['queue', 'ls', '-u', `redis://joe:secret@localhost:${port}/3`])).stdout).toBe(
      'default\n',
    );
    const refused = await runInProcess(['queue', 'ls', '-u', `redis://joe:wrong@localhost:${port}/3`]);
    expect([refused.status, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toMatch(
      /^error: no connection to Redis at localhost:\d+: WRONGPASS .*; give the password with ASYNQ_PASSWORD/,
    );
    expect(refused.stderr).not.toContain('wrong@');
    const none = await runInProcess(['queue', 'ls', '-u', `redis://joe:secret@localhost:${port}/99`]);
    expect(none.stderr).toMatch(/: ERR DB index is out of range; give another number with --db/);
  });

  it('a socket', async () => {
    const path = join(dir, 'redis.sock');
    await ownServer({ args: ['--unixsocket', path] });
    await expectExchange(['-u', `redis-socket://${path}?db=1`]);
  });

  it('a server over TLS, with its certificate unchecked', async () => {
    const { cert, key } = await makeCertificate(dir);
    const port = await freePort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    await ownServer({ args: ['--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files] });
    await expectExchange(['-u', `localhost:${port}`, '--tls', '--insecure']);
    await expectExchange(['-u', `rediss://localhost:${port}`, '-n', '1', '--insecure']);
    const refused = await runInProcess(['queue', 'ls', '-u', `rediss://localhost:${port}`]);
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('self-signed certificate')]);
  });

  it('the master that sentinels name', async () => {
    const sentinels = await startSentinel();
    try {
      const hosts = sentinels.sentinels.map(({ host, port }) => `${host}:${port}`).join(',');
      await expectExchange(['-u', `redis-sentinel://${hosts}/0?master=${sentinels.name}`]);
    } finally {
      await sentinels.stop();
    }
  });

  describe('a cluster', () => {
    let cluster: RedisCluster;
    beforeAll(async () => {
      cluster = await startCluster();
    });
    afterAll(() => cluster.stop());

    it('by some of its nodes', async () => {
      const flags = ['--cluster', '--cluster_addrs', `127.0.0.1:1,127.0.0.1:${cluster.nodes[0]!.port}`];
      await expectExchange(flags);
      const { stdout } = await runInProcess(['queue', 'ls', ...flags]);
      const [head, row] = stdout.split('\n');
      expect(head).toBe('Queue    Key Slot  Nodes');
      expect(row).toMatch(/^default +\d+ {2}127\.0\.0\.1:\d+$/);
      const stats = await runInProcess(['stats', '--json', ...flags]);
      expect(JSON.parse(stats.stdout)).toMatchObject({
        aggregate: { pending: 1 },
        redis: { cluster_state: 'ok', cluster_size: '3' },
      });
      expect((await runInProcess(['stats', ...flags])).stdout).toMatch(
        /Redis Cluster\nstate +known nodes +size\nok +3 +3\n$/,
      );
    });
  });
});
