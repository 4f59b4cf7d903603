import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  AsynqServer,
  type AsynqEventMap,
  defineTask,
  InjectTasks,
  PeriodicTask,
  TaskHandler,
  type TasksOf,
  workflow,
} from 'nestjs-asynq';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { quiet, testApp } from './support.js';

const Refresh = defineTask<number>('refresh', { expiresIn: '5m' });
const ran: unknown[] = [];
beforeEach(() => void ran.splice(0));

@Injectable()
class Tasks {
  @TaskHandler(Refresh)
  refresh(payload: number) {
    ran.push(payload);
  }
  @TaskHandler('after')
  after() {
    ran.push('after');
  }
}

const idle = () => testApp({ providers: [Tasks] });

describe('expiresIn', () => {
  it('is an option of a method call', async () => {
    @Injectable()
    class Caller {
      constructor(@InjectTasks(Tasks) readonly tasks: TasksOf<Tasks>) {}
    }
    const { app, tasks } = await testApp({ providers: [Tasks, Caller] });
    await app.get(Caller).tasks.with({ expiresIn: '1s', onExpiry: 'drop' }).refresh(1);
    await app.get(Caller).tasks.refresh(2);
    tasks.clock.advance(2_000);
    expect(await tasks.drain()).toMatchObject({ revoked: 1, total: 2 });
    expect(ran).toEqual([2]);
  });

  it('ends a step of a workflow as failed, and says why', async () => {
    const { app, tasks } = await idle();
    const flow = workflow('w')
      .add('refresh', Refresh, 1)
      .add('after', defineTask<undefined>('after'), undefined, { after: 'refresh' });
    const run = await app.get(AsynqClient).start(flow, { id: 'w' });
    tasks.clock.advance(300_001);
    await tasks.drain();
    const { state, steps } = await run.done();
    expect(state).toBe('failed');
    expect(steps.refresh).toMatchObject({ error: expect.stringContaining('the task has expired') as string });
    expect(ran).toEqual([]);
  });

  it('counts the delay of a step', async () => {
    const { app, tasks } = await idle();
    const options = { processIn: '10m', expiresIn: '1m' } as const;
    await app.get(AsynqClient).start(workflow('w').add('refresh', Refresh, 1, { options }), { id: 'w' });
    await tasks.advance('11m');
    expect(ran).toEqual([1]);
  });

  it('makes a member of a batch fail; a callback cannot expire', async () => {
    const { app, tasks } = await idle();
    const client = app.get(AsynqClient);
    const batch = await client.openBatch({ name: 'b' });
    await batch.add(Refresh, [1, 2]);
    await batch.add(Refresh, [3], { expiresIn: '1h', onExpiry: 'drop' });
    await batch.close();
    tasks.clock.advance(300_001);
    await tasks.drain();
    expect(await batch.progress()).toMatchObject({ failed: 2, succeeded: 1 });
    expect(ran).toEqual([3]);
    await expect(client.openBatch({ name: 'c', onSuccess: [Refresh, 1] })).rejects.toThrow(
      'onSuccess of a batch cannot have "expiresIn"',
    );
  });

  it('is an option of a periodic task, and of what its derived id says', async () => {
    @Injectable()
    class Periodic {
      @PeriodicTask('@every 1m', { expiresIn: '30s', onExpiry: 'drop' })
      @TaskHandler('tick')
      tick() {
        ran.push('tick');
      }
    }
    const { app, tasks } = await testApp({ providers: [Periodic] });
    expect(await tasks.advance('1m')).toMatchObject({ total: 1 });
    const [entry] = await app.get(AsynqInspector).schedulerEntries();
    expect(entry!.options).toEqual(['ExpiresIn(30s)', 'OnExpiry("drop")']);
  });
});

describe('on Redis', () => {
  let redis: RedisProcess;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('a task that no server claims in time is archived, or dropped', async () => {
    const producer = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: redis.url, server: false })],
    }).compile();
    onTestFinished(() => producer.close());
    const client = producer.get(AsynqClient);
    await client.enqueue(Refresh, 1, { taskId: 'archived', expiresIn: 1 });
    await client.enqueue(Refresh, 2, { taskId: 'dropped', expiresIn: 1, onExpiry: 'drop' });
    await client.enqueue(Refresh, 3, { taskId: 'in time' });

    const worker = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: redis.url })],
      providers: [Tasks],
    })
      .setLogger(quiet)
      .compile();
    onTestFinished(() => worker.close());
    const { events } = worker.get(AsynqServer);
    const expired: AsynqEventMap['taskExpired'][] = [];
    events.on('taskExpired', (event) => expired.push(event));
    let ended = 0;
    const all = new Promise<void>((resolve) =>
      events.on('taskFinished', () => (++ended === 3 ? resolve() : undefined)),
    );
    await worker.init();
    await all;
    expect(ran).toEqual([3]);
    expect(expired.map(({ task, onExpiry }) => [task.id, onExpiry])).toEqual([
      ['archived', 'archive'],
      ['dropped', 'drop'],
    ]);
    const inspector = producer.get(AsynqInspector);
    expect(await inspector.getTaskInfo('default', 'archived')).toMatchObject({
      state: 'archived',
      retried: 0,
      lastErr: expect.stringMatching(/^the task has expired \(expiresIn\): it was to begin by /) as string,
    });
    expect(await inspector.getTaskInfo('default', 'dropped')).toBeUndefined();
  });
});
