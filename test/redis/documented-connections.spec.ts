import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import { AsynqClient, AsynqModule, TaskHandler, type AsynqModuleOptions } from 'nestjs-asynq';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { quiet } from '../nest/support.js';
import {
  type RedisCluster,
  type RedisProcess,
  type RedisSentinels,
  startCluster,
  startRedis,
  startSentinel,
} from '../support/redis.js';
import { freePort } from '../support/redis-process.js';
import { observe } from './support.js';
import { makeCertificate } from './tls.js';

type Connection = AsynqModuleOptions['connection'];

@Injectable()
class Handlers {
  readonly ran: unknown[] = [];

  @TaskHandler('documented')
  run(payload: unknown) {
    this.ran.push(payload);
  }
}

/** Starts an application on the connection, and has it run a task that it enqueues. */
async function expectToWork(connection: Connection): Promise<void> {
  const app = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection })],
    providers: [Handlers],
  })
    .setLogger(quiet)
    .compile();
  onTestFinished(() => app.close());
  await app.init();
  await app.get(AsynqClient).enqueue('documented', 42);
  await vi.waitFor(() => expect(app.get(Handlers).ran).toEqual([42]));
}

/** Every form that the page names, as it stands in the first column of its table. */
describe('docs/configuration.md, the table of connections', () => {
  let dir: string;
  let socket: string;
  let server: RedisProcess;
  let tlsPort: number;
  let ca: Buffer;
  let group: RedisSentinels;
  let cluster: RedisCluster;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'redis-test-'));
    socket = join(dir, 'redis.sock');
    tlsPort = await freePort();
    const made = await makeCertificate(dir);
    ca = made.ca;
    const files = ['--tls-cert-file', made.cert, '--tls-key-file', made.key, '--tls-ca-cert-file', made.cert];
    const tls = ['--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no', ...files];
    const users = ['--requirepass', 'word', '--user', 'joe', 'on', '>secret', '+@all', '~*', '&*'];
    [server, group, cluster] = await Promise.all([
      startRedis({ args: ['--unixsocket', socket, ...tls, ...users] }),
      startSentinel(),
      startCluster(),
    ]);
    for (const { port } of cluster.nodes) {
      const node = new Redis({ port });
      await node.config('SET', 'requirepass', 'word');
      node.disconnect();
    }
  });
  afterAll(async () => {
    await Promise.all([server.stop(), group.stop(), cluster.stop()]);
    await rm(dir, { recursive: true, force: true });
  });

  const trusting = () => ({ ca, servername: 'localhost' });
  const sentinels = () => group.sentinels.map(({ host, port }) => `${host}:${port}`).join(',');
  const password = 'word';

  const FORMS: Readonly<Record<string, Readonly<Record<string, () => Connection>>>> = {
    "`'redis://user:password@host:6379/0'`": {
      'user and password': () => `redis://joe:secret@127.0.0.1:${server.port}/1`,
      'rediss://': () => ({ url: `rediss://joe:secret@localhost:${tlsPort}/2`, tls: trusting() }),
      'redis-socket://': () => `redis-socket://joe:secret@${socket}?db=3`,
    },
    "`'redis-sentinel://host:26379?master=name'`": {
      one: () => `redis-sentinel://${sentinels()}?master=${group.name}`,
    },
    '`{ host, port, password, tls }`, `{ path }`, `{ sentinels, name }`': {
      'host, port, password': () => ({ host: '127.0.0.1', port: server.port, password, db: 4 }),
      tls: () => ({ host: 'localhost', port: tlsPort, password, tls: trusting(), db: 5 }),
      path: () => ({ path: socket, password, db: 6 }),
      sentinels: () => ({ sentinels: group.sentinels, name: group.name, db: 1 }),
    },
    '`{ url, connectTimeout: 2_000 }`': {
      'options that win': () => ({
        url: `redis://joe:wrong@127.0.0.1:${server.port}/1`,
        connectTimeout: 2_000,
        password: 'secret',
        db: 7,
      }),
    },
    "`{ cluster: ['host:7000', { host, port }], options: { redisOptions: { password } } }`": {
      'both kinds of nodes': () => ({
        cluster: [`127.0.0.1:${cluster.nodes[0]!.port}`, cluster.nodes[1]!],
        options: { redisOptions: { password } },
      }),
    },
    '`new Redis(…)`, `new Cluster(…)`': {
      Redis: () => {
        const client = new Redis({ port: server.port, password, db: 8, lazyConnect: true });
        onTestFinished(() => expect(client.status).toBe('wait')); // it is not used
        return client;
      },
      Cluster: () => {
        const client = new Cluster([cluster.nodes[2]!], { redisOptions: { password }, lazyConnect: true });
        onTestFinished(() => expect(client.status).toBe('wait'));
        return client;
      },
    },
    "`'memory'`": { one: () => 'memory' },
  };

  it('has the forms that are tried here, and no other', async () => {
    const page = await readFile(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
    const section = /^## The connection\n(.*?)^## /ms.exec(page)![1]!;
    const rows = [...section.matchAll(/^\| (`.*?) *\|/gm)].map(([, form]) => form);
    expect(rows).toEqual(Object.keys(FORMS));
  });

  const cases = Object.entries(FORMS).flatMap(([row, forms]) =>
    Object.entries(forms).map(([what, make]) => [row, what, make] as const),
  );
  it.each(cases)('%s works: %s', async (_row, _what, make) => {
    await expectToWork(make());
  });

  it('reaches the database that is named, by URL and where options win', async () => {
    const queues = (db: number) => observe(server.port, { password, db }).smembers('asynq:queues');
    for (const db of [1, 2, 3, 4, 5, 6, 7, 8]) expect([db, await queues(db)]).toEqual([db, ['default']]);
    expect(await queues(0)).toEqual([]);
  });
});
