import { applyDecorators, Controller, Inject, Injectable, Scope, SetMetadata, UseGuards } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { filter, firstValueFrom, lastValueFrom, map, toArray } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import {
  ASYNQ_BROKER,
  type AggregatedTask,
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  AsynqServer,
  AsynqTaskEvents,
  defineTask,
  getAsynqTaskEventsToken,
  InvalidHandlerError,
  ManualClock,
  OnTaskEvent,
  Payload,
  PeriodicTask,
  PostponeTask,
  RevokeTask,
  SkipRetry,
  Steps,
  type TaskContext,
  TaskAggregator,
  type TaskEvent,
  TaskHandler,
  type TaskSteps,
} from 'nestjs-asynq';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { compile, quiet, rejection, testApp } from './support.js';

const Mail = defineTask<{ to: string }>('mail:send');

class Work {
  @TaskHandler(Mail)
  send({ to }: { to: string }): string {
    return `to ${to}`;
  }
  @TaskHandler('fails')
  fails(): void {
    throw new Error('no');
  }
  @TaskHandler('skips')
  skips(): void {
    throw new SkipRetry('never');
  }
  @TaskHandler('revokes')
  revokes(): void {
    throw new RevokeTask('not wanted');
  }
  @TaskHandler('postpones')
  postpones(): void {
    throw new PostponeTask('1h');
  }
}

const ALL = [
  'enqueued',
  'started',
  'stepFinished',
  'finished',
  'succeeded',
  'failed',
  'retried',
  'archived',
  'revoked',
  'postponed',
  'requeued',
  'lost',
  'cancelled',
  'aggregated',
  'waitEnded',
] as const;

@Injectable()
class Recorder {
  readonly events: TaskEvent[] = [];
  @OnTaskEvent(ALL)
  on(event: TaskEvent): void {
    this.events.push(event);
  }
  names(): string[] {
    return this.events.splice(0).map(({ event }) => event);
  }
}

const recorded = async (providers: NonNullable<Parameters<typeof testApp>[0]['providers']> = []) => {
  const made = await testApp({ providers: [Work, Recorder, ...providers] });
  return { ...made, recorder: made.app.get(Recorder), client: made.app.get(AsynqClient) };
};

