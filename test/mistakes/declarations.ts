import { Injectable, Module, UseGuards } from '@nestjs/common';
import {
  AsynqClient,
  AsynqModule,
  type AsynqModuleOptions,
  defineTask,
  InjectTasks,
  OnTaskEvent,
  Payload,
  PeriodicTask,
  TaskAggregator,
  type TaskContext,
  TaskCtx,
  TaskHandler,
} from 'nestjs-asynq';
import { boot, mistake, type Mistake, refusal } from './mistake.js';

const option = (text: string, options: unknown): Mistake =>
  mistake(`\`forRoot(${text})\``, () => boot(options as AsynqModuleOptions));

class Mails {
  send(): void {}
}
const method = (): TypedPropertyDescriptor<() => void> => Object.getOwnPropertyDescriptor(Mails.prototype, 'send')!;
/** What a decorator says to the method `Mails.send`. */
const decorate = (decorator: unknown): Promise<string> =>
  refusal(() => (decorator as MethodDecorator)(Mails.prototype, 'send', method()));

/** Replaces the method, as many decorators for retries, caches and logs do. */
function Logged(_target: object, _key: string, descriptor: PropertyDescriptor): PropertyDescriptor {
  return { ...descriptor, value: () => undefined };
}

@Injectable()
class Plain {
  @TaskHandler('mail')
  send(): void {}
}

/** Options of the module and its server. */
export const MODULE: readonly Mistake[] = [
  option('{}', { connection: undefined }),
  option("{ connection: 'localhost:6379' }", { connection: 'localhost:6379' }),
  option('{ redis: { host } }', { redis: {} }),
  option("{ connection, prefix: 'shop' }", { prefix: 'shop' }),
  option('{ connection, concurrency: 5 }', { concurrency: 5 }),
  option('{ connection, defaultJobOptions: {} }', { defaultJobOptions: {} }),
  option('{ connection, queues: { critical: 6 } }', { queues: { critical: 6 } }),
  option('{ connection, queues: { mail: { limiter: {} } } }', { queues: { mail: { limiter: {} } } }),
  option('{ connection, server: { queues: { mail: { limiter: {} } } } }', {
    server: { queues: { mail: { limiter: {} } } },
  }),
  option("{ connection, server: { concurrency: '10' } }", { server: { concurrency: '10' } }),
  option('{ connection, server: { queues: [] } }', { server: { queues: [] } }),
  option("{ connection, server: { shutdownTimeout: '30' } }", { server: { shutdownTimeout: '30' } }),
  option('{ connection, server: { shutdownTimeout: 30 } }', { server: { shutdownTimeout: 30 } }),
  option('{ connection: { url: undefined } }', { connection: { url: undefined } }),
  option('{ connection: config.redis() }, a promise', { connection: Promise.resolve('memory') }),
  mistake('`providers: [AsynqClient]`', () => boot({}, { providers: [AsynqClient] })),
  option('{ connection, server: { lockDuration: 30000 } }', { server: { lockDuration: 30_000 } }),
  option('{ connection, defaults: { attempts: 3 } }', { defaults: { attempts: 3 } }),
  mistake('`forRootAsync({ useFactory, connection })`', () =>
    refusal(() => AsynqModule.forRootAsync({ useFactory: () => ({}) as never, connection: 'memory' } as never)),
  ),
  mistake('`imports: [AsynqModule]`', () => boot(undefined, { imports: [AsynqModule] })),
  mistake('`forRoot` in two modules', () => {
    @Module({ imports: [AsynqModule.forRoot({ connection: 'memory' })] })
    class Feature {}
    return boot({}, { imports: [Feature] });
  }),
];

