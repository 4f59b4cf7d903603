import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import type { EnqueueOptions } from '../../lib/client/types.js';
import { DuplicateTaskError } from '../../lib/errors.js';
import { Server } from '../../lib/server/server.js';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { compiled } from '../support/programs.js';

/*
 * A server is killed with kill -9 while it runs a task of each mode of docs/uniqueness.md. The lock is held while that task will still run, and
 * ends with it, whatever then becomes of it.
 */

/** What a second call gets: a refusal, the task that is there, or a new one. */
type Second = 'refused' | 'existing' | 'new';

interface Mode {
  readonly options: EnqueueOptions<unknown>;
  /** While the first task runs, or its server has died. */
  readonly running: Second;
  /** When the first one is archived. */
  readonly archived: Second;
  /** When the first one has succeeded. */
  readonly after: Second;
  /** The first one does not come again once there is a newer one. */
  readonly gives?: 'way';
}

const by = { for: '1h', by: 'key' } as const;
const FREED = { running: 'refused', archived: 'refused', after: 'new' } as const;
const LAST = { running: 'new', archived: 'new', after: 'new' } as const;

const MODES: Readonly<Record<string, Mode>> = {
  payload: { options: { unique: '1h' }, ...FREED },
  key: { options: { unique: by }, ...FREED },
  fields: { options: { unique: { for: '1h', by: ['n'] } }, ...FREED },
  existing: {
    options: { unique: { ...by, onDuplicate: 'existing' } },
    ...FREED,
    running: 'existing',
    archived: 'existing',
  },
  replace: { options: { unique: { ...by, onDuplicate: 'replace' } }, ...FREED },
  started: { options: { unique: { ...by, until: 'started' } }, running: 'new', archived: 'new', after: 'new' },
  expired: { options: { unique: { ...by, until: 'expired' } }, ...FREED, after: 'refused' },
  once: { options: { once: '1h' }, running: 'existing', archived: 'existing', after: 'existing' },
  throttle: { options: { throttle: '1h' }, running: 'existing', archived: 'existing', after: 'existing' },
  debounce: { options: { debounce: { wait: '1s', maxWait: '1s' } }, ...LAST },
  latest: { options: { latest: true }, ...LAST },
  supersede: { options: { supersede: true }, ...LAST, gives: 'way' },
};
const NAMES = Object.keys(MODES);
const KEYLESS: ReadonlySet<string> = new Set(['payload', 'fields']);

let redis: RedisProcess;
let raw: Redis;
let broker: RedisBroker;
let client: AsynqClient;
const children: ChildProcess[] = [];
function connect(): void {
  raw = new Redis(redis.port);
  broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
  client = new AsynqClient(broker);
}
async function disconnect(): Promise<void> {
  await client.close();
  await broker.close();
  raw.disconnect();
}
beforeEach(async () => {
  redis = await startRedis({ appendOnly: true });
  connect();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await disconnect();
  await redis.stop();
});

const enqueue = (mode: string, options: EnqueueOptions<unknown> = {}) =>
  client.enqueue(
    `lock:${mode}`,
    { n: 1 },
    { ...(!KEYLESS.has(mode) && { key: 'k' }), ...MODES[mode]!.options, ...options },
  );

/** What a call of each mode gets, and the ids of tasks that it has made. */
async function callAll(options?: EnqueueOptions<unknown>) {
  const made = new Map<string, string>();
  const outcomes: Record<string, Second> = {};
  for (const mode of NAMES) {
    try {
      const { id, created } = await enqueue(mode, options);
      outcomes[mode] = created ? 'new' : 'existing';
      if (created) made.set(mode, id);
    } catch (error) {
      expect(error).toBeInstanceOf(DuplicateTaskError);
      outcomes[mode] = 'refused';
    }
  }
  return { made, outcomes };
}

const expected = (when: 'running' | 'archived' | 'after') =>
  Object.fromEntries(NAMES.map((mode) => [mode, MODES[mode]![when]]));

