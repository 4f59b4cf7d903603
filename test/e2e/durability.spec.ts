import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { QueueKeys } from '../../lib/wire/keys.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { compiled } from '../support/programs.js';

const keys = new QueueKeys('asynq', 'default');

/** What the workers said: how often each task ran, and every other line. */
class Fleet {
  readonly runs = new Map<string, number>();
  readonly lines: string[] = [];
  private readonly workers: ChildProcess[] = [];
  private onRun: (() => void) | undefined;

  /** @param longest milliseconds one task takes at most */
  constructor(
    private readonly port: number,
    private readonly longest: number,
  ) {}

  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.startOne()));
  }

  /** kill -9 of the first worker, in the moment when so many tasks are known to have run. */
  killAfter(tasks: number): Promise<void> {
    return new Promise((resolve) => {
      this.onRun = () => {
        if (this.runs.size < tasks) return;
        this.onRun = undefined;
        this.workers.shift()!.kill('SIGKILL');
        resolve();
      };
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.workers.map((worker) => this.end(worker)));
  }

  /** Asks the oldest worker to end, by SIGTERM as any orchestrator does; resolves with its exit code when it has. */
  async retire(): Promise<number | null> {
    return this.end(this.workers.shift()!, 'SIGTERM');
  }

  private async end(worker: ChildProcess, signal?: NodeJS.Signals): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => worker.once('close', resolve));
    if (signal) worker.kill(signal);
    else worker.stdin!.end();
    return ended;
  }

  private ran(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
    this.onRun?.();
  }

  private async startOne(): Promise<void> {
    const program = await compiled(new URL('./durable-process.ts', import.meta.url));
    const worker = spawn(process.execPath, [program, `${this.port}`, `${this.longest}`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.workers.push(worker);
    await new Promise<void>((resolve) => {
      createInterface({ input: worker.stdout }).on('line', (line) => {
        if (line === 'ready') resolve();
        else if (line.startsWith('ran ')) this.ran(line.slice(4));
        else this.lines.push(line);
      });
    });
  }
}

describe('durability', () => {
  const cleanups: (() => Promise<unknown> | void)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function setUp({ longest = 5, ...options }: { appendOnly?: boolean; longest?: number } = {}) {
    const server: RedisProcess = await startRedis(options);
    cleanups.push(() => server.stop());
    const redis = new Redis(server.port, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
    redis.on('error', () => {});
    cleanups.push(() => redis.disconnect());
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: server.port }));
    const client = new AsynqClient(broker);
    cleanups.push(() => client.close().then(() => broker.close()));
    const fleet = new Fleet(server.port, longest);
    cleanups.push(() => fleet.stop());
    return { server, redis, client, fleet };
  }

  /** Waits until only tasks nobody runs are left, then lets their leases end in the past: recovery would wait a minute. */
  async function untilAllRan(redis: Redis, fleet: Fleet, ids: readonly string[]): Promise<void> {
    const missing = (): string[] => ids.filter((id) => !fleet.runs.has(id));
    await vi.waitFor(async () => expect(await redis.llen(keys.pending)).toBe(0), { timeout: 60_000, interval: 50 });
    const past = Math.floor(Date.now() / 1000) - 40;
    await vi.waitFor(
      async () => {
        for (const id of missing()) await redis.zadd(keys.lease, 'XX', past, id);
        expect(missing()).toEqual([]);
      },
      { timeout: 120_000, interval: 1_000 }, // an active task without a lease gets one once a minute only
    );
  }

  async function untilNothingIsLeft(redis: Redis): Promise<void> {
    const past = Math.floor(Date.now() / 1000) - 40;
    await vi.waitFor(
      async () => {
        // A task that ran but whose acknowledgement was lost with its worker: its lease ends, too.
        for (const id of await redis.lrange(keys.active, 0, -1)) await redis.zadd(keys.lease, 'XX', past, id);
        const left = await redis.keys(`${keys.taskPrefix}*`);
        expect(left).toEqual([]);
      },
      { timeout: 60_000, interval: 1_000 },
    );
    expect(await redis.zcard(keys.archived)).toBe(0);
    expect(await redis.zcard(keys.lease)).toBe(0);
  }

  it('loses no task when one of three workers is killed in the middle of 10,000', async () => {
    const { redis, client, fleet } = await setUp();
    await fleet.start(3);
    const killed = fleet.killAfter(2_000);
    const results = await client.enqueueMany(
      'work',
      Array.from({ length: 10_000 }, (_, n) => ({ n })),
    );
    const ids = results.map(({ info }) => info!.id);
    await killed;
    await untilAllRan(redis, fleet, ids);
    await untilNothingIsLeft(redis);
    const twice = [...fleet.runs.values()].filter((runs) => runs > 1).length;
    expect(twice).toBeLessThanOrEqual(2 * 40); // at most what the killed worker had in hand, or finished and unacknowledged
  }, 240_000);

  it('loses nothing and runs nothing twice while workers are replaced by SIGTERM in the middle of 5,000', async () => {
    const { redis, client, fleet } = await setUp({ longest: 500 });
    const results = await client.enqueueMany(
      'work',
      Array.from({ length: 5_000 }, (_, n) => ({ n })),
    );
    await fleet.start(3);
    const codes: (number | null)[] = [];
    for (let replaced = 1; replaced <= 4; replaced++) {
      const progress = replaced * 700;
      await vi.waitFor(() => expect(fleet.runs.size).toBeGreaterThan(progress), { timeout: 60_000, interval: 2 });
      const [code] = await Promise.all([fleet.retire(), fleet.start(1)]);
      codes.push(code);
    }
    expect(codes).toEqual(Array(4).fill(0));
    // No lease has to end for this: whoever left has settled or given back everything it had.
    await vi.waitFor(async () => expect(await redis.keys(`${keys.taskPrefix}*`)).toEqual([]), {
      timeout: 30_000,
      interval: 50,
    });
    await vi.waitFor(() => expect(fleet.runs.size).toBe(5_000)); // the last lines of their output
    expect([...fleet.runs.keys()].sort()).toEqual(results.map(({ info }) => info!.id).sort());
    expect(new Set(fleet.runs.values())).toEqual(new Set([1]));
    expect(await redis.exists(keys.active, keys.lease, keys.retry, keys.archived, keys.failed)).toBe(0);
    expect(await redis.get(keys.processed)).toBe('5000');
    expect(fleet.lines).not.toContain('unreachable');
  }, 240_000);

  it('loses no accepted task when Redis is killed and restarted under load', async () => {
    const { server, redis, client, fleet } = await setUp({ appendOnly: true });
    await fleet.start(2);
    const accepted: string[] = [];
    let producing = true;
    const produce = async (): Promise<void> => {
      while (producing) {
        // What is refused was not promised to anybody.
        await client.enqueue('work', { x: 1 }).then(
          ({ id }) => accepted.push(id),
          () => undefined,
        );
      }
    };
    const producers = Array.from({ length: 20 }, produce);
    await vi.waitFor(() => expect(fleet.runs.size).toBeGreaterThan(500), { timeout: 60_000, interval: 5 });
    await server.kill();
    await vi.waitFor(() => expect(fleet.lines).toContain('unreachable'), { timeout: 30_000 });
    await server.restart();
    await vi.waitFor(() => expect(fleet.lines).toContain('reachable'), { timeout: 30_000 });
    const sofar = accepted.length;
    await vi.waitFor(() => expect(accepted.length).toBeGreaterThan(sofar + 300), { timeout: 60_000, interval: 5 });
    producing = false;
    await Promise.all(producers);
    await untilAllRan(redis, fleet, accepted);
    await untilNothingIsLeft(redis);
    expect(fleet.runs.size).toBeGreaterThanOrEqual(accepted.length);
  }, 240_000);
});
