import { inspect } from 'node:util';
import { Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqServer,
  AsynqInspector,
  AsynqModule,
  bytesCodec,
  defineTask,
  Payload,
  SkipRetry,
  RevokeTask,
  TaskCtx,
  TaskHandler,
  type TaskContext,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker, type TestTask, type WorkOutcome } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest';
import { quiet } from '../nest/support.js';

interface WelcomeDto {
  userId: number;
  tags?: string[];
}
const WelcomeEmail = defineTask<WelcomeDto, string>('email:welcome', { queue: 'critical', maxRetry: 5 });
const Later = defineTask<number>('later', { processIn: '1h' });
const Blob = defineTask<Uint8Array>('blob', { codec: bytesCodec });

@Injectable()
class Mailer {
  failures = 0;
  readonly sent: number[] = [];
  send(userId: number): string {
    if (this.failures-- > 0) throw new Error('SMTP down');
    this.sent.push(userId);
    return `sent to ${userId}`;
  }
}

@Injectable()
class Tasks {
  constructor(
    private readonly mailer: Mailer,
    private readonly client: AsynqClient,
  ) {}

  @TaskHandler(WelcomeEmail)
  welcome(@Payload() { userId }: WelcomeDto) {
    return this.mailer.send(userId);
  }

  @TaskHandler('later')
  later() {}

  @TaskHandler('countdown')
  async countdown(@Payload() n: number) {
    if (n > 0) await this.client.enqueue('countdown', n - 1);
  }

  @TaskHandler('forever')
  async forever() {
    await this.client.enqueue('forever');
  }

  @TaskHandler('skips')
  skips() {
    throw new SkipRetry('no');
  }

  @TaskHandler('revokes')
  revokes() {
    throw new RevokeTask();
  }

  @TaskHandler('waits')
  async waits() {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return 'waited';
  }

  @TaskHandler('times-out')
  async timesOut(@TaskCtx() { signal }: TaskContext) {
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  }

  @TaskHandler('slow-but-real')
  async slowButReal(@TaskCtx() { signal }: TaskContext) {
    await new Promise((resolve, reject) => {
      setTimeout(resolve, 150);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  }

  @TaskHandler('ignores-its-signal')
  async ignoresItsSignal(@TaskCtx() { signal }: TaskContext) {
    await new Promise(() => signal);
  }

  @TaskHandler('throws-text')
  throwsText() {
    throw 'a text';
  }

  @TaskHandler('writes')
  async writes(@TaskCtx() task: TaskContext) {
    await task.writeResult({ half: true });
  }
}

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: { host: 'localhost' },
      server: { queues: { critical: 6, default: 1 }, retryDelay: (retried) => (retried + 1) * 60_000 },
    }),
  ],
  providers: [Tasks, Mailer],
})
class AppModule {}

let app: TestingModule;
let broker: InMemoryBroker;
let tasks: AsynqTester;
let client: AsynqClient;
let mailer: Mailer;

async function compiled() {
  const app = await Test.createTestingModule({ imports: [AppModule] })
    .setLogger(quiet)
    .overrideProvider(ASYNQ_BROKER)
    .useClass(InMemoryBroker)
    .compile();
  onTestFinished(() => app.close());
  return app;
}

beforeEach(async () => {
  app = await compiled();
  broker = app.get(ASYNQ_BROKER);
  tasks = AsynqTester.from(app);
  client = app.get(AsynqClient);
  mailer = app.get(Mailer);
});

