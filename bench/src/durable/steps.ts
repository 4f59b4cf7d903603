/*
 * Handlers with five steps that do nothing, beside DBOS on PostgreSQL; and what it costs to sleep, and to be woken by a signal.
 *
 * Ours are tasks of one queue, in a server with as many slots as workflows run at once there; Redis writes its append-only file as the system says.
 * DBOS awaits as many workflows at once in its process. Both count steps per second, until the last workflow has ended.
 */
import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import {
  AsynqClient,
  AsynqModule,
  defineSignal,
  defineTask,
  Steps,
  TaskHandler,
  type TaskSteps,
} from '../../../dist/index.js';
import { timed } from '../composition/timed.js';
import { ofLatencies } from '../latency.js';
import type { Measurement } from '../measurement.js';
import { settingsOf } from '../outbox/postgres.js';

const MODES = ['run', 'signal-latency', 'sleep'] as const;
export type StepsKind = `steps-${(typeof MODES)[number]}`;

const STEPS = 5;
/** Workflows before the measured ones, at most as many as these. */
const WARM = 200;
const QUEUE = 'bench';

const Work = defineTask('bench:steps', { queue: QUEUE });
const Sleep = defineTask('bench:sleep', { queue: QUEUE });
const Wait = defineTask('bench:wait', { queue: QUEUE });
const Signal = defineSignal('go');

/** @param ended called when a handler has ended, or goes on after its wait */
async function start(port: number, concurrency: number, ended: () => void) {
  @Injectable()
  class Durable {
    @TaskHandler(Work)
    async work(@Steps() steps: TaskSteps): Promise<void> {
      for (let n = 0; n < STEPS; n++) await steps.run(`step ${n}`, () => n);
      ended();
    }

    @TaskHandler(Sleep)
    async sleep(@Steps() steps: TaskSteps): Promise<void> {
      ended();
      await steps.sleep('nap', '30d');
    }

    @TaskHandler(Wait)
    async wait(@Steps() steps: TaskSteps): Promise<void> {
      await steps.waitFor('go', Signal);
      ended();
    }
  }
  class App {}
  const module = AsynqModule.forRoot({
    connection: { host: '127.0.0.1', port },
    server: { concurrency, queues: [QUEUE] },
  });
  const app = await NestFactory.createApplicationContext(
    { module: App, imports: [module], providers: [Durable] },
    { logger: ['warn', 'error'] },
  );
  return { app, client: app.get<AsynqClient>(AsynqClient) };
}

/** Counts calls, and says when there were so many. */
class Counter {
  private count = 0;
  private wanted = Infinity;
  private resolve = (): void => undefined;

  readonly add = (): void => {
    if (++this.count >= this.wanted) this.resolve();
  };

  until(wanted: number): Promise<void> {
    this.count = 0;
    this.wanted = wanted;
    return new Promise((resolve) => (this.resolve = resolve));
  }
}

/** Redis as a durable store: what is written is in its append-only file. */
async function persist(port: number, fsync: string): Promise<() => Promise<void>> {
  const redis = new Redis(port);
  await redis.config('SET', 'appendfsync', fsync);
  await redis.config('SET', 'appendonly', 'yes');
  return async () => {
    await redis.config('SET', 'appendonly', 'no');
    redis.disconnect();
  };
}

async function oursRun(port: number, workflows: number, atOnce: number, fsync: string): Promise<Measurement> {
  const restore = await persist(port, fsync);
  const counter = new Counter();
  const { app, client } = await start(port, atOnce, counter.add);
  const run = async (count: number): Promise<void> => {
    const all = counter.until(count);
    await client.enqueueMany(Work, new Array<undefined>(count).fill(undefined));
    await all;
  };
  await run(Math.min(WARM, workflows));
  const measured = await timed(workflows * STEPS, () => run(workflows));
  await app.close();
  await restore();
  return measured;
}

async function dbosRun(workflows: number, atOnce: number): Promise<Measurement> {
  const { DBOS } = await import('@dbos-inc/dbos-sdk');
  const { host, port, user, database } = settingsOf(Number(process.env['BENCH_POSTGRES_PORT']));
  const systemDatabaseUrl = `postgresql://${user}@${host}:${port}/${database}`;
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl, logLevel: 'error' });
  const workflow = DBOS.registerWorkflow(
    async () => {
      for (let n = 0; n < STEPS; n++) await DBOS.runStep(async () => n, { name: `step ${n}` });
    },
    { name: 'work' },
  );
  await DBOS.launch();
  const run = async (count: number): Promise<void> => {
    let left = count;
    const one = async (): Promise<void> => {
      while (left-- > 0) await workflow();
    };
    await Promise.all(Array.from({ length: atOnce }, one));
  };
  await run(Math.min(WARM, workflows));
  const measured = await timed(workflows * STEPS, () => run(workflows));
  await DBOS.shutdown();
  return measured;
}

/** Bytes of Redis per sleeping task, and how many fall asleep per second. */
async function sleeping(port: number, count: number): Promise<Measurement> {
  const counter = new Counter();
  const { app, client } = await start(port, 100, counter.add);
  const redis = new Redis(port);
  const used = async (): Promise<number> => Number(/used_memory_dataset:(\d+)/.exec(await redis.info('memory'))?.[1]);
  const before = await used();
  const measured = await timed(count, async () => {
    const all = counter.until(count);
    for (let left = count; left > 0; left -= 1000) {
      await client.enqueueMany(Sleep, new Array<undefined>(Math.min(1000, left)).fill(undefined), { infos: false });
    }
    await all;
    while ((await redis.zcard(`asynq:{${QUEUE}}:scheduled`)) < count)
      await new Promise((resolve) => setImmediate(resolve));
  });
  const bytes = ((await used()) - before) / count;
  redis.disconnect();
  await app.close();
  return { ...measured, bytes };
}

/** Milliseconds from the call of `signal` until the handler goes on, in an idle system. */
async function signalLatency(port: number, count: number): Promise<Measurement> {
  const counter = new Counter();
  const { app, client } = await start(port, 10, counter.add);
  const redis = new Redis(port);
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const info = await client.enqueue(Wait, undefined);
    while ((await redis.zcard(`asynq:{${QUEUE}}:scheduled`)) === 0)
      await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, 15 + Math.random() * 30)); // the pause is part of the load
    const goesOn = counter.until(1);
    const sent = performance.now();
    await client.signal(info, Signal);
    await goesOn;
    times.push(performance.now() - sent);
  }
  redis.disconnect();
  await app.close();
  return ofLatencies(times);
}

/** @param count workflows, tasks or signals. @param atOnce how many workflows run at the same time */
export function steps(
  name: string,
  kind: StepsKind,
  port: number,
  count: number,
  atOnce: number,
): Promise<Measurement> {
  if (kind === 'steps-signal-latency') return signalLatency(port, count);
  if (kind === 'steps-sleep') return sleeping(port, count);
  if (name === 'dbos') return dbosRun(Math.ceil(count / 5), atOnce); // it is slower, and need not take as long
  return oursRun(port, count, atOnce, name === 'ours, fsync always' ? 'always' : 'everysec');
}
