import { Inject, Injectable, Scope, UseInterceptors, type CallHandler, type ExecutionContext } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  ASYNQ_BROKER,
  AsynqModule,
  type AsynqModuleOptions,
  AsynqScheduler,
  AsynqServer,
  getAsynqSchedulerToken,
  InvalidHandlerError,
  InvalidScheduleError,
  PeriodicTask,
  type PeriodicTaskConfig,
  PeriodicTaskSource,
  type TaskContext,
  TaskHandler,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';

let module: TestingModule | undefined;
// Nest 11 refuses to close an application that failed to boot.
afterEach(() => module?.close().catch(() => undefined));

async function compile(providers: object[], options: Partial<AsynqModuleOptions> = {}): Promise<AsynqTester> {
  module = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: 'memory', ...options })],
    providers: providers as never[],
  })
    .overrideProvider(ASYNQ_BROKER)
    .useClass(InMemoryBroker)
    .compile();
  module.useLogger(false);
  return AsynqTester.from(module);
}

let wrapped = 0;
class Counting {
  intercept(_: ExecutionContext, next: CallHandler) {
    wrapped++;
    return next.handle();
  }
}

@Injectable()
class Reports {
  readonly runs: { at: string; payload: unknown; type: string; queue: string }[] = [];

  constructor(@Inject(ASYNQ_BROKER) private readonly broker: InMemoryBroker) {}

  @PeriodicTask('0 9 * * 1-5', { tz: 'Europe/Berlin', payload: { kind: 'daily' }, maxRetry: 1 })
  @UseInterceptors(Counting)
  daily(payload: unknown, { type, queue }: TaskContext): void {
    this.runs.push({ at: new Date(this.broker.clock.now()).toISOString(), payload, type, queue });
  }

  @PeriodicTask('@hourly', { type: 'reports:hourly', overlap: 'skip' })
  hourly(): void {}
}

describe('@PeriodicTask', () => {
  it("enqueues at its planned times and runs through the pipeline, by a test's clock", async () => {
    const tasks = await compile([Reports]);
    tasks.clock.moveTo(Date.parse('2099-03-25T00:00:00Z')); // a Wednesday; the clocks change on Sunday
    wrapped = 0;
    const summary = await tasks.advance('7d');
    const { runs } = module!.get(Reports);
    expect(runs.map(({ at }) => at)).toEqual([
      '2099-03-25T08:00:00.000Z',
      '2099-03-26T08:00:00.000Z',
      '2099-03-27T08:00:00.000Z',
      '2099-03-30T07:00:00.000Z',
      '2099-03-31T07:00:00.000Z',
    ]);
    expect(runs[0]).toMatchObject({ payload: { kind: 'daily' }, type: 'Reports.daily', queue: 'default' });
    expect(wrapped).toBe(5);
    expect(summary.done).toBe(5 + 7 * 24);
    const infos = module!.get(AsynqScheduler).list();
    expect(infos).toMatchObject([
      { type: 'Reports.daily', options: ['MaxRetry(1)'], tz: 'Europe/Berlin' },
      { type: 'reports:hourly', options: [] },
    ]);
  });

  it('is scheduled without a server, and not with scheduler: false', async () => {
    await compile([Reports], { server: false });
    await module!.init();
    const scheduler = module!.get(AsynqScheduler);
    expect(scheduler.status).toBe('active');
    expect(scheduler.list()).toHaveLength(2);
    await module!.close();
    expect(scheduler.status).toBe('stopped');

    await compile([Reports], { scheduler: false });
    await module!.init();
    expect(module!.get(AsynqScheduler).list()).toEqual([]);
    expect(module!.get(AsynqScheduler).status).toBe('new');
  });

  it('waits for start() with autoStart: false', async () => {
    await compile([Reports], { autoStart: false });
    await module!.init();
    expect(module!.get(AsynqScheduler).status).toBe('new');
    expect(module!.get(AsynqScheduler).list()).toHaveLength(2);
  });

  it('is refused at once if it is wrong', async () => {
    const decorate =
      (spec: string, options: object = {}) =>
      () => {
        class Wrong {
          @PeriodicTask(spec, options)
          run(): void {}
        }
        return Wrong;
      };
    expect(decorate('60 * * * *')).toThrow(InvalidScheduleError);
    expect(decorate('0 0 9 * * *')).toThrow(
      '@PeriodicTask of Wrong.run: spec "0 0 9 * * *": expected exactly 5 fields, found 6: [0 0 9 * * *]; there is no field of seconds: write "0 9 * * *"',
    );
    expect(decorate('*/15 * * * * *')).toThrow('there is no field of seconds: write "@every 15s"');
    expect(decorate('* * * * * *')).toThrow('write "@every 1s"');
    expect(decorate('*/15 9 * * * *')).toThrow('write five fields');
    expect(decorate('60 9 * JUL WED')).toThrow('write five fields');
    expect(decorate('0 9 * * 7')).toThrow(/above maximum \(6\).*; Sunday is 0, or SUN$/);
    expect(decorate('0 9 * * 1,5-7')).toThrow('Sunday is 0, or SUN');
    for (const spec of ['0 2 L * *', '0 2 15W * *', '0 2 * * 5L', '0 2 * * 1#2', '0 2 LW * *', '0 2 1,L-3 * *']) {
      expect(decorate(spec)).toThrow('there is no L, W and #: give all days that it may be, as "0 2 28-31 * *"');
    }
    expect(decorate('@every 1d')).toThrow('the longest unit is the hour: write "@every 24h" for a day');
    expect(decorate(30_000 as never)).toThrow(
      '@PeriodicTask of Wrong.run: a spec must be a string, not 30000; write "@every 30s", in whole seconds',
    );
    expect(decorate({ cron: '0 9 * * *' } as never)).toThrow(
      /a spec must be a string, not an object; write five fields/,
    );
    expect(decorate(new Date(0) as never)).toThrow(/not 1970.*; for one time enqueue a task with processAt$/);
    expect(decorate('@daily', { tz: 'X' })).toThrow(
      /^@PeriodicTask of Wrong.run: spec "@daily": .*unknown time zone X; .*Europe\/Berlin/,
    );
    expect(decorate('@daily', { missed: 'all' })).toThrow('@PeriodicTask of Wrong.run: missed must be "skip", "one"');
    expect(decorate('@daily', { overlapp: 'skip' })).toThrow(
      /@PeriodicTask option of Wrong.run: "overlapp".*"overlap"/,
    );
    expect(decorate('@daily', { type: ' ' })).toThrow(InvalidHandlerError);
    expect(() => PeriodicTask('@daily')(class {}, undefined as never, undefined as never)).toThrow(
      /@PeriodicTask belongs/,
    );
    await expect(compile([decorate('@daily', { queue: ' ' })()]).then(() => module!.init())).rejects.toThrow(
      /queue name/,
    );
  });

  it('belongs to the connection it names', async () => {
    @Injectable()
    class Billing {
      @PeriodicTask('@daily', { connection: 'billing' })
      bill(): void {}
    }
    module = await Test.createTestingModule({
      imports: [
        AsynqModule.forRoot({ connection: 'memory', autoStart: false }),
        AsynqModule.forRoot({ name: 'billing', connection: 'memory', autoStart: false }),
      ],
      providers: [Billing],
    }).compile();
    await module.init();
    expect(module.get(AsynqScheduler).list()).toEqual([]);
    expect(module.get<AsynqScheduler>(getAsynqSchedulerToken('billing')).list()).toHaveLength(1);
  });

  it('runs on real time', async () => {
    let ran: (value: unknown) => void = () => {};
    const once = new Promise((resolve) => (ran = resolve));
    @Injectable()
    class Ticks {
      @PeriodicTask('@every 1s')
      tick(_: unknown, { type }: TaskContext): void {
        ran(type);
      }
    }
    module = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: 'memory' })],
      providers: [Ticks],
    }).compile();
    module.useLogger(false);
    await module.init();
    expect(await once).toBe('Ticks.tick');
    expect(module.get(AsynqServer).status).toBe('active');
  });
});