/** Handlers and schedules. */
export const HANDLERS: readonly Mistake[] = [
  mistake('`@TaskHandler(Mail)`, where two files import each other', () => decorate(TaskHandler(undefined as never))),
  mistake("`@TaskHandler('')`", () => decorate(TaskHandler(''))),
  mistake("`@TaskHandler('mail', { queue: 'mails' })`", () =>
    decorate(TaskHandler('mail', { queue: 'mails' } as never)),
  ),
  mistake("`@TaskHandler('mail', { attempts: 3 })`", () => decorate(TaskHandler('mail', { attempts: 3 } as never))),
  mistake("`@TaskHandler('mail:*')`", () => decorate(TaskHandler('mail:*'))),
  mistake("`@TaskHandler('*')`", () => decorate(TaskHandler('*'))),
  mistake("`@TaskHandler('mail')` on a static method", () =>
    refusal(() => TaskHandler('mail')(Mails as never, 'make', { value: () => undefined })),
  ),
  mistake("`@TaskHandler('mail')` without `experimentalDecorators`", () =>
    refusal(() =>
      (TaskHandler('mail') as (method: unknown, context: unknown) => void)(() => undefined, { kind: 'method' }),
    ),
  ),
  mistake("`@TaskHandler('mail')` on an arrow function", () =>
    refusal(() => (TaskHandler('mail') as PropertyDecorator)(Mails.prototype, 'send')),
  ),
  mistake('a decorator above `@TaskHandler` that replaces the method', () => {
    @Injectable()
    class Hidden {
      @Logged
      @TaskHandler('mail')
      send(): void {}
    }
    return boot({}, { providers: [Hidden] });
  }),
  mistake("`@Payload(Bill, 'userId')` in the handler of another task", () =>
    refusal(() => {
      const Bill = defineTask<{ userId: number }>('bill');
      class Other {
        @TaskHandler('mail')
        send(@Payload(Bill, 'userId') _id: number): void {}
      }
      return Other;
    }),
  ),
  mistake('`@TaskHandler(Mail) send(@Payload() mail, task)`', () => {
    @Injectable()
    class Half {
      @TaskHandler('mail')
      send(@Payload() _mail: unknown, _task: TaskContext): void {}
    }
    return boot({}, { providers: [Half] });
  }),
  mistake('`@TaskHandler(Mail) send(mail, @TaskCtx() task)`', () => {
    @Injectable()
    class Half {
      @TaskHandler('mail')
      send(_mail: unknown, @TaskCtx() _task: TaskContext): void {}
    }
    return boot({}, { providers: [Half] });
  }),
  mistake("two methods with `@TaskHandler('mail')`", () => {
    @Injectable()
    class Letters {
      @TaskHandler('mail')
      post(): void {}
    }
    return boot({}, { providers: [Plain, Letters] });
  }),
  mistake('a class with handlers in two modules', () => {
    @Module({ providers: [Plain] })
    class Feature {}
    return boot({}, { imports: [Feature], providers: [Plain] });
  }),
  mistake("`@TaskHandler('mail', { connection: 'bililng' })`", () => {
    @Injectable()
    class Bills {
      @TaskHandler('bill', { connection: 'bililng' })
      send(): void {}
    }
    const billing = AsynqModule.forRoot({ connection: 'memory', name: 'billing' });
    return boot({}, { imports: [billing], providers: [Bills] });
  }),
  mistake("`@TaskHandler('mail', { batch: { size: 0 } })`", () =>
    decorate(TaskHandler('mail', { batch: { size: 0 } })),
  ),
  mistake('`@InjectTasks(Mails)`, where two files import each other', () =>
    refusal(() => InjectTasks(undefined as never)),
  ),
  mistake('`@InjectTasks(MailService)`, a class without handlers', () => {
    class MailService {}
    return refusal(() => InjectTasks(MailService as never));
  }),
  mistake("`@PeriodicTask('every 5 minutes')`", () => decorate(PeriodicTask('every 5 minutes'))),
  mistake("`@PeriodicTask('*/15 * * * * *')`", () => decorate(PeriodicTask('*/15 * * * * *'))),
  mistake("`@PeriodicTask('60 * * * *')`", () => decorate(PeriodicTask('60 * * * *'))),
  mistake("`@PeriodicTask('0 9 * * 7')`", () => decorate(PeriodicTask('0 9 * * 7'))),
  mistake("`@PeriodicTask('0 9 L * *')`", () => decorate(PeriodicTask('0 9 L * *'))),
  mistake("`@PeriodicTask('@every 1d')`", () => decorate(PeriodicTask('@every 1d'))),
  mistake('`@PeriodicTask(30_000)`', () => decorate(PeriodicTask(30_000 as never))),
  mistake("`@PeriodicTask('0 9 * * *', { timeZone: 'Europe/Berlin' })`", () =>
    decorate(PeriodicTask('0 9 * * *', { timeZone: 'Europe/Berlin' } as never)),
  ),
  mistake("`@PeriodicTask('0 9 * * *', { disabled: true })`", () =>
    decorate(PeriodicTask('0 9 * * *', { disabled: true } as never)),
  ),
  mistake("`@OnTaskEvent('failed', { name: 'mail:welcome' })`", () =>
    decorate(OnTaskEvent('failed', { name: 'mail:welcome' } as never)),
  ),
  mistake("`@PeriodicTask('0 9 * * *', { tz: 'Berlin' })`", () =>
    decorate(PeriodicTask('0 9 * * *', { tz: 'Berlin' })),
  ),
  mistake('`@PeriodicTask({ every: 60_000 })`', () => decorate(PeriodicTask({ every: 60_000 } as never))),
  mistake("`@PeriodicTask('0 9 * * *', { jobId: 'digest' })`", () =>
    decorate(PeriodicTask('0 9 * * *', { jobId: 'digest' } as never)),
  ),
  mistake("`@OnTaskEvent('progress')`", () => decorate(OnTaskEvent('progress' as never))),
  mistake("`@OnTaskEvent('drained')`", () => decorate(OnTaskEvent('drained' as never))),
  mistake("`@OnTaskEvent('completed')`", () => decorate(OnTaskEvent('completed' as never))),
  mistake('`@UseGuards` on a method with `@TaskAggregator`', () => {
    @Injectable()
    class Groups {
      @TaskAggregator()
      @UseGuards({ canActivate: () => true })
      merge(): never {
        throw new Error();
      }
    }
    return boot({}, { providers: [Groups] });
  }),
];
