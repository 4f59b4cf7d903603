import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Injectable, UseInterceptors, ValidationPipe } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { IsInt } from 'class-validator';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqModule,
  AsynqServer,
  defineTask,
  Payload,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type Broker,
  type TaskContext,
  type TaskOutcome,
} from 'nestjs-asynq';
import { map } from 'rxjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { quiet } from './support.js';
import { compiled } from '../support/programs.js';

class SquareDto {
  @IsInt()
  n!: number;
}
const Square = defineTask<SquareDto>('square', { retention: '1h' });

@Injectable()
class Tasks {
  @TaskHandler(Square)
  @UseInterceptors({ intercept: (_, next) => next.handle().pipe(map((value: number) => [value])) })
  square(@Payload(new ValidationPipe({ transform: true })) { n }: SquareDto, @TaskCtx() task: TaskContext) {
    return n * n + (task.headers['plus'] ? Number(task.headers['plus']) : 0);
  }

  @TaskHandler('plain')
  async plain(_payload: unknown, task: TaskContext) {
    await task.writeResult('half');
  }
}

let redis: RedisProcess;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a Nest application enqueues and runs tasks on Redis', async () => {
  const app = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: { url: redis.url }, server: { concurrency: 4 } })],
    providers: [Tasks],
  })
    .setLogger(quiet)
    .compile();
  await app.init();
  const [client, server, broker] = [app.get(AsynqClient), app.get(AsynqServer), app.get<Broker>(ASYNQ_BROKER)];
  const finished = new Map<string, TaskOutcome>();
  const all = new Promise<void>((resolve) =>
    server.events.on('taskFinished', (outcome) => {
      finished.set(outcome.task.id, outcome);
      if (finished.size === 3) resolve();
    }),
  );
  await client.enqueue(Square, { n: 7 }, { taskId: 'valid', headers: { plus: '1' } });
  await client.enqueue(Square, { n: 'x' as unknown as number }, { taskId: 'invalid' });
  await client.enqueue('plain', undefined, { taskId: 'plain', retention: '1h' });
  await all;
  expect(finished.get('valid')).toMatchObject({ outcome: 'completed', result: [50] });
  expect(finished.get('invalid')).toMatchObject({ outcome: 'archived' });
  expect((await broker.inspection.getTask('default', 'valid'))?.result?.toString()).toBe('[50]');
  expect((await broker.inspection.getTask('default', 'invalid'))?.message.errorMsg).toBe(
    'invalid payload of task "square": n must be an integer number',
  );
  expect((await broker.inspection.getTask('default', 'plain'))?.result?.toString()).toBe('"half"');
  await app.close();
  await expect(broker.monitoring.ping()).rejects.toMatchObject({ code: 'ASYNQ_CLOSED' });
});

test('SIGTERM waits for running handlers before anything is destroyed, and loses nothing', async () => {
  const worker = spawn(process.execPath, [await compiled(new URL('./worker-process.ts', import.meta.url))], {
    env: { ...process.env, REDIS_URL: redis.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(worker, 'exit');
  const app = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: redis.url, server: false })],
  }).compile();
  await app.get(AsynqClient).enqueue('slow', undefined, { taskId: 'slow', retention: '1h' });
  const lines: string[] = [];
  for await (const line of createInterface(worker.stdout)) {
    lines.push(line);
    if (line === 'handling') worker.kill('SIGTERM');
  }
  expect(lines.filter((line) => line !== 'ready')).toEqual(['handling', 'handled', 'destroyed']);
  expect(await exited).toEqual([null, 'SIGTERM']);
  const broker = app.get<Broker>(ASYNQ_BROKER);
  expect(await broker.inspection.getTask('default', 'slow')).toMatchObject({
    state: 'completed',
    result: Buffer.from('"result"'),
  });
  await app.close();
});

test('a batch handler gets many tasks on Redis, and settles each alone', async () => {
  const sizes: number[] = [];
  @Injectable()
  class Batches {
    @TaskHandler('index', { batch: { size: 50, wait: '5s' } })
    async index(@Payload() payloads: { n: number }[]) {
      sizes.push(payloads.length);
      return payloads.map(({ n }) => (n === 7 ? new SkipRetry('seven') : n));
    }
  }
  const app = await Test.createTestingModule({
    imports: [
      AsynqModule.forRoot({ connection: { url: redis.url }, keyPrefix: 'batches', server: { concurrency: 4 } }),
    ],
    providers: [Batches],
  })
    .setLogger(quiet)
    .compile();
  const client = app.get(AsynqClient);
  await client.enqueueMany(Array.from({ length: 100 }, (_, n) => ({ type: 'index', payload: { n } })));
  await app.init();
  const server = app.get(AsynqServer);
  const outcomes: TaskOutcome[] = [];
  await new Promise<void>((resolve) =>
    server.events.on('taskFinished', (outcome) => {
      if (outcomes.push(outcome) === 100) resolve();
    }),
  );
  expect(sizes).toEqual([50, 50]);
  expect(outcomes.filter(({ outcome }) => outcome === 'done')).toHaveLength(99);
  expect(outcomes.find(({ outcome }) => outcome === 'archived')?.error).toEqual(new SkipRetry('seven'));
  await app.close();
});

test('a rate counts what tasks have spent on Redis', async () => {
  const ran: number[] = [];
  @Injectable()
  class Costly {
    @TaskHandler('costly', { rateLimit: { max: 10, per: '1h', cost: (payload: { cost: number }) => payload.cost } })
    run({ cost }: { cost: number }, task: TaskContext) {
      ran.push(cost);
      task.spent(1);
    }
  }
  const app = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: { url: redis.url }, keyPrefix: 'costs' })],
    providers: [Costly],
  })
    .setLogger(quiet)
    .compile();
  await app.init();
  const ended = new Promise<void>((resolve) => {
    let count = 0;
    app.get(AsynqServer).events.on('taskFinished', () => ++count === 3 && resolve());
  });
  // Only one of them fits at a time, until it has said that it has spent 1.
  for (const cost of [8, 7, 6]) await app.get(AsynqClient).enqueue('costly', { cost });
  await ended;
  expect(ran.sort()).toEqual([6, 7, 8]);
  await app.close();
});
