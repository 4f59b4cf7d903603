import { Controller, Injectable, Param, Sse } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqModule,
  defineTask,
  InjectAsynqClient,
  Payload,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type TaskUpdate,
} from 'nestjs-asynq';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest';
import { quiet, rejection, testApp } from './support.js';

const Write = defineTask<string[], { words: number; at: Date }>('write', { retention: '1h' });

@Injectable()
class Writer {
  @TaskHandler(Write)
  async write(@Payload() words: string[], @TaskCtx() task: TaskContext) {
    for (const [index, word] of words.entries()) {
      if (word === '') throw new SkipRetry('an empty word');
      task.emit({ token: word });
      await Promise.resolve();
      task.progress((index + 1) / words.length);
    }
    task.log('written');
    return { words: words.length, at: new Date(0) };
  }
}

@Controller()
class WriterController {
  constructor(@InjectAsynqClient() private readonly asynq: AsynqClient) {}

  @Sse('tasks/:id')
  follow(@Param('id') id: string) {
    return this.asynq.follow({ queue: 'default', id });
  }
}

const parts = { providers: [Writer], controllers: [WriterController] };

const collect = (updates: Observable<TaskUpdate>): Promise<TaskUpdate[]> => lastValueFrom(updates.pipe(toArray()));

describe('AsynqClient.follow', () => {
  it('is an observable of what happens, typed by the task', async () => {
    const { app, tasks } = await testApp(parts);
    const asynq = app.get(AsynqClient);
    const info = await asynq.enqueue(Write, ['a', 'b']);
    const updates = asynq.follow(info);
    expectTypeOf(updates).toEqualTypeOf<Observable<TaskUpdate<{ words: number; at: string }>>>();
    const seen = collect(updates);
    await tasks.drain();
    const said = (await seen)
      .filter(({ type }) => type !== 'state')
      .map(({ type, data }) => [type, { ...data, at: 0 }]);
    const dataOf = (type: string): unknown[] => said.flatMap(([one, data]) => (one === type ? [data] : []));
    expect(dataOf('log')).toEqual([{ text: 'written', at: 0 }]);
    expect(dataOf('chunk')).toEqual(['a', 'b'].map((token) => ({ chunk: { token }, at: 0 })));
    expect(said.at(-1)).toEqual(['result', { result: { words: 2, at: '1970-01-01T00:00:00.000Z' }, at: 0 }]);
    expect(said.findLast(([type]) => type === 'progress')).toEqual(['progress', { fraction: 1, at: 0 }]);
  });

  it('ends with the error of the task, and refuses wrong options at once', async () => {
    const { app, tasks } = await testApp(parts);
    const asynq = app.get(AsynqClient);
    const failed = collect(asynq.follow(await asynq.enqueue(Write, [''])));
    const outcome = rejection(failed);
    await tasks.drain();
    expect(await outcome).toMatchObject({
      code: 'ASYNQ_TASK_FAILED',
      reason: expect.stringContaining('an empty word'),
    });
    expect(() => asynq.follow({ queue: 'q', id: 'a' }, { timeout: 0 })).toThrow('timeout of follow');
    expect(() => asynq.follow({ queue: 'q', id: 'a' }, { signal: 1 } as never)).toThrow('option of follow');
    expect(() => asynq.follow({} as never)).toThrow('queue of the task to follow must be a text');
  });

  it('is what @Sse sends to a browser', async () => {
    const imports = [AsynqModule.forRoot({ connection: 'memory' })];
    const app = (
      await Test.createTestingModule({ imports, ...parts })
        .setLogger(quiet)
        .compile()
    ).createNestApplication();
    onTestFinished(() => app.close());
    await app.listen(0, '127.0.0.1');
    const { id } = await app.get(AsynqClient).enqueue(Write, ['x'], { processIn: '1s' });
    const reply = await fetch(`${await app.getUrl()}/tasks/${id}`);
    const text = await reply.text(); // it ends with the task
    const events = [...text.matchAll(/event: (\w+)\nid: \d+\ndata: (.*)\n/g)].map(([, type, data]) => [
      type,
      JSON.parse(data!),
    ]);
    expect(events.at(0)).toEqual(['state', { state: 'scheduled' }]);
    expect(events).toContainEqual(['chunk', { chunk: { token: 'x' } }]);
    expect(events).toContainEqual(['progress', { fraction: 1, at: expect.any(String) }]);
    expect(events).toContainEqual(['log', { text: 'written', at: expect.any(String) }]);
    expect(events.at(-1)).toEqual(['result', { result: { words: 1, at: '1970-01-01T00:00:00.000Z' } }]);
    // Before the first update an error is one of the request.
    expect((await fetch(`${await app.getUrl()}/tasks/none`)).status).toBe(500);
  });
});