describe('@PeriodicTaskSource', () => {
  it('is polled by the scheduler', async () => {
    let configs: PeriodicTaskConfig[] = [{ spec: '@hourly', task: 'digest', payload: { user: 1 } }];
    const seen: unknown[] = [];
    @Injectable()
    class Digests {
      private readonly own = 'used';

      @PeriodicTaskSource({ interval: '10m' })
      async digests(): Promise<PeriodicTaskConfig[]> {
        expect(this.own).toBe('used');
        return configs;
      }

      @TaskHandler('digest')
      digest(payload: unknown): void {
        seen.push(payload);
      }
    }
    const tasks = await compile([Digests]);
    tasks.clock.moveTo(Date.parse('2099-03-25T00:00:00Z'));
    await tasks.advance('2h');
    expect(seen).toEqual([{ user: 1 }, { user: 1 }]);
    configs = [{ spec: '@hourly', task: 'digest', payload: { user: 2 } }];
    await tasks.advance('1h');
    expect(seen).toEqual([{ user: 1 }, { user: 1 }, { user: 2 }]);
  });

  it('is refused on a request-scoped provider, for an unknown connection, and with a wrong interval', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @PeriodicTaskSource()
      all(): PeriodicTaskConfig[] {
        return [];
      }
    }
    await expect(compile([Scoped]).then(() => module!.init())).rejects.toThrow(/an instance per request/);
    class Lost {
      @PeriodicTaskSource({ connection: 'biling' })
      all(): PeriodicTaskConfig[] {
        return [];
      }
    }
    await expect(compile([Lost]).then(() => module!.init())).rejects.toThrow(/"biling", which no AsynqModule/);
    class Hasty {
      @PeriodicTaskSource({ interval: 1 })
      all(): PeriodicTaskConfig[] {
        return [];
      }
    }
    await expect(compile([Hasty]).then(() => module!.init())).rejects.toThrow(/at least one second/);
  });
});
