import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule, defineTask, TaskHandler } from '../../../dist/index.js';
import type { Measurement } from '../measurement.js';
import { makePayload, type Payload } from '../system.js';
import { timed } from './timed.js';

const Row = defineTask<Payload>('row');
const Before = defineTask<{ at: number }>('before', { queue: 'one', key: ({ at }) => `${at}`, rememberFor: '1m' });
const After = defineTask<{ at: number }>('after', { queue: 'two', key: ({ at }) => `${at}`, after: Before });

/** Rows that are added and run before those that are measured, for the JavaScript compiler. */
const WARM_ROWS = 30_000;

let rowRan: () => void = () => undefined;
let beforeEnds = 0;
let afterStarted: (latency: number) => void = () => undefined;

@Injectable()
class Rows {
  @TaskHandler(Row)
  row(): void {
    rowRan();
  }

  @TaskHandler(Before)
  before(): void {
    beforeEnds = performance.now();
  }

  @TaskHandler(After)
  after(): void {
    afterStarted(performance.now() - beforeEnds);
  }
}

async function start(port: number, server: false | { concurrency: number; queues?: string[] }) {
  @Module({ imports: [AsynqModule.forRoot({ connection: { host: '127.0.0.1', port }, server })], providers: [Rows] })
  class BenchModule {}
  return NestFactory.createApplicationContext(BenchModule, { logger: ['warn', 'error'] });
}

/** Rows as members of a batch, or plain: the time to add them, or to run them. In tasks per second. */
export async function rows(
  port: number,
  part: 'add' | 'run',
  count: number,
  concurrency: number,
  batched: boolean,
): Promise<Measurement> {
  const producer = await start(port, false);
  const client = producer.get<AsynqClient>(AsynqClient);
  const add = async (some: number): Promise<void> => {
    const payloads = Array.from({ length: some }, (_, n) => makePayload(n));
    if (!batched) return void (await client.enqueueMany(Row, payloads));
    const batch = await client.openBatch({ name: 'rows' });
    await batch.add(Row, payloads);
    await batch.close();
  };
  const warm = Math.min(count, WARM_ROWS);
  await add(warm);
  const adding = await timed(count, () => add(count));
  if (part === 'add') {
    await producer.close();
    return adding;
  }
  let ran = 0;
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  rowRan = () => {
    if (++ran === warm) begin();
    if (ran === warm + count) finish();
  };
  const worker = await start(port, { concurrency });
  await begun;
  const running = await timed(warm + count - ran, () => finished);
  await worker.close();
  await producer.close();
  return running;
}

/** From the end of a prerequisite to the start of its dependent, in two queues of an idle server. */
export async function linkLatency(port: number, count: number): Promise<Measurement> {
  const app = await start(port, { concurrency: 10, queues: ['one', 'two'] });
  const client = app.get<AsynqClient>(AsynqClient);
  const times: number[] = [];
  for (let at = 0; at < count; at++) {
    await new Promise((resolve) => setTimeout(resolve, 15 + Math.random() * 30)); // the pause is part of the load
    const started = new Promise<number>((resolve) => (afterStarted = resolve));
    await client.enqueue(After, { at });
    await client.enqueue(Before, { at });
    times.push(await started);
  }
  await app.close();
  const sorted = times.slice(Math.floor(count / 10)).sort((a, b) => a - b);
  const part = (share: number): number => sorted[Math.floor(sorted.length * share)]!;
  return { value: part(0.5), p95: part(0.95) };
}