describe('@OnTaskEvent', () => {
  it('receives the events of a successful task, from its enqueue to its end', async () => {
    const { tasks, recorder } = await recorded();
    const { task } = await tasks.work(Mail, { to: 'ada' });
    const ref = { id: task.id, type: 'mail:send', queue: 'default' };
    const common = { connection: 'default', task: ref };
    const attempt = { ...common, retried: 0, maxRetry: 25 };
    const ended = { ...attempt, outcome: 'done', result: 'to ada', duration: 0 };
    expect(recorder.events).toMatchObject([
      { event: 'enqueued', ...common, info: { id: task.id, state: 'pending', maxRetry: 25 } },
      { event: 'started', ...attempt },
      { event: 'finished', ...ended },
      { event: 'succeeded', ...ended },
    ]);
    expect(Object.keys(recorder.events[1]!.task)).toEqual(['id', 'type', 'queue']);
  });

  it('receives the outcome of a failed attempt, with the error and the next time', async () => {
    const { tasks, recorder } = await recorded();
    await tasks.work('fails', undefined, { maxRetry: 1 });
    const failed = recorder.events.find(({ event }) => event === 'failed') as TaskEvent<'failed'>;
    expect(failed).toMatchObject({ outcome: 'retry', retried: 0, maxRetry: 1, error: { message: 'no' } });
    expect(failed.retryAt).toBeInstanceOf(Date);
    expect(recorder.names()).toEqual(['enqueued', 'started', 'finished', 'failed', 'retried']);
    await tasks.advance('1h');
    expect(recorder.events).toMatchObject([{}, {}, { event: 'failed', outcome: 'archived', retried: 1 }, {}]);
    expect(recorder.names()).toEqual(['started', 'finished', 'failed', 'archived']);
  });

  it.each([
    ['skips', ['finished', 'failed', 'archived']],
    ['revokes', ['finished', 'revoked']],
    ['postpones', ['finished', 'postponed']],
  ])('receives the events of a task that %s', async (type, names) => {
    const { tasks, recorder } = await recorded();
    await tasks.work(type);
    expect(recorder.names()).toEqual(['enqueued', 'started', ...names]);
  });

  it('receives the steps that a handler does, and not those that are answered from what is stored', async () => {
    class Stepwise {
      fails = 1;
      @TaskHandler('stepwise')
      async handle(@Steps() steps: TaskSteps): Promise<void> {
        for (const n of [1, 2]) await steps.run('row', () => n);
        await steps.sleep('nap', '1h');
        await steps.run('ship', () => {
          if (this.fails-- > 0) throw new Error('no parcel');
        });
      }
    }
    const { tasks, recorder } = await recorded([Stepwise]);
    const { task } = await tasks.work('stepwise');
    const seen = () => recorder.events.splice(0).filter(({ event }) => event === 'stepFinished');
    const done = {
      task: { id: task.id, type: 'stepwise', queue: 'default' },
      kind: 'run',
      outcome: 'done',
      duration: 0,
    };
    expect(seen()).toEqual(
      ['row', 'row#2'].map((step) => ({
        event: 'stepFinished',
        connection: 'default',
        ...done,
        step,
        error: undefined,
      })),
    );
    await tasks.advance('1h');
    expect(seen()).toMatchObject([{ step: 'ship', outcome: 'failed', error: { message: 'no parcel' } }]);
    await tasks.advance('1h');
    expect(seen()).toMatchObject([{ step: 'ship', outcome: 'done' }]);
  });

  it('receives one event per task of enqueueMany, and none for refused tasks', async () => {
    const { client, recorder } = await recorded();
    await client.enqueueMany(Mail, [{ to: 'a' }, { to: 'a' }, { to: 'b' }], { unique: '1h' });
    await client.enqueue('mail:send', { to: 'a' }, { unique: '1h' }).catch(() => undefined);
    const payloads = recorder.events.map((event) => String((event as TaskEvent<'enqueued'>).info.payload));
    expect(payloads).toEqual(['{"to":"a"}', '{"to":"b"}']);
  });

  it('receives events of periodic tasks and of aggregated groups', async () => {
    class Clockwork {
      @PeriodicTask('@every 10s', { type: 'tick' })
      tick(): void {}
      @TaskAggregator()
      collect(): AggregatedTask {
        return { type: 'mail:send', payload: { to: 'all' }, options: { processIn: '1h' } };
      }
    }
    const { client, tasks, recorder } = await recorded([Clockwork]);
    await client.enqueue('note', undefined, { group: 'g' });
    await tasks.advance('10s');
    const ticks = recorder.events.splice(0).filter(({ task }) => task.type === 'tick');
    expect(ticks.map(({ event }) => event)).toEqual(['enqueued', 'started', 'finished', 'succeeded']);
    await tasks.advance('1m');
    const made = recorder.events.filter(({ task }) => task.type === 'mail:send');
    expect(made).toMatchObject([
      { event: 'enqueued', info: { state: 'scheduled' } },
      { event: 'aggregated', group: 'g', size: 1, task: { id: made[0]!.task.id } },
    ]);
  });

  it('receives only the chosen types, prefixes and queues', async () => {
    const seen: string[] = [];
    class Picky {
      @OnTaskEvent('succeeded', { type: [Mail, 'fa'], queue: ['low', 'high'] })
      @OnTaskEvent(['retried', 'enqueued'], { type: 'fa' })
      on({ event, task }: TaskEvent): void {
        seen.push(`${event} ${task.type} ${task.queue}`);
      }
    }
    const { tasks } = await testApp({ providers: [Work, Picky] });
    for (const queue of ['low', 'default']) await tasks.work(Mail, { to: 'x' }, { queue });
    await tasks.work('fails');
    expect(seen).toEqual(['succeeded mail:send low', 'enqueued fails default', 'retried fails default']);
  });

  it('is found on controllers, values and factories, and on a method of a superclass', async () => {
    const seen: unknown[] = [];
    class Base {
      @OnTaskEvent('succeeded')
      on(): void {
        seen.push(this.constructor.name);
      }
    }
    @Controller()
    class AController extends Base {}
    class AValue extends Base {}
    class Made extends Base {}
    const providers = [Work, { provide: 'v', useValue: new AValue() }, { provide: 'm', useFactory: () => new Made() }];
    const { tasks } = await testApp({ providers, controllers: [AController] });
    await tasks.work(Mail, { to: 'x' });
    expect(seen.sort()).toEqual(['AController', 'AValue', 'Made']);
  });

  it('receives what other modules enqueue in their first hook', async () => {
    @Injectable()
    class Early {
      constructor(private readonly client: AsynqClient) {}
      async onModuleInit(): Promise<void> {
        await this.client.enqueue(Mail, { to: 'early' });
      }
    }
    const { app, recorder } = await recorded([Early]);
    await app.init();
    expect(recorder.names()).toEqual(['enqueued']);
  });

  it('belongs to the connection it names', async () => {
    const seen: string[] = [];
    class Billing {
      @OnTaskEvent('enqueued', { connection: 'billing' })
      on({ connection, task }: TaskEvent<'enqueued'>): void {
        seen.push(`${connection} ${task.type}`);
      }
    }
    const app = await compile(
      Test.createTestingModule({
        imports: [
          AsynqModule.forRoot({ connection: 'memory' }),
          AsynqModule.forRoot({ connection: 'memory', name: 'billing', server: false }),
        ],
        providers: [Billing],
      }),
    );
    await app.init();
    await app.get(AsynqClient).enqueue('one');
    await app.get<AsynqClient>('ASYNQ_CLIENT:billing').enqueue('two');
    expect(seen).toEqual(['billing two']);
    expect(app.get(getAsynqTaskEventsToken('billing'))).not.toBe(app.get(AsynqTaskEvents));
  });
});

