import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { QueueKeys } from '../../lib/wire/keys.js';
import { startRedis } from '../support/redis.js';

/** How long processes are killed: longer by hand, ASYNQ_CHAOS_SECONDS=600. */
const SECONDS = Number(process.env.ASYNQ_CHAOS_SECONDS ?? 10);
const QUEUES = ['alpha', 'beta', 'gamma'];
const ENDED = [undefined, 'completed', 'archived'];

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

type Role = 'server' | 'client';
interface Ref {
  readonly queue: string;
  readonly id: string;
}

/** Processes that make and run linked tasks, and what they have said. */
class Fleet {
  readonly accepted: Record<'task' | 'run' | 'batch', Ref[]> = { task: [], run: [], batch: [] };
  /** How often each attempt of a task has ended well. */
  readonly ran = new Map<string, number>();
  readonly refused: string[] = [];
  private readonly processes: { readonly role: Role; readonly child: ChildProcess }[] = [];

  constructor(private readonly port: number) {}

  start(role: Role): Promise<void> {
    const program = [path('../support/run-ts.mjs'), path('./linked-process.ts'), `${this.port}`, role];
    const child = spawn(process.execPath, program, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.processes.push({ role, child });
    return new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`a ${role} ended with ${code} before it was ready`)));
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'ready') resolve();
        else this.hear(line);
      });
    });
  }

  /** kill -9 of one that has run for long, and another in its place. */
  replace(role: Role): Promise<void> {
    const at = this.processes.findIndex((one) => one.role === role);
    this.processes.splice(at, 1)[0]!.child.kill('SIGKILL');
    return this.start(role);
  }

  /** Lets them end. */
  async stop(role: Role): Promise<void> {
    const those = this.processes.filter((one) => one.role === role);
    await Promise.all(
      those.map(({ child }) => {
        const closed = new Promise((resolve) => child.once('close', resolve));
        child.stdin!.end();
        return closed;
      }),
    );
  }

  kill(): void {
    for (const { child } of this.processes) child.kill('SIGKILL');
  }

  private hear(line: string): void {
    const [word, first, second] = line.split(' ') as [string, string, string];
    if (word === 'ran') this.ran.set(`${first} ${second}`, (this.ran.get(`${first} ${second}`) ?? 0) + 1);
    else if (word === 'refused') this.refused.push(line);
    else this.accepted[word as 'task'].push({ queue: first, id: second });
  }
}

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

it(
  'gives every accepted task, run and batch an end, though servers and clients are killed',
  async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const { port } = server;
    const redis = new Redis(port);
    cleanups.push(() => redis.disconnect());
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port }));
    cleanups.push(() => broker.close());
    const fleet = new Fleet(port);
    cleanups.push(() => fleet.kill());
    await Promise.all((['server', 'server', 'client', 'client'] as const).map((role) => fleet.start(role)));
    for (const end = Date.now() + SECONDS * 1000, roles = ['server', 'client'] as const; Date.now() < end;) {
      for (const role of roles) await fleet.replace(role);
    }
    await fleet.stop('client');

    const open = async (): Promise<string[]> => {
      await expireLeases(redis);
      return stillOpen(broker, fleet);
    };
    await vi.waitFor(async () => expect(await open()).toEqual([]), { timeout: 90_000, interval: 1_000 });
    const { task, run, batch } = fleet.accepted;
    expect(Math.min(task.length, run.length, batch.length)).toBeGreaterThan(0);
    for (const { id } of batch) await vi.waitFor(() => expectOnce(attemptsOf(fleet, `${id}~complete`), id), 30_000);
    await vi.waitFor(async () => expect(await leftKeys(redis)).toEqual([]), { timeout: 60_000, interval: 1_000 });
    expect(fleet.refused).toEqual([]);
    await fleet.stop('server');
  },
  (SECONDS + 240) * 1000,
);

/** What was accepted and has not ended, by state. */
async function stillOpen(broker: RedisBroker, { accepted }: Fleet): Promise<string[]> {
  const open: string[] = [];
  const tasks = await Promise.all(accepted.task.map(({ queue, id }) => broker.inspection.getTask(queue, id)));
  for (const task of tasks) if (!ENDED.includes(task?.state)) open.push(`task ${task!.message.id} ${task!.state}`);
  const runs = await Promise.all(accepted.run.map(({ queue, id }) => broker.workflows.summary(queue, id)));
  runs.forEach((run, index) => {
    if (!run || run.state === 'running') open.push(`run ${accepted.run[index]!.id} ${run?.state}`);
  });
  const batches = await Promise.all(accepted.batch.map(({ queue, id }) => broker.batches.progress(queue, id)));
  batches.forEach((batch, index) => {
    if (!batch || !['succeeded', 'completed'].includes(batch.state)) {
      open.push(`batch ${accepted.batch[index]!.id} ${JSON.stringify(batch)}`);
    }
  });
  return open;
}

/** The tasks of killed servers need not wait for a minute. */
async function expireLeases(redis: Redis): Promise<void> {
  const past = Math.floor(Date.now() / 1000) - 40;
  for (const queue of QUEUES) {
    const { lease } = new QueueKeys('asynq', queue);
    for (const id of await redis.zrangebyscore(lease, 0, Date.now() / 1000 + 24))
      await redis.zadd(lease, 'XX', past, id);
  }
}

/** How often each attempt of a task that ended well did so. */
const attemptsOf = ({ ran }: Fleet, id: string): number[] =>
  [...ran].filter(([attempt]) => attempt.startsWith(`${id} `)).map(([, times]) => times);

/** A callback is created once; a server that is killed before it has settled it leaves another attempt. */
function expectOnce(attempts: readonly number[], id: string): void {
  expect(attempts.length, id).toBeGreaterThan(0);
  expect(new Set(attempts), id).toEqual(new Set([1]));
}

/** Keys of links that nothing needs any more: an archived task keeps its own for a rerun, a batch until it is forgotten. */
async function leftKeys(redis: Redis): Promise<string[]> {
  const keys = await redis.keys('asynq:{*');
  const left = keys.filter((key) => /}:(outbox|g:asynq:waiting)$/.test(key));
  // A client that was killed before it stored a task leaves what came early for it, for ten minutes.
  for (const key of keys.filter((name) => name.includes('}:early:'))) if ((await redis.ttl(key)) < 0) left.push(key);
  for (const queue of QUEUES) {
    const { base, taskPrefix } = new QueueKeys('asynq', queue);
    for (const id of await redis.hkeys(`${base}links`)) {
      if ((await redis.exists(taskPrefix + id, `${base}part:${id}`)) === 0) left.push(`${base}links ${id}`);
    }
  }
  return left;
}
