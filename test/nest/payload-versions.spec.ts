import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  AsynqServer,
  defineTask,
  type EndedAttempt,
  InvalidPayloadError,
  InvalidTaskError,
  OnTaskEvent,
  Payload,
  TaskCtx,
  TaskHandler,
  workflow,
  type AsynqEventMap,
  type TaskContext,
  type TaskDefinition,
  type TaskEvent,
} from 'nestjs-asynq';
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, it, onTestFinished } from 'vitest';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { quiet, rejection, testApp } from './support.js';

interface First {
  user: number;
}
interface Third {
  userId: number;
  name: string;
}

const FirstMail = defineTask<First>('mail');
const ThirdMail = defineTask<Third>('mail', {
  version: 3,
  upgrade: (payload, from) => {
    expectTypeOf(payload).toBeUnknown();
    const userId = from < 2 ? (payload as First).user : (payload as Third).userId;
    return { userId, name: `of version ${from}` };
  },
  headers: { tenant: 'acme' },
});
const VERSION = 'asynq-payload-version';

const got: unknown[] = [];
beforeEach(() => void got.splice(0));

const handlerOf = (definition: TaskDefinition) => {
  @Injectable()
  class Tasks {
    @TaskHandler(definition)
    run(@Payload() payload: unknown, @TaskCtx() task: TaskContext) {
      got.push([payload, task.headers[VERSION], task.retried]);
    }
  }
  return Tasks;
};

describe('a definition with a version', () => {
  it('says so in a header, from version 2 on', async () => {
    const { app, tasks } = await testApp({}, { server: false });
    const client = app.get(AsynqClient);
    await client.enqueue(ThirdMail, { userId: 1, name: 'Ann' });
    await client.enqueue(ThirdMail, { userId: 2, name: 'Bo' }, { headers: { tenant: 'other' } });
    await client.enqueue(defineTask('mail', { version: 1, upgrade: (payload) => payload }), 1);
    await client.enqueue(FirstMail, { user: 1 });
    const batch = await client.openBatch({ name: 'b' });
    await batch.add(ThirdMail, [{ userId: 3, name: 'Cy' }]);
    await client.start(workflow('w').add('mail', ThirdMail, { userId: 4, name: 'Di' }), { id: 'w' });
    expect(tasks.all().map(({ headers }) => headers)).toEqual([
      { tenant: 'acme', [VERSION]: '3' },
      { tenant: 'other', [VERSION]: '3' },
      {},
      {},
      { tenant: 'acme', [VERSION]: '3' },
      { tenant: 'acme', [VERSION]: '3' },
    ]);
  });

  it('brings the payloads of older ones up where they are read', async () => {
    const { app, tasks } = await testApp({ providers: [handlerOf(ThirdMail)] });
    const client = app.get(AsynqClient);
    await client.enqueue(FirstMail, { user: 1 });
    await client.enqueue('mail', { userId: 2, name: 'Bo' }, { headers: { [VERSION]: '2' } });
    await client.enqueue(ThirdMail, { userId: 3, name: 'Cy' });
    await tasks.drain();
    expect(got).toEqual([
      [{ userId: 1, name: 'of version 1' }, undefined, 0],
      [{ userId: 2, name: 'of version 2' }, '2', 0],
      [{ userId: 3, name: 'Cy' }, '3', 0],
    ]);
  });

  it.each([
    ['throws', () => JSON.parse('{') as object, 'payload of task "mail" cannot be decoded: '],
    ['is asynchronous', (async () => ({})) as never, 'upgrade returned a promise; it must return the payload at once'],
  ])('archives a task whose upgrade %s', async (_, upgrade, text) => {
    const { app, tasks } = await testApp({
      providers: [handlerOf(defineTask<object>('mail', { version: 2, upgrade }))],
    });
    await app.get(AsynqClient).enqueue(FirstMail, { user: 1 });
    const { outcomes } = await tasks.drain();
    expect(outcomes).toMatchObject([{ outcome: 'archived', retried: 0 }]);
    expect((outcomes[0]!.error as Error).message).toContain(text);
    expect((outcomes[0]!.error as Error).cause).toBeInstanceOf(InvalidPayloadError);
  });

  it('archives a task whose version is none', async () => {
    const { app, tasks } = await testApp({ providers: [handlerOf(ThirdMail)] });
    await app.get(AsynqClient).enqueue('mail', {}, { headers: { [VERSION]: '2.5' } });
    await tasks.drain();
    expect(tasks.archived()[0]!.lastErr).toContain('the header asynq-payload-version is "2.5"');
  });

  it('refuses a wrong version, a missing upgrade, another header, and a handler of bytes', async () => {
    const upgrade = (payload: unknown) => payload;
    for (const [options, text] of [
      [{ version: 0 }, 'version of task "x" must be a whole number from 1 to 999999999999999, not 0'],
      [{ version: '2', upgrade }, 'version of task "x" must be a whole number'],
      [{ version: 2, upgrade: 5 }, 'upgrade of task "x" must be a function, not 5'],
      [{ version: 2 }, 'task "x" has version 2 and no upgrade'],
      [{ version: 2, upgrade, headers: { [VERSION]: '1' } }, 'is "1", and its definition has version 2'],
    ] as const) {
      expect(() => defineTask('x', options as object)).toThrow(InvalidTaskError);
      expect(() => defineTask('x', options as object)).toThrow(text);
    }
    const { app, tasks } = await testApp({}, { server: false });
    const headers = { [VERSION]: '2' };
    for (const task of [ThirdMail, FirstMail] as TaskDefinition[]) {
      const error = await rejection(app.get(AsynqClient).enqueue(task, {}, { headers }));
      expect(error.message).toContain('leave the header out, as the definition sets it');
    }
    expect(tasks.all()).toEqual([]);
    class Bytes {
      @TaskHandler(defineTask<Buffer>('x', { version: 2, upgrade: () => Buffer.alloc(0) }))
      run(_payload: Buffer) {}
    }
    const { tasks: tester } = await testApp({ providers: [Bytes] });
    await expect(tester.drain()).rejects.toThrow('Bytes.run takes the stored bytes');
  });

  it('is not run by a tester whose handler is older', async () => {
    const { app, tasks } = await testApp({ providers: [handlerOf(FirstMail)] });
    await app.get(AsynqClient).enqueue(ThirdMail, { userId: 1, name: 'Ann' });
    const { total, left } = await tasks.advance('1h');
    expect([total, left]).toMatchObject([
      0,
      [{ reason: 'newerPayload', why: expect.stringMatching('^the payload of a "mail" is newer than its handler') }],
    ]);
    expect(tasks.enqueued()).toMatchObject([{ state: 'held', heldBy: '~newer:mail', retried: 0, lastErr: '' }]);
    await expect(tasks.work(ThirdMail as never, { userId: 2 } as never)).rejects.toThrow(
      'the payload of the task "mail" has a newer version than its handler knows',
    );
  });
});