describe('a listener that fails', () => {
  it('affects no task and no other listener, and is reported by name', async () => {
    class Bad {
      @OnTaskEvent('started')
      throws(): void {
        throw new Error('one');
      }
      @OnTaskEvent('succeeded')
      async rejects(): Promise<void> {
        throw new Error('two');
      }
    }
    const { app, tasks, recorder } = await recorded([Bad]);
    const failures: unknown[] = [];
    app.get(AsynqServer).events.on('listenerFailed', ({ listener, event, error }) => {
      failures.push([listener, event, (error as Error).message]);
    });
    expect(await tasks.work(Mail, { to: 'x' })).toMatchObject({ outcome: 'done' });
    expect(recorder.names()).toEqual(['enqueued', 'started', 'finished', 'succeeded']);
    expect(failures).toEqual([
      ['Bad.throws', 'started', 'one'],
      ['Bad.rejects', 'succeeded', 'two'],
    ]);
  });

  it('compiles on a method that takes the event, or nothing', () => {
    const Both = () => applyDecorators(OnTaskEvent('failed'), SetMetadata('seen', true));
    class Right {
      @OnTaskEvent('failed')
      nothing(): void {}
      @OnTaskEvent('failed', { type: 'mail:' })
      @OnTaskEvent('archived')
      async two({ error }: TaskEvent<'failed' | 'archived'>) {
        await Promise.reject(error);
      }
      @OnTaskEvent(['started', 'finished'])
      any(_event: TaskEvent): void {}
      @OnTaskEvent('retried')
      parts({ retryAt }: { retryAt: Date }): Date {
        return retryAt;
      }
      @Both()
      both(_event: TaskEvent<'failed'>): void {}
    }
    expect(Right).toBeDefined();
  });

  it('does not compile on a method that takes something else', () => {
    class Wrong {
      // @ts-expect-error: a job and its error, as in Bull
      @OnTaskEvent('failed')
      bull(_task: TaskContext, _error: Error): void {}
      // @ts-expect-error: another event
      @OnTaskEvent('failed')
      other(_event: TaskEvent<'succeeded'>): void {}
      // @ts-expect-error: one of two
      @OnTaskEvent(['started', 'finished'])
      half(_event: TaskEvent<'started'>): void {}
      // @ts-expect-error: an error may be anything
      @OnTaskEvent('failed')
      error({ error }: { error: Error }): string {
        return error.message;
      }
    }
    expect(Wrong).toBeDefined();
  });

  it.each([
    [
      'an unknown event',
      () => OnTaskEvent('retry' as never),
      'there is no task event "retry"; did you mean "retried"?',
    ],
    [
      'an event of a worker',
      () => OnTaskEvent('progress' as never),
      'follows the progress of a task with asynq.follow(info)',
    ],
    [
      'another event of a worker',
      () => OnTaskEvent('closed' as never),
      'AsynqServer.events has the events of a server',
    ],
    ['an event of a queue', () => OnTaskEvent('removed' as never), 'who deletes a task by AsynqInspector knows it'],
    ['an event by another name', () => OnTaskEvent('retries-exhausted' as never), 'did you mean "archived"?'],
    ['a name that objects inherit', () => OnTaskEvent('toString' as never), 'events are enqueued, started'],
    ['a blank event', () => OnTaskEvent('' as never), /there is no task event ""; events are enqueued, started/],
    ['no event', () => OnTaskEvent([]), 'needs at least one event'],
    ['an unknown option', () => OnTaskEvent('failed', { queues: 'a' } as never), 'did you mean "queue"?'],
    ['a blank type', () => OnTaskEvent('failed', { type: [' '] }), 'type must contain one or more characters'],
    ['a queue that is no text', () => OnTaskEvent('failed', { queue: 7 as never }), 'queue must be a string, not 7'],
    ['a blank connection', () => OnTaskEvent('failed', { connection: '' }), 'connection must contain'],
  ])('is refused for %s', (_, make, message) => {
    const declare = (): unknown => {
      class Wrong {
        @make()
        on(): void {}
      }
      return Wrong;
    };
    expect(declare).toThrow(InvalidHandlerError);
    expect(declare).toThrow(message);
    expect(declare).toThrow('Wrong.on');
  });

  it('is refused on a request-scoped provider, with enhancers, and for an unknown connection', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      constructor(@Inject(REQUEST) readonly request: unknown) {}
      @OnTaskEvent('failed')
      on(): void {}
    }
    class Guarded {
      @UseGuards({ canActivate: () => true })
      @OnTaskEvent('failed')
      on(): void {}
    }
    class Decorated {
      @OnTaskEvent('failed')
      on(@Payload() _: unknown): void {}
    }
    class Lost {
      @OnTaskEvent('failed', { connection: 'defalt' })
      on(): void {}
    }
    const boot = async (provider: new (...args: never[]) => object) => {
      const imports = [AsynqModule.forRoot({ connection: 'memory' })];
      const app = await compile(Test.createTestingModule({ imports, providers: [provider] }));
      return (await rejection(app.init())).message;
    };
    expect(await boot(Scoped)).toMatch(/Scoped\.on: @OnTaskEvent belongs on a provider with one instance/);
    expect(await boot(Guarded)).toMatch(/Guarded\.on: guards do not apply to an @OnTaskEvent method/);
    expect(await boot(Decorated)).toMatch(/Decorated\.on: .*remove the decorators of its parameters/);
    expect(await boot(Lost)).toMatch(/Lost\.on is for the connection "defalt".*did you mean "default"/);
  });
});

