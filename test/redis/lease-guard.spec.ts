import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LeasedTask } from '../../lib/broker/broker.js';
import type { LeaseGuard } from '../../lib/broker/lease-guards.js';
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { freePort, sleep } from '../support/redis-process.js';
import { startCluster, startSentinel } from '../support/redis.js';
import { connectionsTo, observe, ownServer } from './support.js';
import { makeCertificate } from './tls.js';

/** The thread looks every 20 ms, and extends every lease when the event loop gave no sign for 100 ms. */
const QUICK = { periodMs: 20, silentMs: 100, extendWhenLeftMs: 100_000, leaseSeconds: 60 };
const LATER = Date.now() + 3_600_000;

interface Guarded {
  readonly broker: RedisBroker;
  readonly guard: LeaseGuard;
  readonly reasons: string[];
  take(id?: string): Promise<LeasedTask>;
  scoreOf(id: string): Promise<number | undefined>;
}

function guarded(input: ConnectionInput, leaseTimes = QUICK): Guarded {
  const connections = connectionsTo(input);
  const broker = new RedisBroker(connections, { leaseTimes });
  const reasons: string[] = [];
  const guard = broker.leaseGuards.open({ capacity: 10, onUnavailable: (reason) => reasons.push(reason) });
  onTestFinished(() => guard.close());
  return {
    broker,
    guard,
    reasons,
    take: async (id) => {
      const made = request({ ...(id !== undefined && { id }) });
      await broker.producer.enqueue('default', [made]);
      const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
      return tasks[0]!;
    },
    scoreOf: async (id) => {
      const run = (client: { zscore(key: string, id: string): Promise<string | null> }) =>
        client.zscore('asynq:{default}:lease', id);
      const score = await connections.run('monitor', 'ZSCORE', (client) => run(client));
      return score === null ? undefined : Number(score);
    },
  };
}

const extended = ({ scoreOf }: Guarded, { lease }: LeasedTask) =>
  vi.waitFor(async () => expect(await scoreOf(lease.id)).toBeGreaterThan(Date.now() / 1000 + 50));

const done = ({ lease }: LeasedTask) => ({ kind: 'done', lease, uniqueKey: '' }) as const;

describe('a lease while the event loop stands still', () => {
  it('is extended, and the process still has it afterwards', async () => {
    const made = guarded((await ownServer()).url);
    const [one, two, three] = [await made.take(), await made.take('ä€𝄞'), await made.take()];
    for (const { lease } of [one, two, three]) made.guard.hold(lease, LATER);
    for (const task of [one, two, three]) await extended(made, task);
    made.guard.beat();
    const { consumer } = made.broker;
    expect((await consumer.exchange('default', { settle: [done(one)], take: 0 })).settled).toEqual(['settled']);
    expect(await consumer.writeResult(two.lease, Buffer.from('x'))).toBe(true);
    const end = Math.floor(Date.now() / 1000) + 70;
    expect(await consumer.extendLeases('default', [two.lease, three.lease], end)).toEqual([true, true]);
    expect([two.lease.expiresAt, await made.scoreOf(two.lease.id)]).toEqual([end, end]);
    expect((await consumer.exchange('default', { settle: [done(two), done(three)], take: 0 })).settled).toEqual([
      'settled',
      'settled',
    ]);
    expect(made.reasons).toEqual([]);
  });

  it('is left alone after its deadline, when it was released, when it is another server’s, and when its id is too long', async () => {
    const made = guarded((await ownServer()).url);
    const late = await made.take();
    const released = await made.take();
    const taken = await made.take();
    const long = await made.take('x'.repeat(129));
    const kept = await made.take('y'.repeat(128));
    made.guard.hold(late.lease, Date.now() - 1);
    for (const { lease } of [released, taken, long, kept]) made.guard.hold(lease, LATER);
    made.guard.release(released.lease);
    made.guard.release(released.lease);
    taken.lease.expiresAt += 0; // another server writes another score
    await made.broker.consumer.extendLeases('default', [{ ...taken.lease, slot: undefined }], 7);
    await extended(made, kept);
    const ends = await Promise.all([late, released, taken, long].map(({ lease }) => made.scoreOf(lease.id)));
    expect(ends).toEqual([late.lease.expiresAt, released.lease.expiresAt, 7, long.lease.expiresAt]);
  });

  it('is not touched while the event loop goes on', async () => {
    const silentMs = 1_000;
    const made = guarded((await ownServer()).url, { ...QUICK, silentMs });
    /** Beats for longer than the thread is patient. Returns the longest time between two beats. */
    const goOn = async (): Promise<number> => {
      let longest = 0;
      for (let begun = performance.now(), last = begun; performance.now() - begun < 1.5 * silentMs;) {
        await sleep(10);
        made.guard.beat();
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }
      return longest;
    };
    for (;;) {
      const task = await made.take();
      made.guard.hold(task.lease, LATER);
      const longest = await goOn();
      const score = await made.scoreOf(task.lease.id);
      if (longest > silentMs / 2) continue; // a busy machine let it stand still
      expect(score).toBe(task.lease.expiresAt);
      return extended(made, task);
    }
  });

  it('is extended after Redis was away', async () => {
    const server = await ownServer({ appendOnly: true });
    const made = guarded(server.url);
    const task = await made.take();
    await server.kill();
    made.guard.hold(task.lease, LATER);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await server.start();
    await extended(made, task);
    const { settled } = await vi.waitFor(() =>
      made.broker.consumer.exchange('default', { settle: [done(task)], take: 0 }),
    );
    expect(settled).toEqual(['settled']);
  });

  it('costs no thread before the first, and one for all servers of a broker', async () => {
    const server = await ownServer();
    const made = guarded(server.url);
    const other = made.broker.leaseGuards.open({ capacity: 10, onUnavailable: () => undefined });
    const task = await made.take();
    expect(await names(server.port)).not.toContain('nestjs-asynq:leases');
    other.hold(task.lease, LATER);
    await extended(made, task);
    await made.guard.close();
    const next = await made.take();
    other.hold(next.lease, LATER);
    await extended(made, next);
    expect((await names(server.port)).filter((name) => name === 'nestjs-asynq:leases')).toHaveLength(1);
    await other.close();
    await vi.waitFor(async () => expect(await names(server.port)).not.toContain('nestjs-asynq:leases'));
  });

  async function names(port: number): Promise<string[]> {
    const list = (await observe(port).call('CLIENT', 'LIST')) as string;
    return [...list.matchAll(/ name=(\S*)/g)].map(([, name]) => name!);
  }
});