describe('the tasks of a handler', () => {
  test('are found by its class and its name, with the type of its payload', async () => {
    await client.enqueue(WelcomeEmail, { userId: 1 });
    await client.enqueue(WelcomeEmail, { userId: 2 });
    await client.enqueue('countdown', 3);
    const emails = tasks.enqueued(Tasks, 'welcome', { payload: { userId: 2 } });
    expectTypeOf(emails[0]!.payload).toExtend<WelcomeDto>();
    expect(emails).toMatchObject([{ type: 'email:welcome', payload: { userId: 2 } }]);
    expectTypeOf(tasks.all(Tasks, 'countdown')[0]!.payload).toEqualTypeOf<number>();
    expect(tasks.all(Tasks, 'countdown').map(({ payload }) => payload)).toEqual([3]);
    expect([tasks.waiting(Tasks, 'later'), tasks.archived(Tasks, 'later'), tasks.completed(Tasks, 'later')]).toEqual([
      [],
      [],
      [],
    ]);
  });

  test('are enqueued and run by it', async () => {
    const outcome = await tasks.work(Tasks, 'welcome', { userId: 5 }, { maxRetry: 1 });
    expectTypeOf(outcome.result).toEqualTypeOf<string | undefined>();
    expect(outcome).toMatchObject({ outcome: 'done', result: 'sent to 5', maxRetry: 1, task: { queue: 'critical' } });
    expect(await tasks.work(Tasks, 'later')).toMatchObject({ outcome: 'done' });
    const wrong = [
      // @ts-expect-error another payload
      () => tasks.work(Tasks, 'welcome', { user: 5 }),
      // @ts-expect-error a missing payload
      () => tasks.work(Tasks, 'welcome'),
    ];
    expect(wrong).toHaveLength(2);
    await expect(tasks.work(Tasks, 'nothing' as 'later')).rejects.toThrow(
      'there is no method Tasks.nothing; handlers are ',
    );
  });

  test('are refused where there is no such handler', () => {
    // @ts-expect-error no such method
    expect(() => tasks.enqueued(Tasks, 'welcom')).toThrow('there is no method Tasks.welcom; did you mean "welcome"?');
    // @ts-expect-error a filter by a field that the payload does not have
    expect(tasks.enqueued(Tasks, 'welcome', { payload: { user: 2 } })).toEqual([]);
    class Elsewhere {
      @TaskHandler('else', { connection: 'billing' })
      run() {}
      help() {}
    }
    expect(() => tasks.enqueued(Elsewhere, 'help')).toThrow('Elsewhere.help is no handler');
    expect(() => tasks.enqueued(Elsewhere, 'run')).toThrow(
      'Elsewhere.run is for the connection "billing"; ask its tester: AsynqTester.from(app, \'billing\')',
    );
  });
});

describe('enqueued', () => {
  test('lists waiting tasks, typed and decoded, in the order of enqueueing', async () => {
    await client.enqueue(WelcomeEmail, { userId: 1 });
    await client.enqueue('other', 'x', { processIn: '10m', headers: { trace: 't' } });
    await client.enqueue(WelcomeEmail, { userId: 2 }, { group: 'g' });
    const emails = tasks.enqueued(WelcomeEmail);
    expectTypeOf(emails).toEqualTypeOf<TestTask<WelcomeDto>[]>();
    expect(emails.map(({ payload, state }) => [payload.userId, state])).toEqual([
      [1, 'pending'],
      [2, 'aggregating'],
    ]);
    expect(tasks.enqueued()).toMatchObject([
      { type: 'email:welcome', queue: 'critical', maxRetry: 5, rawPayload: Buffer.from('{"userId":1}') },
      {
        type: 'other',
        payload: 'x',
        state: 'scheduled',
        nextProcessAt: new Date(tasks.clock.now() + 600_000),
        headers: { trace: 't' },
      },
      { payload: { userId: 2 }, group: 'g' },
    ]);
    expect(tasks.enqueued('other')).toHaveLength(1);
    expect(tasks.enqueued('oth')).toEqual([]);
  });

  test('can be narrowed by fields at any depth, or by a function', async () => {
    await client.enqueue(WelcomeEmail, { userId: 1, tags: ['a', 'b'] });
    await client.enqueue(WelcomeEmail, { userId: 2, tags: ['b'] }, { queue: 'default' });
    const ids = (found: TestTask<WelcomeDto>[]) => found.map(({ payload }) => payload.userId);
    expect(ids(tasks.enqueued(WelcomeEmail, { queue: 'default' }))).toEqual([2]);
    expect(ids(tasks.enqueued(WelcomeEmail, { payload: { userId: 1 } }))).toEqual([1]);
    expect(ids(tasks.enqueued(WelcomeEmail, { payload: { tags: ['b'] } }))).toEqual([2]);
    expect(ids(tasks.enqueued(WelcomeEmail, { payload: { userId: 1 }, queue: 'default' }))).toEqual([]);
    expect(ids(tasks.enqueued(WelcomeEmail, ({ payload }) => payload.userId > 1))).toEqual([2]);
    expect(ids(tasks.enqueued(WelcomeEmail, { rawPayload: Buffer.from('{"userId":1,"tags":["a","b"]}') }))).toEqual([
      1,
    ]);
  });

  test('shows bytes as bytes', async () => {
    await client.enqueue(Blob, Buffer.from('12'));
    await client.enqueue('raw', Buffer.from([0xff]));
    expect(tasks.enqueued(Blob)).toMatchObject([{ payload: Buffer.from('12') }]);
    expect(tasks.enqueued('raw')).toMatchObject([{ payload: Buffer.from([0xff]) }]);
  });
});