describe('slow listeners', () => {
  it('are awaited by AsynqTester, with the tasks they enqueue', async () => {
    @Injectable()
    class Chain {
      constructor(private readonly client: AsynqClient) {}
      @OnTaskEvent('archived', { type: 'skips' })
      async on(): Promise<void> {
        await new Promise((resolve) => setTimeout(resolve, 2));
        await this.client.enqueue(Mail, { to: 'operator' });
      }
    }
    const { client, tasks } = await recorded([Chain]);
    await client.enqueue('skips');
    expect(await tasks.drain()).toMatchObject({ archived: 1, done: 1 });
  });

  async function slow(onEvent: () => Promise<void>) {
    class Slow {
      @OnTaskEvent('succeeded')
      on(): Promise<void> {
        return onEvent();
      }
    }
    const clock = new ManualClock();
    const app = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: 'memory' })],
      providers: [Work, Slow],
    })
      .setLogger(quiet)
      .overrideProvider(ASYNQ_BROKER)
      .useValue(new MemoryBroker(clock))
      .compile();
    await app.init();
    const succeeded = firstValueFrom(app.get(AsynqTaskEvents).observe('succeeded'));
    await app.get(AsynqClient).enqueue(Mail, { to: 'x' });
    await succeeded;
    return { app, clock };
  }

  it('are awaited at shutdown', async () => {
    let finish = (): void => undefined;
    let ended = false;
    const { app } = await slow(async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      ended = true;
    });
    const closing = app.close().then(() => ended);
    setImmediate(finish);
    expect(await closing).toBe(true);
  });

  it('but for a limited time', async () => {
    const { app, clock } = await slow(() => new Promise(() => {}));
    const left: unknown[] = [];
    app.get(AsynqServer).events.on('listenersLeft', (event) => left.push(event));
    let closed = false;
    const closing = app.close().then(() => (closed = true));
    await vi.waitFor(
      async () => {
        await clock.advance(1_000);
        expect(closed).toBe(true);
      },
      { interval: 5 },
    );
    await closing;
    expect(left).toEqual([{ listeners: 1 }]);
  });
});

