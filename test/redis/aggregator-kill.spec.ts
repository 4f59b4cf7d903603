import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

vi.setConfig({ testTimeout: 60_000 });

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

type Place = 'function' | 'before' | 'after' | 'nowhere';

const started: Aggregating[] = [];

/** See aggregator-process.ts. */
class Aggregating {
  readonly lines: string[] = [];
  readonly process: ChildProcess;
  errors = '';
  private readonly ended: Promise<unknown>;

  constructor(redis: { host: string; port: number }, queue: string, place: Place) {
    const args = [redis.host, String(redis.port), queue, place];
    const program = [path('../support/run-ts.mjs'), path('./aggregator-process.ts')];
    this.process = spawn(process.execPath, [...program, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.ended = once(this.process, 'close');
    createInterface({ input: this.process.stdout! }).on('line', (line) => this.lines.push(line));
    this.process.stderr!.on('data', (data: Buffer) => (this.errors += data.toString()));
    started.push(this);
  }

  /** The rest of the lines that begin with a word. */
  said(word: string): string[] {
    return this.lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  }

  until(word: string, count = 1): Promise<void> {
    return vi.waitFor(
      () => expect(this.said(word).length, this.errors + this.lines.join()).toBeGreaterThanOrEqual(count),
      { timeout: 30_000, interval: 10 },
    );
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

let server: RedisProcess;
let redis: Redis;
let broker: RedisBroker;
beforeAll(async () => {
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

/** Seven tasks in two groups: with sets of three at most they become four, in whatever order. */
const PARTS = { g: ['1', '2', '3', '4', '5'], 'h:i': ['6', '7'] };

/** A process that has claimed these tasks and stands where it is told to. */
async function startVictim(queue: string, place: Place): Promise<Aggregating> {
  const keys = new Keyspace().queue(queue);
  const requests = Object.entries(PARTS).flatMap(([groupKey, lines]) =>
    lines.map((line) => {
      const payload = Buffer.from(line);
      return request({ queue, groupKey, payload, uniqueKey: keys.unique('part', payload) }, { uniqueTtl: 600 });
    }),
  );
  await broker.enqueue(queue, requests);
  const victim = new Aggregating(server, queue, place);
  await victim.until('at');
  return victim;
}

/** Lets the two minutes of every claimed set be over, and a process without fear do the rest. */
async function succeed(queue: string): Promise<Aggregating> {
  const { aggregationSets, base } = new Keyspace().queue(queue);
  for (const set of await redis.zrange(aggregationSets, '0', '-1')) await redis.zadd(aggregationSets, 1, set);
  const successor = new Aggregating(server, queue, 'nowhere');
  await vi.waitFor(
    async () => {
      const left = await redis.keys(`${base}*`);
      expect(left.filter((key) => /:(t:|g:|groups$|aggregation_sets$|unique:|pending$|active$)/.test(key))).toEqual([]);
    },
    { timeout: 30_000, interval: 20 },
  );
  return successor;
}

const linesOf = (aggregates: readonly string[]): string[] => aggregates.flatMap((one) => one.split(',')).sort();

describe.concurrent('an aggregating process', () => {
  it.for(['function', 'before', 'after'] as const)(
    'killed at the point "%s" loses nothing and doubles nothing',
    async (place, { expect }) => {
      const victim = await startVictim(place, place);
      await victim.kill();
      const successor = await succeed(place);
      expect(linesOf(successor.said('made'))).toEqual(['1', '2', '3', '4', '5', '6', '7']);
      expect(successor.said('failed')).toEqual([]);
      expect(victim.errors + successor.errors).toBe('');
    },
  );

  it('that stood still for too long stores nothing of what it makes then', async ({ expect }) => {
    const victim = await startVictim('paused', 'before');
    victim.process.kill('SIGSTOP');
    const successor = await succeed('paused');
    victim.process.kill('SIGCONT');
    victim.process.stdin!.write('go on\n');
    await victim.until('failed');
    expect(new Set(victim.said('failed'))).toEqual(new Set(['ASYNQ_AGGREGATION_SET_LOST']));
    expect(await redis.keys('asynq:{paused}:t:*')).toEqual([]);
    expect(linesOf(successor.said('made'))).toEqual(['1', '2', '3', '4', '5', '6', '7']);
    expect(victim.errors + successor.errors).toBe('');
  });
});
