/* What a fair queue costs beside a plain one, and how long small tenants wait behind a large one. */
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { AsynqClient, AsynqModule, defineTask, TaskHandler } from '../../dist/index.js';
import { timed } from './composition/timed.js';
import type { Measurement } from './measurement.js';

const MODES = ['enqueue', 'process', 'wait-latency'] as const;
export type FairnessKind = `fairness-${(typeof MODES)[number]}`;

interface Keyed {
  readonly tenant: string;
  readonly text: string;
}

const QUEUE = 'bench';
const PLAIN = defineTask<Keyed>('bench', { queue: QUEUE });
const FAIR = defineTask<Keyed>('bench', { queue: QUEUE, fairness: { key: ({ tenant }) => tenant } });
const AT_ONCE = 1_000;

/** The small tenants, and what each of them has waiting behind the large one. */
const SMALL_TENANTS = 99;
const TASKS_OF_EACH = 20;

/** About 100 bytes of JSON. */
const payloadOf = (tenant: string): Keyed => ({ tenant, text: 'x'.repeat(75 - tenant.length) });

let handle: (payload: Keyed) => Promise<void> | void = () => undefined;

@Injectable()
class Tasks {
  @TaskHandler('bench')
  run(payload: Keyed): Promise<void> | void {
    return handle(payload);
  }
}

const open: { close(): Promise<void> }[] = [];

async function start(port: number, fairness: boolean, server: false | { concurrency: number }) {
  @Module({
    imports: [
      AsynqModule.forRoot({
        connection: { host: '127.0.0.1', port },
        queues: { [QUEUE]: { fairness } },
        server: server && { ...server, queues: { [QUEUE]: 1 } },
      }),
    ],
    providers: [Tasks],
  })
  class BenchModule {}
  const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['warn', 'error'] });
  open.push(app);
  return app;
}

/** Processor time of Redis, in microseconds. */
async function redisTime(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (name: string) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]);
  return (seconds('used_cpu_user_main_thread') + seconds('used_cpu_sys_main_thread')) * 1e6;
}

const dataset = async (redis: Redis): Promise<number> =>
  Number(/used_memory_dataset:(\d+)/.exec(await redis.info('memory'))?.[1]);

async function enqueueAll(client: AsynqClient, isFair: boolean, payloads: readonly Keyed[]): Promise<void> {
  for (let from = 0; from < payloads.length; from += AT_ONCE) {
    await client.enqueueMany(isFair ? FAIR : PLAIN, payloads.slice(from, from + AT_ONCE), { infos: false });
  }
}

/** All tasks of the measured part wait, each key in turn; then they run without doing anything. */
async function throughput(
  kind: 'enqueue' | 'process',
  redis: Redis,
  keys: number,
  [port, count, concurrency, warm]: readonly [number, number, number, number],
): Promise<Measurement> {
  const isFair = keys > 0;
  const app = await start(port, isFair, false);
  const client = app.get<AsynqClient>(AsynqClient);
  const payloads = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => payloadOf(`tenant-${(from + i) % (keys || 1_000)}`));
  if (kind === 'enqueue') {
    await enqueueAll(client, isFair, payloads(0, AT_ONCE));
    await redis.flushall();
    const items = payloads(0, count);
    const [bytes, before] = [await dataset(redis), await redisTime(redis)];
    const measured = await timed(count, () => enqueueAll(client, isFair, items));
    const used = (await redisTime(redis)) - before;
    return { ...measured, redis: used / count, bytes: ((await dataset(redis)) - bytes) / count };
  }
  await enqueueAll(client, isFair, payloads(0, warm + count));
  let handled = 0;
  let begin = (): void => {};
  let end = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const ended = new Promise<void>((resolve) => (end = resolve));
  handle = () => {
    handled++;
    if (handled === warm) begin();
    if (handled === warm + count) end();
  };
  await start(port, isFair, { concurrency });
  await begun;
  let before = 0;
  const measured = await timed(count, async () => {
    before = await redisTime(redis);
    await ended;
    while ((await redis.llen(`asynq:{${QUEUE}}:active`)) > 0) await new Promise((resolve) => setImmediate(resolve));
  });
  return { ...measured, redis: ((await redisTime(redis)) - before) / count };
}

/**
 * A large tenant has `count` tasks, and behind it 99 have 20 each. How many milliseconds after the first task of all the tasks of the
 * small ones start. `equal shares` is a plain queue into which the tasks come in the order that equal shares give.
 */
async function waits(name: string, port: number, count: number, concurrency: number): Promise<Measurement> {
  const isFair = name === 'fair queue';
  const app = await start(port, isFair, false);
  const large = Array.from({ length: count }, () => payloadOf('large'));
  const small = Array.from({ length: TASKS_OF_EACH * SMALL_TENANTS }, (_, i) =>
    payloadOf(`small-${i % SMALL_TENANTS}`),
  );
  const turns = Array.from({ length: TASKS_OF_EACH }, (_, turn) => [
    large[turn]!,
    ...small.slice(turn * SMALL_TENANTS, (turn + 1) * SMALL_TENANTS),
  ]).flat();
  const order = name === 'equal shares' ? [...turns, ...large.slice(TASKS_OF_EACH)] : [...large, ...small];
  await enqueueAll(app.get<AsynqClient>(AsynqClient), isFair, order);
  const times: number[] = [];
  let first: number | undefined;
  let started: Promise<unknown> | undefined;
  await new Promise<void>((resolve) => {
    handle = ({ tenant }) => {
      const now = performance.now();
      first ??= now;
      if (tenant !== 'large') times.push(now - first);
      if (times.length === small.length) resolve();
      return new Promise((done) => setTimeout(done, 1 + Math.random() * 4));
    };
    started = start(port, isFair, { concurrency });
  });
  await started;
  const sorted = times.sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)]!;
  return { value: at(0.5), p95: at(0.95) };
}

/** @param name of the queue: `plain queue`, `equal shares`, `fair queue` or `fair, <n> keys` */
export async function fairness(
  name: string,
  kind: FairnessKind,
  port: number,
  count: number,
  concurrency: number,
  warm: number,
): Promise<Measurement> {
  const redis = new Redis(port);
  const keys = Number(/[\d,]+(?= keys)/.exec(name)?.[0].replaceAll(',', '') ?? 0);
  const mode = kind === 'fairness-enqueue' ? 'enqueue' : 'process';
  const measured =
    kind === 'fairness-wait-latency'
      ? await waits(name, port, count, concurrency)
      : await throughput(mode, redis, keys, [port, count, concurrency, warm]);
  for (const app of open.splice(0)) await app.close();
  redis.disconnect();
  return measured;
}