describe('drain', () => {
  test('runs everything that can run now, including what tasks enqueue, and counts by outcome', async () => {
    await client.enqueue(WelcomeEmail, { userId: 1 }, { retention: '1h' });
    await client.enqueue('countdown', 30);
    await client.enqueue('skips');
    await client.enqueue('revokes');
    mailer.failures = 0;
    await client.enqueue('unknown');
    await client.enqueue(Later, 1);
    const summary = await tasks.drain();
    expect({ ...summary }).toEqual({
      done: 32, // retained or not
      completed: 1,
      retry: 1,
      archived: 1,
      revoked: 1,
      postponed: 0,
      suspended: 0,
      requeued: 0,
      lost: 0,
    });
    expect(summary.total).toBe(35);
    expect(summary.errors).toHaveLength(3);
    expect(summary.outcomes).toContainEqual(expect.objectContaining({ outcome: 'completed', result: 'sent to 1' }));
    expect(tasks.enqueued().map(({ type, state }) => [type, state])).toEqual([
      ['unknown', 'retry'],
      ['later', 'scheduled'],
    ]);
    expect(tasks.completed(WelcomeEmail)).toMatchObject([{ payload: { userId: 1 } }]);
    expect(tasks.archived('skips')).toMatchObject([{ lastErr: 'no' }]);
  });

  test('does not move time', async () => {
    const now = tasks.clock.now();
    mailer.failures = 1;
    await client.enqueue(WelcomeEmail, { userId: 1 });
    expect(await tasks.drain()).toMatchObject({ retry: 1 });
    expect(await tasks.drain()).toMatchObject({ retry: 0, done: 0 });
    expect(tasks.clock.now()).toBe(now);
  });

  test('waits for handlers that wait', async () => {
    await client.enqueue('waits');
    expect((await tasks.drain()).outcomes).toMatchObject([{ outcome: 'done', result: 'waited' }]);
  });

  test('reports a run without an end', async () => {
    await client.enqueue('forever');
    await expect(tasks.drain({ limit: 50 })).rejects.toThrow(
      'more than 50 attempts and still tasks to run (the last: "forever"): does a task enqueue itself without a delay? ' +
        'Set { limit } if that many are right',
    );
  });

  test('runs no tasks of a paused queue or of one that the server does not serve', async () => {
    await client.enqueue('later', 1, { queue: 'unserved' });
    await client.enqueue('later', 1, { queue: 'unserved', processIn: '5m' });
    expect(await tasks.drain()).toMatchObject({ done: 0 });
    expect(await tasks.advance('1h')).toMatchObject({ done: 0 });
    expect(tasks.enqueued('later')).toHaveLength(2);
  });

  test('reports tasks that could run and did not, and why', async () => {
    await client.enqueue('later', 1, { queue: 'unserved' });
    await client.enqueue('later', 2, { queue: 'unserved', processIn: '5m' });
    await client.enqueue('waits', undefined, { queue: 'critical' });
    await client.enqueue('waits', undefined, { group: 'mails' });
    await client.enqueue('waits', undefined, { processIn: '1d' }); // not due, so not left
    await new AsynqInspector(broker).pauseQueue('critical');
    const summary = await tasks.drain();
    const unserved = {
      queue: 'unserved',
      type: 'later',
      reason: 'notServed',
      why: 'the server does not serve the queue "unserved": add it to the option server.queues',
    };
    expect(summary.left).toEqual([
      { ...unserved, count: 1 },
      { queue: 'critical', type: 'waits', count: 1, reason: 'paused', why: expect.stringContaining('is paused') },
      {
        queue: 'default',
        type: 'waits',
        count: 1,
        reason: 'noAggregator',
        why: 'no @TaskAggregator aggregates the group "mails"',
      },
    ]);
    expect((await tasks.advance('5m')).left[0]).toEqual({ ...unserved, count: 2 });
    expect({ ...summary }).not.toHaveProperty('left'); // not part of comparisons
    expect(inspect(summary)).toContain(summary.left[0]!.why); // but of what console.log shows
  });

  test('refuses to wait for a time-out that does not come', async () => {
    await client.enqueue('times-out', undefined, { timeout: '30s', taskId: 'slow' });
    const comesAt = new Date(tasks.clock.now() + 30_000).toISOString();
    const message =
      'handlers do not end, and the clock does not move for them: ' +
      `"times-out" (id slow) waits for its signal, which comes at ${comesAt}. \`advance\` by more than their time-outs`;
    await expect(tasks.drain()).rejects.toThrow(message);
    expect(await tasks.advance('30s')).toMatchObject({ retry: 1 }); // it still runs, and gets its time-out
  });

  test('reports a handler that ignores its aborted signal', async () => {
    await client.enqueue('ignores-its-signal', undefined, { timeout: '30s', taskId: 'deaf' });
    await expect(tasks.advance('1m')).rejects.toThrow('"ignores-its-signal" (id deaf) ignores its aborted signal');
  });
});