describe('on Redis', () => {
  let redis: RedisProcess;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const start = async (handlers: new (...args: never[]) => object) => {
    const app = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: redis.url })],
      providers: [handlers],
    })
      .setLogger(quiet)
      .compile();
    onTestFinished(() => app.close());
    await app.init();
    return app;
  };

  it('a task of a newer deploy waits for a server that knows it, and uses up no retry', async () => {
    const old = await start(handlerOf(FirstMail));
    const { events } = old.get(AsynqServer);
    const left = new Promise<AsynqEventMap['payloadTooNew']>((resolve) => events.on('payloadTooNew', resolve));
    const client = old.get(AsynqClient);
    await client.enqueue(ThirdMail, { userId: 1, name: 'Ann' }, { taskId: 'new', maxRetry: 0 });
    expect(await left).toEqual({ task: { id: 'new', type: 'mail', queue: 'default' }, version: 3, known: 1 });
    // The next task is settled with it, or after it.
    const done = new Promise<void>((resolve) => events.on('taskFinished', () => resolve()));
    await client.enqueue(FirstMail, { user: 5 });
    await done;
    const info = await old.get(AsynqInspector).getTaskInfo('default', 'new');
    expect(info).toMatchObject({ state: 'held', heldBy: '~newer:mail', retried: 0, lastErr: '' });
    await old.close();

    let finished: (event: EndedAttempt) => void;
    const ran = new Promise<EndedAttempt>((resolve) => (finished = resolve));
    class Next extends handlerOf(ThirdMail) {
      @OnTaskEvent('succeeded')
      on(event: TaskEvent<'succeeded'>) {
        finished(event as EndedAttempt);
      }
    }
    const since = Date.now();
    await start(Next);
    expect(await ran).toMatchObject({ task: { id: 'new' }, retried: 0 });
    expect(Date.now() - since).toBeLessThan(20_000); // and not after the minute that every waitlist has
    expect(got).toEqual([
      [{ user: 5 }, undefined, 0],
      [{ userId: 1, name: 'Ann' }, '3', 0],
    ]);
  });
});
