import { Test, type TestingModule } from '@nestjs/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqModule,
  type AsynqModuleOptions,
  AsynqServer,
  AsynqTaskEvents,
  BrokerUnavailableError,
  type FleetOptions,
  type FleetTaskEvent,
  ManualClock,
  SkipRetry,
  Steps,
  type TaskEventName,
  TaskHandler,
  type TaskSteps,
} from 'nestjs-asynq';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { EventWriter } from '../../lib/event-streams/event-writer.js';
import { quiet } from './support.js';

class Work {
  @TaskHandler('works')
  works(): string {
    return 'a result that is nobody’s business';
  }
  @TaskHandler('fails')
  fails(): void {
    throw Object.assign(new TypeError('no'.repeat(2_000)), { code: 'E_NO' });
  }
  @TaskHandler('odd')
  odd(): void {
    throw new SkipRetry('enough', { cause: Symbol('odd') });
  }
}

class Stepwise {
  @TaskHandler('stepwise')
  async handle(@Steps() steps: TaskSteps): Promise<void> {
    await steps.run('capture', () => 'a result that is nobody’s business');
  }
}

/** Processes that share one in-memory broker and clock. */
function fleet() {
  const clock = new ManualClock();
  const broker = new MemoryBroker(clock);
  const start = async (options: Partial<AsynqModuleOptions>): Promise<TestingModule> => {
    const shared = Object.assign(Object.create(broker) as MemoryBroker, { close: () => Promise.resolve() });
    const app = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: 'memory', ...options })],
      providers: [Work, Stepwise],
    })
      .setLogger(quiet)
      .overrideProvider(ASYNQ_BROKER)
      .useValue(shared)
      .compile();
    await app.init();
    onTestFinished(() => app.close());
    return app;
  };
  const follow = <E extends TaskEventName>(app: TestingModule, names: E | E[], options?: FleetOptions) => {
    const seen: FleetTaskEvent<E>[] = [];
    const subscription = app
      .get(AsynqTaskEvents)
      .fleet(names, options)
      .subscribe((event) => seen.push(event));
    return { seen, subscription };
  };
  /** Moves the clock until the condition holds. */
  const until = (condition: () => void): Promise<void> =>
    vi.waitFor(
      async () => {
        await clock.advance(250);
        condition();
      },
      { interval: 5 },
    );
  return { broker, clock, start, follow, until };
}