describe('explain', () => {
  test('says why a task does not run where these handlers run', async () => {
    const inspector = app.get(AsynqInspector);
    const ready = await client.enqueue('later');
    expect((await tasks.explain(ready)).reasons).toMatchObject([{ kind: 'ready' }]);
    expect((await inspector.explain(ready)).reasons).toMatchObject([{ kind: 'notServed', servers: 0 }]);
    const delayed = await client.enqueue('nobody', {}, { processIn: '5m' });
    expect((await tasks.explain(delayed)).reasons).toMatchObject([
      { kind: 'scheduled' },
      { kind: 'noHandler', others: 0 },
    ]);
    await inspector.pauseQueue('default');
    expect((await tasks.explain(ready)).reasons).toMatchObject([{ kind: 'queuePaused' }]);
    expect(await inspector.servers()).toEqual([]);
  });
});

describe('cancelProcessing', () => {
  const cancel = (id: string, options = {}) => app.get(AsynqInspector).cancelProcessing(id, options);
  const untilActive = () =>
    vi.waitFor(() => expect(tasks.all('times-out')).toMatchObject([{ state: 'active' }]), { interval: 1 });

  test.each([
    ['retry', { retry: 1, archived: 0 }, ['retry']],
    ['archive', { retry: 0, archived: 1 }, ['archived']],
    ['delete', { retry: 0, revoked: 1 }, []],
  ])('aborts the signal of a handler that runs, with the outcome %s', async (outcome, counts, states) => {
    await client.enqueue('times-out', undefined, { taskId: 'long' });
    const run = tasks.drain();
    await untilActive();
    await cancel('long', { outcome, reason: 'withdrawn' });
    const summary = await run;
    expect(summary).toMatchObject({ ...counts, total: 1 });
    expect(summary.errors).toMatchObject([
      { code: 'ASYNQ_TASK_CANCELED', message: expect.stringContaining('withdrawn') },
    ]);
    expect(tasks.all().map(({ state }) => state)).toEqual(states);
  });

  test('reaches a task that is worked on alone, and one that another handler cancels', async () => {
    const alone = tasks.work('times-out', undefined, { taskId: 'long' });
    await untilActive();
    await cancel('long', { outcome: 'delete' });
    expect(await alone).toMatchObject({ outcome: 'revoked', error: { code: 'ASYNQ_TASK_CANCELED' } });

    vi.spyOn(mailer, 'send').mockImplementation((() => untilActive().then(() => cancel('other'))) as never);
    await client.enqueue('times-out', undefined, { taskId: 'other' });
    await client.enqueue(WelcomeEmail, { userId: 1 });
    expect(await tasks.drain()).toMatchObject({ done: 1, retry: 1 });
  });

  test('of a task that does not run yet has no effect, as in production', async () => {
    await client.enqueue('later', 1, { taskId: 'early' });
    await cancel('early');
    await client.enqueue('times-out', undefined, { taskId: 'long' });
    const run = tasks.drain();
    await untilActive();
    await cancel('long', { outcome: 'archive' });
    expect(await run).toMatchObject({ done: 1, archived: 1 });
  });
});

