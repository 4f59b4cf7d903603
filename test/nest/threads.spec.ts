import { Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Broker } from '../../lib/broker/broker.js';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqModule,
  AsynqServer,
  bytesCodec,
  Payload,
  type ServerOptions,
  Steps,
  TaskHandler,
  type TaskOutcome,
  type TaskSteps,
  type ThreadOptions,
} from 'nestjs-asynq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BrokenModule } from './threads/broken.module.js';
import { WorkModule } from './threads/work.module.js';
import { compiled } from '../support/programs.js';
import { quiet, rejection, testApp } from './support.js';

interface App {
  readonly broker: Broker;
  readonly died: string[];
  /** The outcome of a task. */
  run(type: string, payload?: unknown, options?: object): Promise<TaskOutcome>;
  close(): Promise<void>;
}

async function threadApp(
  threads: Partial<ThreadOptions> = {},
  { module = WorkModule, file = 'work' }: { module?: object; file?: string } = {},
  server: ServerOptions = {},
): Promise<App> {
  const all = {
    module: await compiled(new URL(`./threads/${file}.module.ts`, import.meta.url)),
    count: 2,
    ...(file === 'work' && { export: 'WorkModule' }),
    ...threads,
  };
  const metadata: ModuleMetadata = {
    imports: [AsynqModule.forRoot({ connection: 'memory', server: { threads: all, ...server } }), module as never],
  };
  const app = await Test.createTestingModule(metadata).setLogger(quiet).compile();
  await app.init();
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= app.close());
  onTestFinished(close);
  const { events } = app.get(AsynqServer);
  const died: string[] = [];
  events.on('threadDied', ({ reason }) => died.push(reason));
  return {
    broker: app.get<Broker>(ASYNQ_BROKER),
    died,
    close,
    run: async (type, payload, options) => {
      const outcomes: TaskOutcome[] = [];
      const ended = new Promise<TaskOutcome>((resolve) => {
        const off = events.on('taskFinished', (outcome) => {
          if (outcome.task.type !== type) return;
          outcomes.push(outcome);
          off();
          resolve(outcome);
        });
      });
      await app.get(AsynqClient).enqueue(type, payload, { maxRetry: 5, ...options });
      return ended;
    },
  };
}

const parsed = ({ result }: TaskOutcome): unknown => JSON.parse(String(result));