describe('the stream of events', () => {
  it('tells of steps, if it is to', async () => {
    const { start, follow, until } = fleet();
    const [worker, looker] = [
      await start({ eventStream: { events: ['stepFinished', 'finished'] } }),
      await start({ server: false }),
    ];
    const { seen } = follow(looker, ['stepFinished', 'finished']);
    await worker.get(AsynqClient).enqueue('stepwise');
    await until(() => expect(seen).toHaveLength(2));
    expect(seen).toMatchObject([
      { event: 'stepFinished', step: 'capture', kind: 'run', outcome: 'done', task: { type: 'stepwise' } },
      { event: 'finished', outcome: 'done' },
    ]);
    expect(JSON.stringify(seen)).not.toContain('nobody');
  });

  it('sends events to other processes, by all their names, without payload and result', async () => {
    const { start, follow, until } = fleet();
    const [worker, looker] = [await start({ eventStream: true }), await start({ server: false })];
    const [failed, all] = [follow(looker, 'failed'), follow(looker, ['succeeded', 'finished'], { type: 'work' })];
    const client = looker.get(AsynqClient);
    const { id } = await client.enqueue('fails', { secret: 1 }, { maxRetry: 3 });
    await client.enqueue('works');
    await until(() => expect([failed.seen.length, all.seen.length]).toEqual([1, 2]));
    expect(failed.seen[0]).toEqual({
      event: 'failed',
      id: expect.stringMatching(/^\d+-\d+$/) as string,
      at: expect.any(Date) as Date,
      process: expect.stringContaining(`:${process.pid}`) as string,
      task: { id, type: 'fails', queue: 'default' },
      outcome: 'retry',
      retried: 0,
      maxRetry: 3,
      waited: expect.any(Number) as number,
      duration: expect.any(Number) as number,
      retryAt: expect.any(Date) as Date,
      error: { name: 'TypeError', message: 'no'.repeat(500), code: 'E_NO' },
    });
    expect(all.seen.map(({ event, task }) => `${event} ${task.type}`)).toEqual(['finished works', 'succeeded works']);
    expect(JSON.stringify(all.seen)).not.toContain('result');
    for (const { subscription } of [failed, all]) subscription.unsubscribe();
    await client.enqueue('works');
    await worker.close();
    expect(all.seen).toHaveLength(2);
  });

  it('can be read from an event or from the beginning, and skips entries that are no events', async () => {
    const { start, follow, until, broker } = fleet();
    const app = await start({ eventStream: { events: ['enqueued', 'archived'], maxLength: 500 } });
    await app.get(AsynqClient).enqueueMany('works', Array.from({ length: 600 }));
    await app.get(AsynqClient).enqueue('odd');
    const early = follow(app, ['enqueued', 'archived'], { from: '0', interval: '50ms' });
    await until(() => expect(early.seen.at(-1)).toMatchObject({ event: 'archived', error: { name: 'SkipRetry' } }));
    expect(early.seen[0]).toMatchObject({ event: 'enqueued', state: 'pending', task: { type: 'works' } });
    await broker.events.appendEvents(
      'events',
      ['{', 'null', '{"names":["failed"]}'].map((text) => Buffer.from(text)),
      { most: 500 },
    );
    await app.get(AsynqClient).enqueue('works');
    const last = early.seen.length;
    const resumed = follow(app, 'enqueued', { from: early.seen.at(-1)!.id });
    await until(() => expect([early.seen.length, resumed.seen.length]).toEqual([last + 1, 1]));
    expect(resumed.seen[0]!.id).toBe(early.seen.at(-1)!.id);
    const odd = { names: ['archived'], event: 'succeeded', id: 'x', task: { id: 'a', type: 'odd', queue: 'default' } };
    await broker.events.appendEvents('events', [Buffer.from(JSON.stringify(odd))], { most: 500 });
    await until(() => expect(early.seen).toHaveLength(last + 2));
    expect(early.seen.at(-1)).toMatchObject({ event: 'archived', id: expect.stringMatching(/^\d+-\d+$/) });
  });

  it('completes at shutdown, after the last events', async () => {
    const { start, follow, until } = fleet();
    const [worker, looker] = [await start({ eventStream: true }), await start({ server: false })];
    const { seen, subscription } = follow(looker, 'finished', { from: '0' });
    const finished = new Promise((resolve) => worker.get(AsynqServer).events.on('taskFinished', resolve));
    await looker.get(AsynqClient).enqueue('works');
    await finished;
    await worker.close();
    await until(() => expect(seen).toHaveLength(1));
    await looker.close();
    expect(subscription.closed).toBe(true);
  });

  it('drops events while Redis is unavailable, logs it once, and affects no task', async () => {
    const { start, follow, until, broker } = fleet();
    const app = await start({ eventStream: true });
    const { seen } = follow(app, 'finished', { interval: '50ms' });
    const [failures, outcomes]: [unknown[], unknown[]] = [[], []];
    const { events } = app.get(AsynqServer);
    events.on('eventStreamFailed', (event) => failures.push(event));
    events.on('eventStreamUnread', (event) => failures.push(event));
    events.on('taskFinished', ({ outcome }) => outcomes.push(outcome));
    const away = new BrokerUnavailableError('away');
    const append = vi.spyOn(broker.events, 'appendEvents').mockRejectedValue(away);
    const read = vi.spyOn(broker.events, 'readEvents').mockRejectedValue(away);
    for (let count = 1; count <= 2; count++) {
      await app.get(AsynqClient).enqueue('works');
      await until(() => expect([append.mock.calls.length, outcomes.length]).toEqual([count, count]));
    }
    expect(outcomes).toEqual(['done', 'done']);
    expect(read.mock.calls.length).toBeGreaterThan(1);
    expect(failures).toHaveLength(2);
    expect(failures).toEqual(expect.arrayContaining([{ error: away, lost: 1 }, { error: away }]));
    append.mockRestore();
    read.mockRestore();
    await app.get(AsynqClient).enqueue('works');
    await until(() => expect(seen).toHaveLength(1));
  });

  it('buffers no more than the stream keeps', async () => {
    const clock = new ManualClock();
    const broker = new MemoryBroker(clock);
    const events = new AsynqEvents();
    const names = ['started'] as const;
    const writer = new EventWriter({ broker, events, names, maxLength: 1_000_000, process: 'h:1' });
    const task = { id: 'a', type: 't', queue: 'q' };
    const lost: number[] = [];
    events.on('eventStreamFailed', (event) => lost.push(event.lost));
    // Five thousand are written at once, ten thousand wait meanwhile.
    for (let count = 0; count < 15_005; count++) events.emit('taskStarted', { task, retried: 0, maxRetry: 0 });
    await writer.close();
    expect(await broker.events.readEvents('events', '0-0', 20_000)).toHaveLength(15_000);
    expect(lost).toEqual([5]);
  });

  it.each<[unknown, string | RegExp]>([
    ['yes', 'AsynqModule option eventStream must be an object, not "yes"'],
    [{ maxLength: 5 }, 'eventStream.maxLength must be a whole number from 100 to 1000000, not 5'],
    [{ maxlength: 5 }, 'did you mean "maxLength"?'],
    [
      { events: ['failure'] },
      'AsynqModule option eventStream.events: there is no task event "failure"; did you mean "failed"?',
    ],
  ])('refuses the option %j', async (eventStream, message) => {
    await expect(fleet().start({ eventStream: eventStream as boolean })).rejects.toThrow(message);
  });

  it('refuses unknown events and options', async () => {
    const events = (await fleet().start({})).get(AsynqTaskEvents);
    expect(() => events.fleet('failure' as never)).toThrow('did you mean "failed"?');
    expect(() => events.fleet('failed', { from: 'now' })).toThrow('from must be the id of an event, not "now"');
    expect(() => events.fleet('failed', { interval: 1 })).toThrow('interval must be 50ms at least');
    expect(() => events.fleet('failed', { queues: 'a' } as never)).toThrow('did you mean "queue"?');
  });
});
