/*
 * bench/console/main.mjs starts this: `web` is an application with the console, `worker` enqueues and runs the tasks.
 * Prints `listening <port>`, or `ran <count>` after every thousand tasks.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule, SkipRetry, TaskHandler } from '../../dist/index.js';
import { AsynqDashboardModule } from '../../dist/dashboard/index.js';

const [role, port, tasks] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(port) };
const LOGGER = { logger: ['warn', 'error'], abortOnError: false };
const QUEUES = { critical: 6, default: 3, low: 1 };

async function startWeb() {
  class Web {}
  const asynq = AsynqModule.forRoot({ connection, server: false });
  Module({ imports: [asynq, AsynqDashboardModule.forRoot({ access: 'destroy' })] })(Web);
  const app = await NestFactory.create(Web, LOGGER);
  await app.listen(0, '127.0.0.1');
  console.log(`listening ${app.getHttpServer().address().port}`);
}

let ran = 0;

class Tasks {
  /** One task in a thousand is archived. Only the first is logged. */
  run({ n }) {
    ran += 1;
    if (ran % 1000 === 0) console.log(`ran ${ran}`);
    if (n % 1000 === 7) throw new SkipRetry(`no. ${n} cannot be done`);
  }
}
TaskHandler('bench:task')(Tasks.prototype, 'run', Object.getOwnPropertyDescriptor(Tasks.prototype, 'run'));

async function startWorker() {
  class Worker {}
  const server = { concurrency: 100, queues: QUEUES };
  const asynq = AsynqModule.forRoot({ connection, server, autoStart: false });
  Module({ imports: [asynq], providers: [Tasks] })(Worker);
  const app = await NestFactory.createApplicationContext(Worker, { ...LOGGER, logger: false });
  await fill(app.get(AsynqClient));
  console.log('filled');
  const { AsynqServer } = await import('../../dist/index.js');
  process.stdin.once('data', () => void app.get(AsynqServer).start());
}

/** Enqueues a thousand tasks per call: of ten tasks six are critical, three default, one low. */
async function fill(client) {
  const text = 'x'.repeat(80);
  for (let first = 0; first < Number(tasks); first += 1000) {
    const items = Array.from({ length: Math.min(1000, Number(tasks) - first) }, (_, index) => {
      const n = first + index;
      const queue = n % 10 < 6 ? 'critical' : n % 10 < 9 ? 'default' : 'low';
      return { type: 'bench:task', payload: { n, text }, options: { queue } };
    });
    for (const result of await client.enqueueMany(items)) if (result.error) throw result.error;
  }
}

await (role === 'web' ? startWeb() : startWorker());