/** Has a process run these tasks, and kills it while it does. */
async function killWhileRunning(ids: Iterable<string>): Promise<void> {
  const missing = new Set(ids);
  const program = await compiled(new URL('./lock-process.ts', import.meta.url));
  const child = spawn(process.execPath, [program, redis.host, `${redis.port}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    missing.delete(line);
    if (missing.size === 0) break;
  }
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** As if the time of the leases, and the margin for clocks, were over. */
async function expireLeases(): Promise<void> {
  const ids = await raw.zrange('asynq:{default}:lease', '0', '-1');
  const past = Math.floor(Date.now() / 1000) - 60;
  for (const id of ids) await raw.zadd('asynq:{default}:lease', 'XX', past, id);
}

/** A server that works tasks at once, and the ids of those, in their order. */
async function serve() {
  const worked: string[] = [];
  const handle = async ({ id }: { id: string }) => void worked.push(id);
  const options = { concurrency: 30, retryDelay: () => 0, taskCheckInterval: 50, delayedTaskCheckInterval: 100 };
  const server = new Server({ broker, handlers: [{ pattern: 'lock:', handle }], options });
  await server.start();
  return { worked, stop: () => server.shutdown() };
}

const lockNames = async (): Promise<string[]> =>
  (await broker.uniqueness.list('default', undefined)).locks.map(({ lock }) => lock.split(':')[4]!);

/** Locks that only their time ends. */
const TIMED = NAMES.filter((mode) => mode === 'expired' || mode === 'throttle');

const count = (ids: readonly string[], id: string): number => ids.filter((one) => one === id).length;

describe('a server that is killed while it runs tasks with locks', () => {
  it('leaves the locks to the tasks, which run again and free them', { timeout: 120_000 }, async () => {
    const first = await callAll({ maxRetry: 3 });
    expect(first.made.size).toBe(NAMES.length);
    await killWhileRunning(first.made.values());
    // Nobody knows yet that it is dead.
    const second = await callAll();
    expect(second.outcomes).toEqual(expected('running'));
    await expireLeases();
    const { worked, stop } = await serve();
    const all = [...first.made, ...second.made].filter(
      ([mode, id]) => !MODES[mode]!.gives || id !== first.made.get(mode),
    );
    await expect.poll(() => worked.toSorted(), { timeout: 30_000 }).toEqual(all.map(([, id]) => id).toSorted());
    // The last payload is the last to run.
    expect(worked.indexOf(second.made.get('latest')!)).toBeGreaterThan(worked.indexOf(first.made.get('latest')!));
    await expect.poll(lockNames).toEqual(expect.arrayContaining(TIMED));
    await expect.poll(async () => (await lockNames()).toSorted()).toEqual(TIMED.toSorted());
    await stop();
    expect((await callAll()).outcomes).toEqual(expected('after'));
    for (const id of worked) expect(count(worked, id)).toBe(1);
  });

  it('leaves them to tasks that are archived then, until these are run or deleted', { timeout: 120_000 }, async () => {
    const first = await callAll({ maxRetry: 0 });
    await killWhileRunning(first.made.values());
    await expireLeases();
    const { worked, stop } = await serve();
    await expect.poll(() => raw.zcard('asynq:{default}:archived'), { timeout: 30_000 }).toBe(NAMES.length);
    await stop();
    expect(worked).toEqual([]);
    const second = await callAll();
    expect(second.outcomes).toEqual(expected('archived'));
    const ids = [...first.made.values()];
    await broker.administration.moveTasks('default', 'delete', [...second.made.values()]);
    await broker.administration.moveTasks('default', 'delete', ids);
    expect(await lockNames()).toEqual([]);
    expect((await callAll()).made.size).toBe(NAMES.length);
  });

  it('does not free the lock of the next task when its own has ended before', { timeout: 120_000 }, async () => {
    const short = { key: 'k', unique: { for: '1s', by: 'key' } } as const;
    const holders = async () => (await broker.uniqueness.list('default', undefined)).locks.map(({ owner }) => owner.id);
    const call = () => client.enqueue('lock:short', {}, { ...short, maxRetry: 1 });
    const { id: one } = await call();
    await killWhileRunning([one]);
    await expect.poll(holders).toEqual([]);
    const { id: two } = await client.enqueue(
      'lock:short',
      {},
      { ...short, unique: { for: '1h', by: 'key' }, processIn: '1h' },
    );
    expect(await holders()).toEqual([two]);
    await expireLeases();
    const { worked, stop } = await serve();
    await expect.poll(() => worked, { timeout: 30_000 }).toEqual([one]);
    await stop();
    expect(await holders()).toEqual([two]);
    await expect(call()).rejects.toBeInstanceOf(DuplicateTaskError);
  });
});

/** What Redis has now; the function that is returned has it restart with nothing else, as one that lost its last writes. */
async function keep(): Promise<() => Promise<void>> {
  const kept = await mkdtemp(join(tmpdir(), 'kept-'));
  onTestFinished(() => rm(kept, { recursive: true, force: true }));
  await cp(redis.dir, kept, { recursive: true });
  return async () => {
    await disconnect();
    await redis.kill();
    for (const name of await readdir(redis.dir)) await rm(join(redis.dir, name), { recursive: true });
    await cp(kept, redis.dir, { recursive: true });
    await redis.start();
    connect();
  };
}

/** What a call gets where the first task has not started. */
const UNSTARTED = Object.fromEntries(
  NAMES.map((mode) => {
    const { options } = MODES[mode]!;
    const rejects = options.unique !== undefined && !['existing', 'replace'].includes(mode);
    return [mode, rejects ? 'refused' : 'existing'];
  }),
);

describe('a Redis that restarts without its last writes', () => {
  it('has a task and its lock, or neither', { timeout: 120_000 }, async () => {
    const forgetAll = await keep();
    await callAll();
    await forgetAll();
    const first = await callAll();
    expect(first.made.size).toBe(NAMES.length);

    // The tasks have run, and equal ones were accepted; then all that is forgotten.
    const forgetRuns = await keep();
    const before = await serve();
    await expect.poll(() => before.worked.toSorted(), { timeout: 30_000 }).toEqual([...first.made.values()].toSorted());
    await before.stop();
    expect((await callAll()).outcomes).toEqual(expected('after'));
    await forgetRuns();
    expect((await callAll()).outcomes).toEqual(UNSTARTED);
    const again = await serve();
    await expect.poll(() => again.worked.toSorted(), { timeout: 30_000 }).toEqual([...first.made.values()].toSorted());
    await expect.poll(async () => (await lockNames()).toSorted()).toEqual(TIMED.toSorted());
    await again.stop();
    expect((await callAll()).outcomes).toEqual(expected('after'));
  });

  it(
    'holds the locks of tasks whose ends it has forgotten, until they have ended again',
    { timeout: 120_000 },
    async () => {
      const first = await callAll({ maxRetry: 3 });
      await killWhileRunning(first.made.values());
      const forgetEnds = await keep();
      for (const isForgotten of [true, false]) {
        await expireLeases();
        const { worked, stop } = await serve();
        await expect.poll(() => worked.toSorted(), { timeout: 30_000 }).toEqual([...first.made.values()].toSorted());
        await expect.poll(async () => (await lockNames()).toSorted()).toEqual(TIMED.toSorted());
        await stop();
        if (isForgotten) await forgetEnds();
      }
      expect((await callAll()).outcomes).toEqual(expected('after'));
      await forgetEnds();
      expect((await callAll()).outcomes).toEqual(expected('running'));
    },
  );
});
