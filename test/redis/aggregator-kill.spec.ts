import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { compiled } from '../support/programs.js';

vi.setConfig({ testTimeout: 60_000 });

const keyspace = new Keyspace();

/** Seven tasks in two groups: with sets of three at most they become three. */
const PARTS = { g: ['1', '2', '3', '4', '5'], 'h:i': ['6', '7'] };
const LINES = Object.values(PARTS).flat();

let program: string;
let server: RedisProcess;
let redis: Redis;
let broker: RedisBroker;
const started: Aggregating[] = [];
beforeAll(async () => {
  program = await compiled(new URL('./aggregator-process.ts', import.meta.url));
  server = await startRedis();
  redis = new Redis(server.port, server.host);
  broker = new RedisBroker(new RedisConnections({ host: server.host, port: server.port }));
});
afterAll(async () => {
  await Promise.all(started.map((one) => one.kill()));
  await broker.close();
  redis.disconnect();
  await server.stop();
});

/** See aggregator-process.ts. */
class Aggregating {
  readonly lines: string[] = [];
  readonly process: ChildProcess;
  errors = '';
  private readonly ended: Promise<unknown>;

  constructor(queues: readonly string[], role: 'wait' | 'run') {
    const args = [program, server.host, String(server.port), queues.join(), role];
    this.process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.ended = once(this.process, 'close');
    createInterface({ input: this.process.stdout! }).on('line', (line) => this.lines.push(line));
    this.process.stderr!.on('data', (data: Buffer) => (this.errors += data.toString()));
    started.push(this);
  }

  until(line: string): Promise<void> {
    return vi.waitFor(() => expect(this.lines, this.errors).toContain(line), { timeout: 30_000, interval: 10 });
  }

  /** The tasks of the queue that it has run. */
  made(queue: string): string[] {
    const prefix = `made ${queue} `;
    const aggregates = this.lines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
    return aggregates.flatMap((lines) => lines.split(',')).sort();
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

/**
 * A process that has claimed the tasks of each queue, and has stopped at the point that the queue's
 * name says.
 */
async function startVictim(...queues: string[]): Promise<Aggregating> {
  for (const queue of queues) {
    const requests = Object.entries(PARTS).flatMap(([groupKey, lines]) =>
      lines.map((line) => {
        const payload = Buffer.from(line);
        const uniqueKey = keyspace.queue(queue).unique('part', payload);
        return request({ queue, groupKey, payload, uniqueKey }, { uniqueTtl: 600 });
      }),
    );
    await broker.producer.enqueue(queue, requests);
  }
  const victim = new Aggregating(queues, 'wait');
  for (const queue of queues) await victim.until(`at ${queue}`);
  return victim;
}

/** Expires every claimed set, and lets another process finish the work until nothing is left. */
async function succeed(...queues: string[]): Promise<Aggregating> {
  for (const { aggregationSets } of queues.map((queue) => keyspace.queue(queue))) {
    for (const set of await redis.zrange(aggregationSets, '0', '-1')) await redis.zadd(aggregationSets, 1, set);
  }
  const successor = new Aggregating(queues, 'run');
  await vi.waitFor(
    async () => {
      const left = await redis.keys('asynq:{*');
      expect(left.filter((key) => !/:(processed|failed)(:|$)/.test(key) && !/servers|workers/.test(key))).toEqual([]);
    },
    { timeout: 30_000, interval: 20 },
  );
  return successor;
}

describe('an aggregating process', () => {
  it('that is killed at any point loses nothing and duplicates nothing', async () => {
    const queues = ['function', 'before', 'after'];
    const victim = await startVictim(...queues);
    await victim.kill();
    const successor = await succeed(...queues);
    for (const queue of queues) expect(successor.made(queue)).toEqual(LINES);
    expect(victim.errors + successor.errors).toBe('');
  });

  it('that stood still for too long does not store its late result', async () => {
    const queue = 'before: a pause';
    const victim = await startVictim(queue);
    victim.process.kill('SIGSTOP');
    const successor = await succeed(queue);
    victim.process.kill('SIGCONT');
    victim.process.stdin!.write('go on\n');
    await victim.until('failed ASYNQ_AGGREGATION_SET_LOST');
    expect(await redis.keys(keyspace.queue(queue).task('*'))).toEqual([]);
    expect(successor.made(queue)).toEqual(LINES);
    expect(victim.errors + successor.errors).toBe('');
  });
});