describe('a run inside a run', () => {
  test.each([
    ['drain', () => tasks.drain()],
    ['advance', () => tasks.advance('1m')],
    ['work', () => tasks.work('later', 1)],
  ])('%s refuses to run for a handler, which would wait for itself', async (method, run) => {
    vi.spyOn(mailer, 'send').mockImplementation(run as never);
    const error = { code: 'ASYNQ_TESTING', message: expect.stringMatching(`^${method}: called by a handler`) };
    expect(await tasks.work(WelcomeEmail, { userId: 1 })).toMatchObject({ outcome: 'retry', error });
    await client.enqueue(WelcomeEmail, { userId: 2 });
    expect((await tasks.drain()).errors).toEqual([expect.objectContaining(error)]);
    expect((await tasks.advance('90s')).errors).toEqual([expect.objectContaining(error), expect.anything()]);
  });

  test('runs at the same time are allowed, and so is one that a handler leaves for later', async () => {
    let later: Promise<unknown> | undefined;
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    vi.spyOn(mailer, 'send').mockImplementation(() => {
      later = over.then(() => tasks.drain());
      return '';
    });
    await client.enqueue(WelcomeEmail, { userId: 1 });
    await client.enqueue('waits');
    await Promise.all([tasks.drain(), tasks.drain()]);
    end();
    expect(await later).toMatchObject({ total: 0 });
  });

  test('a handler may run the tasks of another application', async () => {
    const other = AsynqTester.from(await compiled());
    vi.spyOn(mailer, 'send').mockImplementation((async () => (await other.work('waits')).result) as never);
    expect(await tasks.work(WelcomeEmail, { userId: 1 })).toMatchObject({ outcome: 'done', result: 'waited' });
  });
});

describe('advance', () => {
  test('fails three times, waits, succeeds: in milliseconds', async () => {
    const started = performance.now();
    mailer.failures = 3;
    await client.enqueue(WelcomeEmail, { userId: 7 }, { processIn: '10m' });
    expect(await tasks.advance('9m59s')).toMatchObject({ total: 0 });
    expect(await tasks.advance('1s')).toMatchObject({ retry: 1, done: 0 });
    expect(tasks.enqueued(WelcomeEmail)).toMatchObject([{ state: 'retry', retried: 1, lastErr: 'SMTP down' }]);
    expect(await tasks.advance('6m')).toMatchObject({ retry: 2, done: 1, total: 3 });
    expect(mailer.sent).toEqual([7]);
    expect(tasks.all()).toEqual([]);
    expect(performance.now() - started).toBeLessThan(5_000); // of 16 minutes
  });

  test('runs each task at its own time', async () => {
    const start = tasks.clock.now();
    const times: number[] = [];
    vi.spyOn(mailer, 'send').mockImplementation((userId) => {
      times.push(tasks.clock.now() - start);
      return `${userId}`;
    });
    await client.enqueue(WelcomeEmail, { userId: 3 }, { processIn: '3m' });
    await client.enqueue(WelcomeEmail, { userId: 1 }, { processIn: '1m' });
    await client.enqueue(WelcomeEmail, { userId: 0 });
    await client.enqueue(WelcomeEmail, { userId: 9 }, { processIn: '9m' });
    expect(await tasks.advance('5m')).toMatchObject({ done: 3 });
    expect(times).toEqual([0, 60_000, 180_000]);
    expect(tasks.clock.now() - start).toBe(300_000);
  });

  test('ends retention and unique locks', async () => {
    await tasks.work(WelcomeEmail, { userId: 1 }, { retention: '10m' });
    mailer.failures = 1;
    await client.enqueue(WelcomeEmail, { userId: 2 }, { unique: '10m', maxRetry: 0 });
    await tasks.advance('9m59s');
    expect(tasks.completed()).toHaveLength(1);
    const again = () => client.enqueue(WelcomeEmail, { userId: 2 }, { unique: '10m' });
    await expect(again()).rejects.toMatchObject({ code: 'ASYNQ_DUPLICATE_TASK' }); // the archived one holds the lock
    await tasks.advance('1s');
    expect(tasks.completed()).toEqual([]);
    expect(await again()).toMatchObject({ state: 'pending' });
  });

  test('ends retention before later tasks run, so that their ids are free', async () => {
    vi.spyOn(mailer, 'send').mockImplementation((userId) => {
      if (userId === 2) void client.enqueue('later', 1, { taskId: 'again' }).catch(() => undefined);
      return '';
    });
    await tasks.work('later', 1, { taskId: 'again', retention: '1m' });
    await client.enqueue(WelcomeEmail, { userId: 2 }, { processIn: '5m' });
    expect(await tasks.advance('10m')).toMatchObject({ done: 2, total: 2 });
  });

  test('advances to the time-out a handler waits for, and runs what is due until then', async () => {
    const start = tasks.clock.now();
    const ended: unknown[] = [];
    app.get(AsynqServer).events.on('taskFinished', ({ task, outcome }) => {
      ended.push([task.type, outcome, (tasks.clock.now() - start) / 1000]);
    });
    await client.enqueue('times-out', undefined, { timeout: '5m', maxRetry: 1 });
    await client.enqueue('later', 1, { processIn: '2m' });
    const summary = await tasks.advance('20m');
    expect(ended).toEqual([
      ['later', 'done', 120],
      ['times-out', 'retry', 300],
      ['times-out', 'archived', 660],
    ]);
    expect(summary).toMatchObject({ done: 1, retry: 1, archived: 1, total: 3 });
    expect(summary.errors).toMatchObject([{ code: 'ASYNQ_DEADLINE_EXCEEDED' }, { code: 'ASYNQ_DEADLINE_EXCEEDED' }]);
    expect(tasks.clock.now() - start).toBe(1_200_000);
  });

  test('stops a handler at its deadline, too, and under faked timers', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    await client.enqueue('times-out', undefined, { deadline: new Date(tasks.clock.now() + 60_000), maxRetry: 0 });
    expect(await tasks.advance('1m')).toMatchObject({ archived: 1 });
  });

  test('does not move the clock while a handler may do real work', async () => {
    await client.enqueue('slow-but-real', undefined, { timeout: '30s' });
    expect(await tasks.advance('1h', { patience: '1m' })).toMatchObject({ done: 1, retry: 0 });
    await client.enqueue('times-out', undefined, { timeout: '30s' });
    await client.enqueue('waits', undefined, { timeout: '30s' }); // has no signal: it works
    expect(await tasks.advance('30s')).toMatchObject({ done: 1, retry: 1 });
  });

  test('refuses an invalid duration', async () => {
    await expect(tasks.advance('1m', { patience: 'long' as never })).rejects.toMatchObject({ code: 'ASYNQ_TESTING' });
    await expect(tasks.advance('10' as never)).rejects.toMatchObject({ code: 'ASYNQ_TESTING' });
  });
});

