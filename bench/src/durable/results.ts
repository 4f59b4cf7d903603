/* What it costs to wait for results: alone in an idle system, and a thousand at once beside BullMQ's waitUntilFinished. */
import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule, defineTask, TaskHandler } from '../../../dist/index.js';
import { timed } from '../composition/timed.js';
import { ofLatencies } from '../latency.js';
import type { Measurement } from '../measurement.js';

/** `pickup`: until the handler starts; `call`: until its result is there. */
const MODES = ['pickup-latency', 'call-latency', 'waits'] as const;
export type ResultsKind = `results-${(typeof MODES)[number]}`;

const CONCURRENCY = 100;
const WARM = 2_000;

/** A queue whose worker returns the number it gets, plus 1, in this process. */
interface Caller {
  /** Resolves to the result. */
  call(n: number): Promise<number>;
  enqueue(n: number): Promise<unknown>;
  close(): Promise<void>;
}

const Count = defineTask<number, number>('bench');

async function ours(port: number, onStart: () => void): Promise<Caller> {
  @Injectable()
  class Counter {
    @TaskHandler(Count)
    count(n: number): number {
      onStart();
      return n + 1;
    }
  }
  class App {}
  const module = AsynqModule.forRoot({
    connection: { host: '127.0.0.1', port },
    server: { concurrency: CONCURRENCY },
  });
  const app = await NestFactory.createApplicationContext(
    { module: App, imports: [module], providers: [Counter] },
    { logger: ['warn', 'error'] },
  );
  const client = app.get<AsynqClient>(AsynqClient);
  return {
    call: (n) => client.call(Count, n),
    enqueue: (n) => client.enqueue(Count, n),
    close: () => app.close(),
  };
}

async function bullmq(port: number, onStart: () => void): Promise<Caller> {
  const { Queue, QueueEvents, Worker } = await import('bullmq');
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  // It keeps results for as long: a result that is removed at once is not found by who waits.
  const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: { age: 60 } } });
  const events = new QueueEvents('bench', { connection });
  const run = async ({ data }: { data: number }): Promise<number> => {
    onStart();
    return data + 1;
  };
  const worker = new Worker('bench', run, { connection, concurrency: CONCURRENCY });
  worker.on('error', (error) => console.error(error));
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()]);
  return {
    call: async (n) => (await (await queue.add('bench', n)).waitUntilFinished(events, 30_000)) as number,
    enqueue: (n) => queue.add('bench', n),
    close: async () => {
      await worker.close();
      await events.close();
      await queue.close();
    },
  };
}

/** @param atOnce how many wait at the same time. In calls per second, or milliseconds. */
export async function results(
  name: string,
  kind: ResultsKind,
  port: number,
  count: number,
  atOnce: number,
): Promise<Measurement> {
  let started: () => void = () => {};
  const caller = await (name === 'ours' ? ours : bullmq)(port, () => started());
  const callMany = async (calls: number): Promise<void> => {
    for (let from = 0; from < calls; from += atOnce) {
      const some = Array.from({ length: Math.min(atOnce, calls - from) }, (_, n) => caller.call(from + n));
      if ((await Promise.all(some)).some((result, n) => result !== from + n + 1)) throw new Error('a wrong result');
    }
  };
  await callMany(Math.min(WARM, count));
  const measured =
    kind === 'results-waits'
      ? await timed(count, () => callMany(count))
      : await latency(count, async (n) => {
          if (kind === 'results-call-latency') return caller.call(n);
          const start = new Promise<void>((resolve) => (started = resolve));
          await caller.enqueue(n);
          return start;
        });
  await caller.close();
  return measured;
}

async function latency(count: number, work: (n: number) => Promise<unknown>): Promise<Measurement> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    await new Promise((resolve) => setTimeout(resolve, 15 + Math.random() * 30)); // the pause is part of the load
    const sent = performance.now();
    await work(n);
    times.push(performance.now() - sent);
  }
  return ofLatencies(times);
}
