import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqModule,
  AsynqSemaphores,
  TaskCtx,
  TaskHandler,
  getAsynqSemaphoresToken,
  type TaskContext,
} from 'nestjs-asynq';
import { expect, test } from 'vitest';
import { testApp } from './support.js';

test('a handler asks for a token, and without one its task runs again later', async () => {
  const done: string[] = [];

  @Injectable()
  class Calls {
    constructor(private readonly semaphores: AsynqSemaphores) {}

    @TaskHandler('call')
    async call(@TaskCtx() task: TaskContext): Promise<void> {
      await this.semaphores.get('api', 1).run(task, () => void done.push(task.id), { wait: '4s' });
    }
  }

  const { app, tasks } = await testApp({ providers: [Calls] });
  await app.init();
  const other = { id: 'other', deadline: new Date(tasks.clock.now() + 60_000) };
  const api = app.get(AsynqSemaphores).get('api', 1);
  await api.acquire(other);
  await app.get(AsynqClient).enqueue('call', null, { taskId: 'a', maxRetry: 0 });
  expect(await tasks.advance(0)).toMatchObject({ postponed: 1, done: 0 });
  await api.release(other);
  expect(await tasks.advance('7s')).toMatchObject({ postponed: 0, done: 1 });
  expect(done).toEqual(['a']);
});

test('each connection has separate semaphores', async () => {
  const billing = AsynqModule.forRoot({ connection: 'memory', name: 'billing' });
  const { app } = await testApp({ imports: [billing] });
  await app.init();
  const task = { id: 'a', deadline: new Date(Date.now() + 60_000) };
  expect(await app.get<AsynqSemaphores>(getAsynqSemaphoresToken('billing')).get('api', 1).acquire(task)).toBe(true);
  const main = app.get(AsynqSemaphores).get('api', 1);
  expect(await main.acquire({ ...task, id: 'b' })).toBe(true);
});
