import { forwardRef, Injectable, Module, type OnModuleInit, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqModule,
  bytesCodec,
  defineTask,
  DuplicateTaskError,
  getAsynqBrokerToken,
  getAsynqClientToken,
  getAsynqTasksToken,
  InjectTasks,
  InvalidHandlerError,
  InvalidTaskError,
  Payload,
  PeriodicTask,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type TasksOf,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { TaskCalls } from '../../lib/nest/calls/task-calls.js';
import { compile, quiet, rejection, testApp } from './support.js';

interface Welcome {
  userId: number;
}

const WelcomeEmail = defineTask<Welcome, string>('email:welcome', { queue: 'mail', maxRetry: 3, timeout: '30s' });

class Mailer {
  readonly sent: unknown[] = [];
}

const made = vi.fn();
beforeEach(() => made.mockClear());

@Injectable()
class EmailTasks implements OnModuleInit {
  constructor(private readonly mailer: Mailer) {
    made();
  }

  onModuleInit() {}

  @TaskHandler(WelcomeEmail)
  async welcome(@Payload() { userId }: Welcome, @TaskCtx() task: TaskContext): Promise<string> {
    this.mailer.sent.push([userId, task.headers]);
    return `sent to ${userId}`;
  }

  @TaskHandler('email:reminder')
  remind(task: { at?: string } | undefined) {
    this.mailer.sent.push(task);
  }

  @TaskHandler('email:sweep')
  sweep(@TaskCtx() task: TaskContext) {
    this.mailer.sent.push(task.type);
  }

  render(name: string) {
    return `Hello ${name}`;
  }
}

@Injectable()
class SignupService {
  constructor(@InjectTasks(EmailTasks) readonly emails: TasksOf<EmailTasks>) {}
}

/** A process that only produces: EmailTasks is no provider there. */
const producer = async () => {
  const { app, tasks } = await testApp({ providers: [SignupService] }, { server: false });
  return { app, tasks, emails: app.get(SignupService).emails };
};

describe('the handlers of a class as methods', () => {
  it('enqueue tasks that the handlers run', async () => {
    const { app, tasks } = await testApp(
      { providers: [SignupService, EmailTasks, Mailer] },
      { server: { queues: ['mail', 'default'] } },
    );
    const info = await app.get(SignupService).emails.welcome({ userId: 42 });
    expect(info).toMatchObject({ type: 'email:welcome', queue: 'mail', maxRetry: 3, timeout: 30_000 });
    await app.get(SignupService).emails.sweep();
    await tasks.drain();
    expect(app.get(Mailer).sent).toEqual([[42, {}], 'email:sweep']);
  });

  it('need neither the handlers nor what these inject', async () => {
    const { tasks, emails } = await producer();
    await emails.welcome({ userId: 42 });
    await emails.remind();
    expect(tasks.enqueued().map(({ type, payload }) => [type, payload])).toEqual([
      ['email:welcome', { userId: 42 }],
      ['email:reminder', undefined],
    ]);
    expect(made).not.toHaveBeenCalled();
  });

  it('take options before the call, also in steps, and again', async () => {
    const { tasks, emails } = await producer();
    const later = emails.with({ processIn: '10m', headers: { a: '1' } });
    await later.with({ headers: { b: '2' }, maxRetry: 1 }).welcome({ userId: 1 });
    await later.welcome({ userId: 2 });
    await emails.welcome({ userId: 3 });
    expect(tasks.enqueued(WelcomeEmail)).toMatchObject([
      { state: 'scheduled', headers: { a: '1', b: '2' }, maxRetry: 1, queue: 'mail' },
      { state: 'scheduled', headers: { a: '1' }, maxRetry: 3 },
      { state: 'pending', headers: {}, maxRetry: 3 },
    ]);
    const once = emails.with({ unique: '1h' });
    await once.remind({ at: 'noon' });
    expect(await rejection(once.remind({ at: 'noon' }))).toBeInstanceOf(DuplicateTaskError);
  });

  it('can be taken off the object', async () => {
    const { tasks, emails } = await producer();
    const { welcome } = emails.with({ queue: 'low' });
    await welcome({ userId: 1 });
    expect(tasks.enqueued(WelcomeEmail)).toMatchObject([{ queue: 'low' }]);
  });

  it('can be mapped over payloads', async () => {
    const { tasks, emails } = await producer();
    await Promise.all([{ userId: 1 }, { userId: 2 }].map(emails.welcome));
    expect(tasks.enqueued(EmailTasks, 'welcome').map(({ payload }) => payload.userId)).toEqual([1, 2]);
  });

  it('can be injected into a property', async () => {
    @Injectable()
    class User {
      @InjectTasks(EmailTasks)
      readonly emails!: TasksOf<EmailTasks>;
    }
    const { app, tasks } = await testApp({ providers: [User] }, { server: false });
    await app.get(User).emails.sweep();
    expect(tasks.enqueued(EmailTasks, 'sweep')).toHaveLength(1);
  });

  it('are sent together in one tick, and cost no promise of their own', async () => {
    const { app, emails } = await producer();
    const client = app.get(AsynqClient);
    const promise = Promise.resolve() as never;
    vi.spyOn(client, 'enqueue').mockReturnValueOnce(promise);
    expect(emails.welcome({ userId: 1 })).toBe(promise);
    vi.mocked(client.enqueue).mockRestore();
    const broker = app.get<InMemoryBroker>('ASYNQ_BROKER');
    const calls = vi.spyOn(broker.producer, 'enqueue');
    await Promise.all([emails.welcome({ userId: 1 }), emails.with({ maxRetry: 1 }).welcome({ userId: 2 })]);
    expect(calls).toHaveBeenCalledTimes(1);
  });
});

describe('a call that cannot enqueue', () => {
  it('of a method that is no handler names the handlers', async () => {
    const { emails } = await producer();
    expect(() => emails.render('you')).toThrow(InvalidHandlerError);
    expect(() => emails.render('you')).toThrow(
      'EmailTasks.render is no handler, so a call of it enqueues nothing; handlers are welcome, remind, sweep',
    );
  });

  it('with options behind the payload says where they go', async () => {
    const { emails } = await producer();
    const loose = emails.welcome as (...args: unknown[]) => unknown;
    expect(() => loose({ userId: 1 }, { queue: 'low' })).toThrow(InvalidTaskError);
    expect(() => loose({ userId: 1 }, { queue: 'low' })).toThrow('give options before: with(options)');
    expect(() => emails.with(5 as never)).toThrow('options of with(…) must be an object, not 5');
    const error = await rejection(emails.with({ delay: 5 } as never).welcome({ userId: 1 }));
    expect(error.message).toContain('unknown task option "delay"');
  });

  it('of a method whose payload it cannot know says what to do', async () => {
    class Odd {
      @TaskHandler('odd:one')
      @TaskHandler('odd:two')
      several() {}
      @TaskHandler('odd:parts')
      parts(@Payload('id') _id: number) {}
      @TaskHandler('odd:behind')
      behind(@Payload('id') _id: number, @Payload() _all: object) {}
      @TaskHandler('odd:other', { connection: 'biling' })
      elsewhere(_payload: object) {}
    }
    @Injectable()
    class User {
      constructor(@InjectTasks(Odd) readonly odd: TasksOf<Odd>) {}
    }
    const { app } = await testApp({ providers: [User] }, { server: false });
    const { odd } = app.get(User);
    expect(() => odd.several()).toThrow('Odd.several handles several task types (odd:one, odd:two)');
    expect(() => odd.parts(1)).toThrow(
      /^Odd\.parts takes no whole payload as its first parameter.* asynq\.enqueue\(type, payload\), and in a test tasks\.work\(type, payload\)$/,
    );
    expect(() => odd.behind(1)).toThrow('Odd.behind takes the payload behind another parameter');
    expect(() => odd.elsewhere({})).toThrow(
      'Odd.elsewhere is for the connection "biling", which no AsynqModule.forRoot names',
    );
  });

  it('is refused when the class is none, has no handlers, or one of a reserved name', () => {
    expect(() => InjectTasks(undefined as never)).toThrow(
      '@InjectTasks takes a class with @TaskHandler methods, not undefined; where two files import each other, give forwardRef',
    );
    class Empty {
      work() {}
    }
    class Reserved {
      @TaskHandler('reserved')
      with(_payload: object) {}
    }
    expect(() => InjectTasks(Empty)).toThrow('@InjectTasks(Empty): no method of Empty has @TaskHandler');
    expect(() => InjectTasks(Reserved)).toThrow('Reserved.with cannot be called to enqueue');
  });
});

describe('the class of injected tasks', () => {
  it('may inherit handlers, and override them', async () => {
    class Base {
      @TaskHandler('base:kept')
      kept(_payload: number) {}
      @TaskHandler('base:changed')
      changed(_payload: number) {}
    }
    class Derived extends Base {
      override changed() {}
    }
    @Injectable()
    class User {
      constructor(@InjectTasks(Derived) readonly tasks: TasksOf<Derived>) {}
    }
    const { app, tasks } = await testApp({ providers: [User] }, { server: false });
    await app.get(User).tasks.kept(1);
    expect(tasks.enqueued()).toMatchObject([{ type: 'base:kept', payload: 1 }]);
    expect(() => app.get(User).tasks.changed()).toThrow('Derived.changed is no handler');
  });

  it('may be a periodic task, and name a codec of its own', async () => {
    class Reports {
      @PeriodicTask('@daily', { queue: 'reports', tz: 'Europe/Berlin', retention: '1h' })
      daily() {}
      @TaskHandler('image:resize', { codec: bytesCodec })
      resize(_image: Buffer) {}
      @TaskHandler(WelcomeEmail, { codec: bytesCodec })
      raw(bytes: Buffer) {
        return bytes.toString();
      }
    }
    @Injectable()
    class User {
      constructor(@InjectTasks(Reports) readonly tasks: TasksOf<Reports>) {}
    }
    const { app, tasks } = await testApp({ providers: [User] }, { server: false });
    const { tasks: reports } = app.get(User);
    await reports.daily();
    expect(tasks.enqueued()).toMatchObject([{ type: 'Reports.daily', queue: 'reports', retention: 3_600_000 }]);
    expect((await rejection(reports.resize('text' as never))).message).toContain('is not bytes');
    await reports.raw(Buffer.from('hi'));
    expect(tasks.enqueued(WelcomeEmail)).toMatchObject([{ queue: 'mail', rawPayload: Buffer.from('hi') }]);
  });

  it('is made once, for all who inject it, and not in applications that do not', async () => {
    class Shared {
      @TaskHandler('shared')
      run() {}
      get then() {
        return undefined; // no method
      }
    }
    @Injectable()
    class One {
      constructor(@InjectTasks(Shared) readonly tasks: TasksOf<Shared>) {}
    }
    @Injectable({ scope: Scope.REQUEST })
    class Other {
      constructor(@InjectTasks(Shared) readonly tasks: TasksOf<Shared>) {}
    }
    const make = vi.spyOn(TaskCalls.prototype, 'of');
    const { app } = await testApp({ providers: [One, Other] }, { server: false });
    expect((await app.resolve(Other)).tasks).toBe(app.get(One).tasks);
    expect(make.mock.calls.every(([tasks]) => tasks === Shared)).toBe(true);
    make.mockClear();
    await testApp({}, { server: false });
    expect(make).not.toHaveBeenCalled();
  });

  it('may be given when every file is loaded', async () => {
    const late: { tasks?: typeof EmailTasks } = {};
    @Injectable()
    class User {
      constructor(@InjectTasks(forwardRef(() => late.tasks!)) readonly emails: TasksOf<EmailTasks>) {}
    }
    late.tasks = EmailTasks;
    const { app, tasks } = await testApp({ providers: [User] }, { server: false });
    await app.get(User).emails.sweep();
    expect(tasks.enqueued()).toMatchObject([{ type: 'email:sweep' }]);
  });

  it('may inject its own calls', async () => {
    @Injectable()
    class Chain {
      constructor(@InjectTasks(Chain) private readonly next: TasksOf<Chain>) {
        made();
      }
      @TaskHandler('chain:link')
      async link(left: number): Promise<void> {
        if (left > 0) await this.next.link(left - 1);
      }
    }
    @Injectable()
    class User {
      constructor(@InjectTasks(Chain) readonly chain: TasksOf<Chain>) {}
    }
    const { app, tasks } = await testApp({ providers: [Chain, User] });
    await app.get(User).chain.link(3);
    expect((await tasks.drain()).total).toBe(4);
    expect(made).toHaveBeenCalledTimes(1); // no instance per task
  });

  it('may have handlers of several connections, each of which gets its tasks', async () => {
    class Billing {
      @TaskHandler('mail:invoice')
      mail(_payload: number) {}
      @TaskHandler('billing:charge', { connection: 'billing' })
      charge(_payload: number) {}
    }
    @Injectable()
    class User {
      constructor(@InjectTasks(Billing) readonly billing: TasksOf<Billing>) {}
    }
    @Module({
      imports: [AsynqModule.forRoot({ connection: 'memory', name: 'billing', server: false })],
      providers: [User],
    })
    class BillingModule {}
    const app = await compile(
      Test.createTestingModule({
        imports: [AsynqModule.forRoot({ connection: 'memory', server: false }), BillingModule],
      })
        .overrideProvider(getAsynqBrokerToken('billing'))
        .useClass(InMemoryBroker),
    );
    const { billing } = app.get(User, { strict: false });
    await billing.mail(1);
    await billing.charge(2);
    expect(AsynqTester.from(app).enqueued()).toMatchObject([{ type: 'mail:invoice' }]);
    expect(AsynqTester.from(app, 'billing').enqueued()).toMatchObject([{ type: 'billing:charge' }]);
    expect(app.get(getAsynqClientToken('billing'), { strict: false })).toBeInstanceOf(AsynqClient);
  });

  it('is known to a module whose options come from a factory, and to all modules if that is global', async () => {
    @Module({ providers: [SignupService], exports: [SignupService] })
    class Feature {}
    const options = { connection: 'memory', server: false } as const;
    const app = await compile(
      Test.createTestingModule({
        imports: [AsynqModule.forRootAsync({ isGlobal: true, useFactory: async () => options }), Feature],
      }),
    );
    await app.get(SignupService).emails.welcome({ userId: 7 });
    expect(AsynqTester.from(app).enqueued(EmailTasks, 'welcome')).toMatchObject([{ payload: { userId: 7 } }]);
  });

  it('can be replaced by its token, without a module', async () => {
    const welcome = vi.fn();
    const app = await Test.createTestingModule({
      providers: [SignupService, { provide: getAsynqTasksToken(EmailTasks), useValue: { welcome } }],
    })
      .setLogger(quiet)
      .compile();
    await app.get(SignupService).emails.welcome({ userId: 1 });
    expect(welcome).toHaveBeenCalledWith({ userId: 1 });
  });
});