describe('the connection of the thread', () => {
  it('uses a password, a database and TLS', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'redis-test-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const { cert, key, ca } = await makeCertificate(dir);
    const port = await freePort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    await ownServer({
      args: ['--tls-port', `${port}`, '--tls-auth-clients', 'no', '--requirepass', 'secret', ...files],
    });
    const made = guarded({ host: 'localhost', port, db: 3, password: 'secret', tls: { ca, servername: 'localhost' } });
    const task = await made.take();
    made.guard.hold(task.lease, LATER);
    await extended(made, task);
    expect(made.reasons).toEqual([]);
  });

  it('goes to a socket', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'redis-test-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const path = join(dir, 'redis.sock');
    await ownServer({ args: ['--unixsocket', path] });
    const made = guarded({ path });
    const task = await made.take();
    made.guard.hold(task.lease, LATER);
    await extended(made, task);
    expect(made.reasons).toEqual([]);
  });

  it('goes to the node of a cluster that has the queue, and to the master that the sentinels name', async () => {
    const cluster = await startCluster();
    onTestFinished(() => cluster.stop());
    const group = await startSentinel();
    onTestFinished(() => group.stop());
    for (const input of [{ cluster: cluster.nodes }, { sentinels: group.sentinels, name: group.name }]) {
      const made = guarded(input);
      const task = await made.take();
      made.guard.hold(task.lease, LATER);
      await extended(made, task);
      expect(made.reasons).toEqual([]);
    }
  });

  it('cannot have functions: that is said once', async () => {
    const { url } = await ownServer();
    const made = guarded({ url, tls: undefined } as ConnectionInput);
    const task = await made.take();
    const { connections } = made.broker as unknown as { connections: { plain(): unknown } };
    vi.spyOn(connections, 'plain').mockReturnValue('no functions');
    for (const lease of [task.lease, task.lease]) made.guard.hold(lease, LATER);
    expect(made.reasons).toEqual(['no functions']);
    const fussy = connectionsTo({ host: 'localhost', tls: { checkServerIdentity: () => undefined } });
    expect(fussy.plain()).toMatch(/tls of the connection holds functions/);
    expect(connectionsTo({ host: 'h', password: 'p', username: 'u', db: 2, connectTimeout: 9 }).plain()).toEqual({
      password: 'p',
      username: 'u',
      db: 2,
      connectTimeout: 9,
    });
  });
});

/** Keeps the event loop busy, for longer if something is to be seen: half a minute at most. */
function block(milliseconds: number, isSeen: () => boolean): void {
  const begun = performance.now();
  while (performance.now() < begun + milliseconds || (!isSeen() && performance.now() < begun + 30_000));
}

describe('a server whose handler keeps the event loop busy', () => {
  it('keeps the leases of all its tasks, and says what it was', async () => {
    const { url } = await ownServer();
    const { broker, scoreOf } = guarded(url);
    /** How many scores of the lease the watcher has seen: it has a thread of its own. */
    const seen = new Int32Array(new SharedArrayBuffer(4));
    const server = new Server({
      broker,
      handlers: [{ pattern: 'test:', handle: () => block(2_500, () => Atomics.load(seen, 0) > 1) }],
    });
    onTestFinished(() => server.shutdown());
    const blocked = new Promise((resolve) => server.events.on('loopBlocked', resolve));
    const ended = new Promise((resolve) => server.events.on('taskFinished', resolve));
    const made = request();
    await broker.producer.enqueue('default', [made]);
    const watcher = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads'); const { Redis } = require('ioredis');
       const redis = new Redis(workerData.url); const scores = new Set();
       setInterval(async () => {
         const [, score] = await redis.zrange('asynq:{default}:lease', 0, -1, 'WITHSCORES');
         if (score) scores.add(score);
         Atomics.store(workerData.seen, 0, scores.size);
         parentPort.postMessage('looked');
       }, 50);`,
      { eval: true, workerData: { url, seen } },
    );
    onTestFinished(() => void watcher.terminate());
    await once(watcher, 'message');
    await server.start();
    expect(await ended).toMatchObject({ outcome: 'done', task: { id: made.message.id } });
    expect(await blocked).toMatchObject({ types: ['test:task'] });
    expect(server.stats().loopDelay.max).toBeGreaterThan(1_000);
    expect(await scoreOf(made.message.id)).toBeUndefined();
    expect(Atomics.load(seen, 0)).toBeGreaterThan(1);
  });
});
