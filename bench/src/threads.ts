/* Handlers for the CPU in threads: two at once on two cores beside one after the other, and what a call of a thread costs. */
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule, AsynqServer, TaskHandler } from '../../dist/index.js';
import type { Measurement } from './measurement.js';

const MODES = ['cpu-latency', 'call-latency'] as const;
export type ThreadsKind = `threads-${(typeof MODES)[number]}`;

/** Some tenths of a second. */
const ROUNDS = 60_000_000;
const CPU = 'bench:cpu';
const ECHO = 'bench:echo';

@Injectable()
class InThreads {
  @TaskHandler(CPU, { thread: true })
  compute(rounds: number): number {
    let value = 1;
    for (let round = 0; round < rounds; round++) value = (value * 31 + round) % 1_000_003;
    return value;
  }

  @TaskHandler(ECHO, { thread: true })
  echo(payload: unknown): unknown {
    return payload;
  }
}

/** What each thread loads: this file. */
@Module({ providers: [InThreads] })
export class ThreadsModule {}

@Injectable()
class Inline {
  @TaskHandler(ECHO)
  echo(payload: unknown): unknown {
    return payload;
  }
}

async function start(port: number, count: number) {
  const server = { concurrency: Math.max(count, 1), queues: ['bench'] };
  const threads = { module: new URL('./threads.js', import.meta.url), export: 'ThreadsModule', count };
  @Module({
    imports: [
      AsynqModule.forRoot({
        connection: { host: '127.0.0.1', port },
        defaults: { queue: 'bench' },
        server: count > 0 ? { ...server, threads } : server,
      }),
      ...(count > 0 ? [ThreadsModule] : []),
    ],
    providers: count > 0 ? [] : [Inline],
  })
  class BenchModule {}
  const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['warn', 'error'] });
  const client = app.get<AsynqClient>(AsynqClient);
  const { events } = app.get<AsynqServer>(AsynqServer);
  const run = async (type: string, payloads: readonly unknown[]): Promise<number> => {
    let left = payloads.length;
    const ended = new Promise<void>((resolve) => {
      const off = events.on('taskFinished', () => {
        if (--left > 0) return;
        off();
        resolve();
      });
    });
    const begun = performance.now();
    await client.enqueueMany(type, payloads);
    await ended;
    return performance.now() - begun;
  };
  return { run, close: () => app.close() };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/**
 * Milliseconds for two tasks that compute, in so many threads; or microseconds of a task that does nothing, in a thread or without one,
 * which is what a call costs.
 */
export async function threads(system: string, kind: ThreadsKind, port: number, count: number): Promise<Measurement> {
  const threadCount = system === 'two threads' ? 2 : system === 'no thread' ? 0 : 1;
  const { run, close } = await start(port, threadCount);
  if (kind === 'threads-cpu-latency') {
    const warm = Array.from({ length: 2 * threadCount }, () => 1_000_000);
    await run(CPU, warm);
    const times: number[] = [];
    for (let round = 0; round < count; round++) times.push(await run(CPU, [ROUNDS, ROUNDS]));
    await close();
    return { value: median(times) };
  }
  const payloads = Array.from({ length: count }, (_, n) => ({ n, text: 'x'.repeat(80) }));
  await run(ECHO, payloads);
  const time = await run(ECHO, payloads);
  await close();
  return { value: (time * 1_000) / count };
}