describe('AsynqTaskEvents', () => {
  it('returns observables of chosen events, and of all', async () => {
    const { app, tasks } = await testApp({ providers: [Work] });
    const events = app.get(AsynqTaskEvents);
    const everything: string[] = [];
    const all = events.all$.subscribe(({ event }) => everything.push(event));
    const results: unknown[] = [];
    const some = events
      .observe('succeeded', { type: Mail })
      .pipe(map(({ result }) => result))
      .subscribe((result) => results.push(result));
    await tasks.work(Mail, { to: 'a' });
    await tasks.work('fails');
    some.unsubscribe();
    all.unsubscribe();
    await tasks.work(Mail, { to: 'b' });
    expect(results).toEqual(['to a']);
    expect(everything).toEqual([
      'enqueued',
      'started',
      'finished',
      'succeeded',
      'enqueued',
      'started',
      'finished',
      'failed',
      'retried',
    ]);
  });

  it('completes when the application shuts down, also for later subscribers', async () => {
    const { app, tasks } = await testApp({ providers: [Work] });
    await app.init();
    const events = app.get(AsynqTaskEvents);
    const seen = lastValueFrom(
      events.all$.pipe(
        filter(({ event }) => event === 'finished'),
        toArray(),
      ),
    );
    await tasks.work(Mail, { to: 'a' });
    await app.close();
    expect(await seen).toHaveLength(1);
    expect(await lastValueFrom(events.all$, { defaultValue: 'nothing' })).toBe('nothing');
  });

  it('listens only while somebody is subscribed', async () => {
    const { app } = await testApp({ providers: [Work] });
    const { events } = app.get(AsynqServer);
    expect(events.wants('taskStarted')).toBe(false);
    const subscription = app.get(AsynqTaskEvents).observe(['started', 'finished']).subscribe();
    expect([events.wants('taskStarted'), events.measuresWaits]).toEqual([true, true]);
    subscription.unsubscribe();
    expect(events.measuresWaits).toBe(false);
    expect(events.wants('taskStarted')).toBe(false);
    expect(events.wants('taskEnqueued')).toBe(false);
  });

  it('refuses unknown events', async () => {
    const { app } = await testApp({ providers: [Work] });
    const events = app.get(AsynqTaskEvents);
    expect(() => events.observe('failure' as never)).toThrow(InvalidHandlerError);
    expect(() => events.observe('failed', { types: 'a' } as never)).toThrow('did you mean "type"?');
  });
});

describe('a task that is cancelled', () => {
  it('has the event of its cancellation and that of its outcome', async () => {
    class Endless {
      @TaskHandler('endless')
      endless(_: unknown, { signal }: TaskContext): Promise<void> {
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      }
    }
    const app = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: 'memory' })],
      providers: [Endless, Recorder],
    }).compile();
    app.useLogger(false);
    await app.init();
    const events = app.get(AsynqTaskEvents);
    const started = firstValueFrom(events.observe('started'));
    const cancelled = firstValueFrom(events.observe('cancelled'));
    const { id } = await app.get(AsynqClient).enqueue('endless');
    expect((await started).waited).toBeGreaterThanOrEqual(0);
    await app.get(AsynqInspector).cancelProcessing(id, { outcome: 'archive' });
    expect(await cancelled).toMatchObject({
      task: { id },
      outcome: 'archived',
      error: { code: 'ASYNQ_TASK_CANCELED' },
    });
    expect(app.get(Recorder).names()).toContain('archived');
    await app.close();
  });
});