describe('a handler with thread: true', () => {
  it('runs in a thread, with injection, guards, pipes and interceptors', async () => {
    const { run } = await threadApp();
    expect(parsed(await run('where'))).toMatchObject({ isMainThread: false });
    expect(parsed(await run('greet', { name: 'anna' }))).toBe('HELLO ANNA');
    expect((await run('greet', { name: 'bob' })).error).toMatchObject({
      name: 'ForbiddenException',
      message: 'not bob',
    });
    expect(parsed(await run('number', 41))).toBe(42);
    expect(await run('number', 'x')).toMatchObject({ outcome: 'archived', error: { code: 'ASYNQ_SKIP_RETRY' } });
    expect((await run('bytes', Buffer.from([1, 2, 250]))).result).toEqual(Buffer.from([250, 2, 1]));
    expect(parsed(await run('context', undefined, { headers: { a: 'b' }, retention: '1h' }))).toMatchObject({
      type: 'context',
      headers: { a: 'b' },
      retried: 0,
      deadline: expect.stringMatching(/^20/) as string,
    });
  });

  it('fails with the error that was thrown there', async () => {
    const { run } = await threadApp();
    const own = await run('fail', 'own');
    expect(own).toMatchObject({
      outcome: 'retry',
      error: { name: 'OwnError', message: 'own', code: 'E_OWN', attempt: 7 },
    });
    expect((own.error as Error).stack).toContain('work.module.');
    const skipped = await run('fail', 'skip');
    expect(skipped).toMatchObject({
      outcome: 'archived',
      error: { code: 'ASYNQ_SKIP_RETRY', cause: { name: 'OwnError' } },
    });
    expect(await run('fail', 'revoke')).toMatchObject({ outcome: 'revoked' });
    expect(await run('fail', 'postpone')).toMatchObject({ outcome: 'postponed', error: { delay: 300_000 } });
    expect((await run('fail', 'type')).error).toBeInstanceOf(TypeError);
    expect((await run('fail', 'text')).error).toBe('a text');
  });

  it('gets the signal of its task, and is ended with its thread when it goes on', async () => {
    const { run, died } = await threadApp({ grace: '100ms', count: 1 });
    await run('where'); // starts the thread, which takes longer than the timeouts below
    expect(await run('wait', undefined, { timeout: '1s' })).toMatchObject({
      outcome: 'retry',
      error: { code: 'ASYNQ_DEADLINE_EXCEEDED' },
    });
    expect(died).toEqual([]);
    const blocked = performance.now();
    expect(await run('block', 60_000, { timeout: '1s' })).toMatchObject({ error: { code: 'ASYNQ_DEADLINE_EXCEEDED' } });
    expect(parsed(await run('where'))).toMatchObject({ isMainThread: false }); // the slot and the thread are free
    expect(performance.now() - blocked).toBeLessThan(30_000);
    expect(died).toEqual([expect.stringContaining('went on after its signal')]);
  });

  it.each([
    ['exit', /exited with code 3/],
    ['throw', /an error was not caught there: uncaught/],
    ['memory', /out of memory/],
  ])('fails alone when its thread dies: %s', async (how, reason) => {
    const { run, died } = await threadApp({ resourceLimits: { maxOldGenerationSizeMb: 300 } });
    const [beside, dead] = await Promise.all([run('block', 1_500), run('die', how)]);
    expect(beside).toMatchObject({ outcome: 'done' });
    expect(dead).toMatchObject({ outcome: 'retry', error: { code: 'ASYNQ_THREAD_DIED' } });
    expect((dead.error as Error).message).toMatch(reason);
    expect(died).toEqual([(dead.error as Error).message]);
    expect(parsed(await run('where'))).toMatchObject({ isMainThread: false });
  });

  it('fails when its module cannot be made in a thread', async () => {
    const { run } = await threadApp({}, { module: BrokenModule, file: 'broken' });
    const { error, outcome } = await run('broken');
    expect(outcome).toBe('retry');
    expect((error as Error).message).toContain('cannot be made here');
  });

  it('says when the module of the threads has no such handler', async () => {
    const { run } = await threadApp({}, { module: BrokenModule, file: 'work' });
    expect((await run('broken')).error).toMatchObject({
      message: expect.stringContaining('no handler with thread: true for "broken"'),
    });
  });

  it('may enqueue, when its thread has a connection; no server starts there', async () => {
    const { run } = await threadApp({ export: 'ThreadRoot' });
    expect(parsed(await run('client'))).toBe('another');
    expect((await (await threadApp({ export: 'Nothing' })).run('client')).error).toMatchObject({
      message: expect.stringContaining('exports no module "Nothing"') as string,
    });
  });

  it('says how far it is, and keeps a flood of lines to itself', async () => {
    const { run, broker } = await threadApp();
    const { task, result } = await run('notes', false, { retention: '1h' });
    expect(String(result)).toBe('"said"');
    const said = (await broker.inspection.getTask('default', task.id))?.notes;
    expect(said?.log.at(-1)).toContain('line 5000');
    expect(said?.progress).toContain('half');
    expect((await run('notes', true)).error).toMatchObject({ code: 'ASYNQ_INVALID_NOTE' });
  });

  it('may print without end', async () => {
    const { run } = await threadApp();
    expect(parsed(await run('flood'))).toBe('done');
  });

  it('ends with the application', async () => {
    const { run, close } = await threadApp({}, {}, { shutdownTimeout: '100ms' });
    const waiting = run('wait');
    await run('where');
    await close();
    expect(await waiting).toMatchObject({ outcome: 'requeued' });
  });

  it('runs in the thread of the test where the test drives the broker', async () => {
    const { tasks, app } = await testApp({ imports: [WorkModule] });
    await app.init();
    await app.get(AsynqClient).enqueue('where');
    expect(await tasks.drain()).toMatchObject({ done: 1 });
  });
});

describe('what is wrong with threads', () => {
  @Injectable()
  class Own {
    @TaskHandler('own', { thread: true })
    run(@Payload() payload: unknown) {
      return payload;
    }
  }

  @Injectable()
  class Stepping {
    @TaskHandler('stepping', { thread: true })
    run(@Steps() steps: TaskSteps) {
      return steps;
    }
  }

  async function boot(metadata: ModuleMetadata, server: object, options: object = {}): Promise<Error> {
    @Module({ ...metadata, imports: [AsynqModule.forRoot({ connection: 'memory', server, ...options })] })
    class Root {}
    const app = await Test.createTestingModule({ imports: [Root] })
      .setLogger(quiet)
      .compile();
    return rejection(app.init());
  }

  const module = new URL(import.meta.url);

  it('is said at boot', async () => {
    const providers = [Own];
    expect((await boot({ providers }, {})).message).toContain(
      'Own.run has thread: true, and the server has no threads',
    );
    expect((await boot({ providers: [Stepping] }, { threads: { module } })).message).toContain(
      'has steps and thread: true',
    );
    const codec = { codec: bytesCodec };
    expect((await boot({ providers }, { threads: { module } }, codec)).message).toContain(
      'cannot get the codec of the module',
    );
    for (const [threads, text] of [
      [{ module: () => import('./threads/work.module.js') }, 'A thread cannot get a function or a class'],
      [{ module: './work.module.js' }, 'it must name a file'],
      [{ module: new URL('./nowhere.js', import.meta.url) }, 'there is no file'],
      [{ module, count: 0 }, 'count of threads'],
      [{ module, grace: -1 }, 'grace of threads'],
      [{ module, counts: 1 }, 'counts'],
    ] as const) {
      expect((await boot({ providers }, { threads })).message).toContain(text);
    }
  });

  it('is said by the decorator', () => {
    const method = Object.getOwnPropertyDescriptor(Own.prototype, 'run')!;
    expect(() => TaskHandler('x', { thread: 'yes' as never })(Own.prototype, 'run', method)).toThrow('thread is "yes"');
    expect(() => TaskHandler('x', { thread: true, batch: { size: 2 } })(Own.prototype, 'run', method)).toThrow(
      'batch and thread',
    );
  });
});