describe('work', () => {
  test('runs one task as in production', async () => {
    await client.enqueue(WelcomeEmail, { userId: 1 });
    const outcome = await tasks.work(WelcomeEmail, { userId: 2 });
    expectTypeOf(outcome).toEqualTypeOf<WorkOutcome<string>>();
    expect(outcome).toMatchObject({
      outcome: 'done',
      result: 'sent to 2',
      error: undefined,
      task: { type: 'email:welcome', queue: 'critical' },
    });
    expect(tasks.enqueued(WelcomeEmail)).toHaveLength(1); // the other one
  });

  test('shows what the handler threw', async () => {
    mailer.failures = 1;
    expect(await tasks.work(WelcomeEmail, { userId: 2 })).toMatchObject({
      outcome: 'retry',
      error: new Error('SMTP down'),
    });
    expect(await tasks.work('throws-text')).toMatchObject({ outcome: 'retry', error: 'a text' });
    mailer.failures = 1;
    expect(await tasks.work(WelcomeEmail, { userId: 2 }, { maxRetry: 0 })).toMatchObject({ outcome: 'archived' });
  });

  test('compiles only with the payload of the definition', () => {
    const compiles = () => {
      // @ts-expect-error a missing payload
      void tasks.work(WelcomeEmail);
      // @ts-expect-error a payload of another type
      void tasks.work(WelcomeEmail, { userId: 'two' });
      // @ts-expect-error a field is missing
      void tasks.work(WelcomeEmail, {});
      // @ts-expect-error a task that is to run now cannot be delayed
      void tasks.work(WelcomeEmail, { userId: 2 }, { processIn: '1h' });
      void tasks.work<string>('email:welcome');
    };
    expectTypeOf(compiles).returns.toBeVoid();
  });

  test('runs a task at once whose definition delays it, and keeps what it writes', async () => {
    expect(await tasks.work(Later, 1)).toMatchObject({ outcome: 'done' });
    await tasks.work('writes', undefined, { retention: '1h', queue: 'unserved' });
    expect(tasks.completed('writes')[0]?.result?.toString()).toBe('{"half":true}');
  });

  test('lets the test move the clock while a handler runs: a timeout', async () => {
    const running = tasks.work('times-out', undefined, { timeout: '30s' });
    await vi.waitFor(() => expect(tasks.all('times-out')).toMatchObject([{ state: 'active' }]));
    await vi.waitFor(() => expect(tasks.clock.nextDue()).toBeDefined());
    tasks.clock.advance(30_000);
    expect(await running).toMatchObject({ outcome: 'retry', error: { code: 'ASYNQ_DEADLINE_EXCEEDED' } });
  });

  test('refuses to wait for a time-out: nobody moves the clock', async () => {
    await expect(tasks.work('times-out', undefined, { timeout: '30s' })).rejects.toThrow(
      /"times-out" \(id .*waits for/,
    );
  });

  test('refuses a task with a group', async () => {
    const Grouped = defineTask('later', { group: 'g' });
    await expect(tasks.work(Grouped)).rejects.toMatchObject({
      code: 'ASYNQ_TESTING',
      message: expect.stringContaining('became "aggregating" and not pending'),
    });
  });
});

test('clear deletes everything', async () => {
  await client.enqueue('later', 1, { unique: '1h' });
  tasks.clear();
  expect(tasks.all()).toEqual([]);
  await client.enqueue('later', 1, { unique: '1h' });
  expect(tasks.enqueued()).toHaveLength(1);
});

describe('from', () => {
  test('works before and after init, and when the application is closed', async () => {
    const app = await compiled();
    const before = AsynqTester.from(app);
    expect(await before.work('waits')).toMatchObject({ outcome: 'done' });
    await app.init();
    const after = AsynqTester.from(app);
    expect(await before.work('waits')).toMatchObject({ outcome: 'done' });
    expect(await after.work('waits')).toMatchObject({ outcome: 'done' });
    await app.get(AsynqClient).enqueue('later');
    await app.close();
    expect(after.enqueued('later')).toHaveLength(1);
  });

  test('names the missing override', async () => {
    const app = await Test.createTestingModule({
      imports: [
        AsynqModule.forRoot({ connection: 'memory' }),
        AsynqModule.forRoot({ connection: 'memory', name: 'billing' }),
      ],
    }).compile();
    expect(() => AsynqTester.from(app)).toThrow(
      'AsynqTester.from: the connection "default" is not on an InMemoryBroker; before compile() add ' +
        '.overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker)',
    );
    expect(() => AsynqTester.from(app, 'billing')).toThrow(".overrideProvider(getAsynqBrokerToken('billing'))");
    expect(() => AsynqTester.from(app, 'bililng')).toThrow(/did you mean "billing"/);
    await app.close();
  });

  test('reports a missing module, or handler', async () => {
    const empty = await Test.createTestingModule({}).compile();
    expect(() => AsynqTester.from(empty)).toThrow(/this module has no AsynqModule/);
    const app = await Test.createTestingModule({ imports: [AsynqModule.forRoot({ connection: 'memory' })] })
      .overrideProvider(ASYNQ_BROKER)
      .useClass(InMemoryBroker)
      .compile();
    await app.get(AsynqClient).enqueue('x');
    const tester = AsynqTester.from(app);
    expect(tester.enqueued()).toHaveLength(1);
    await expect(tester.drain()).rejects.toThrow(/nothing can run: this module has no @TaskHandler for the connection/);
    await app.close();
  });

  test('works with server: false when nothing runs', async () => {
    const app = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: 'memory', server: false })],
      providers: [Mailer, Tasks],
    })
      .overrideProvider(ASYNQ_BROKER)
      .useClass(InMemoryBroker)
      .compile();
    await app.get(AsynqClient).enqueue('x');
    expect(AsynqTester.from(app).enqueued()).toHaveLength(1);
    await expect(AsynqTester.from(app).drain()).rejects.toMatchObject({ code: 'ASYNQ_SERVER_STATE' });
    await app.close();
  });
});

test('a faked setTimeout, setImmediate and Date do not stop it', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  await client.enqueue('countdown', 3);
  expect(await tasks.drain()).toMatchObject({ done: 4 });
});
