import {
  Catch,
  ForbiddenException,
  Injectable,
  Module,
  Scope,
  SetMetadata,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, ExternalContextCreator, Reflector } from '@nestjs/core';
import {
  AsynqServer,
  getTaskContext,
  getTaskPayload,
  InvalidPayloadError,
  isAsynqContext,
  Payload,
  RevokeTask,
  SkipRetry,
  TaskHandler,
  type AsynqEventMap,
} from 'nestjs-asynq';
import { EMPTY, from, lastValueFrom, map, of, tap, throwError } from 'rxjs';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { testApp } from './support.js';

const trace: string[] = [];
beforeEach(() => void trace.splice(0));

const note = (who: string, host: ArgumentsHost): void => {
  const { id } = getTaskContext(host);
  trace.push(`${who} ${host.getType<string>()} ${id} ${JSON.stringify(getTaskPayload(host))}`);
};

const guard = (who: string): CanActivate => ({ canActivate: (context) => (note(who, context), true) });

const interceptor = (who: string): NestInterceptor => ({
  intercept(context: ExecutionContext, next: CallHandler) {
    note(`${who} before`, context);
    return next.handle().pipe(tap(() => trace.push(`${who} after`)));
  },
});

const pipe = (who: string): PipeTransform => ({
  transform(value: unknown, { type, metatype }) {
    if (type === 'body') trace.push(`${who} ${String(value)} ${metatype?.name}`);
    return value;
  },
});

const filter = (who: string): ExceptionFilter => {
  @Catch()
  class Filter implements ExceptionFilter {
    catch(error: Error, host: ArgumentsHost) {
      note(`${who} ${error.message}`, host);
    }
  }
  return new Filter();
};

@UseGuards(guard('class guard'))
@UseInterceptors(interceptor('class interceptor'))
@UsePipes(pipe('class pipe'))
@Injectable()
class Wrapped {
  @TaskHandler('wrapped')
  @UseGuards(guard('method guard'))
  @UseInterceptors(interceptor('method interceptor'))
  @UsePipes(pipe('method pipe'))
  run(@Payload(pipe('parameter pipe')) payload: string) {
    trace.push(`handler ${payload}`);
    return payload.toUpperCase();
  }
}

const globals = [
  { provide: APP_GUARD, useValue: guard('app guard') },
  { provide: APP_INTERCEPTOR, useValue: interceptor('app interceptor') },
  { provide: APP_PIPE, useValue: pipe('app pipe') },
];

const wayThrough = (app: boolean): string[] => {
  const levels = app ? ['app', 'class', 'method'] : ['class', 'method'];
  return [
    ...levels.map((level) => `${level} guard asynq t "hi"`),
    ...levels.map((level) => `${level} interceptor before asynq t "hi"`),
    ...[...levels, 'parameter'].map((level) => `${level} pipe hi String`),
    'handler hi',
    ...[...levels].reverse().map((level) => `${level} interceptor after`),
  ];
};

describe('guards, interceptors and pipes', () => {
  test("of the method and the class wrap a handler, in Nest's order", async () => {
    const { tasks } = await testApp({ providers: [Wrapped] });
    expect(await tasks.work('wrapped', 'hi', { taskId: 't' })).toMatchObject({ outcome: 'done', result: 'HI' });
    expect(trace).toEqual(wayThrough(false));
  });

  test('of the application wrap it, from providers', async () => {
    const { tasks } = await testApp({ providers: [Wrapped, ...globals] });
    expect(await tasks.work('wrapped', 'hi', { taskId: 't' })).toMatchObject({ result: 'HI' });
    expect(trace).toEqual(wayThrough(true));
  });

  test('and from useGlobal…()', async () => {
    const { app, tasks } = await testApp({ providers: [Wrapped] });
    const web = app.createNestApplication();
    web.useGlobalGuards(guard('app guard'));
    web.useGlobalInterceptors(interceptor('app interceptor'));
    web.useGlobalPipes(pipe('app pipe'));
    await web.init();
    expect(await tasks.work('wrapped', 'hi', { taskId: 't' })).toMatchObject({ result: 'HI' });
    expect(trace).toEqual(wayThrough(true));
    await web.close();
  });

  test('a pipe of the application receives the payload of a handler without decorators', async () => {
    @Injectable()
    class Tasks {
      @TaskHandler('undecorated')
      run(payload: string) {
        return payload;
      }
    }
    const appended = {
      transform: (value: unknown, { type }: { type: string }) => (type === 'body' ? `${value}!` : value),
    };
    const { tasks } = await testApp({ providers: [Tasks, { provide: APP_PIPE, useValue: appended }] });
    expect(await tasks.work('undecorated', 'hi')).toMatchObject({ result: 'hi!' });
  });

  test('are injected, and see the class and the method', async () => {
    const Role = (role: string) => SetMetadata('role', role);
    @Injectable()
    class RoleGuard implements CanActivate {
      constructor(private readonly reflector: Reflector) {}
      canActivate(context: ExecutionContext) {
        const targets = [context.getHandler(), context.getClass()];
        return this.reflector.getAllAndOverride<string>('role', targets) === getTaskContext(context).headers['role'];
      }
    }
    @Role('anybody')
    @UseGuards(RoleGuard)
    @Injectable()
    class Tasks {
      @Role('admin')
      @TaskHandler('purge')
      purge() {
        return 'purged';
      }
    }
    const { tasks } = await testApp({ providers: [Tasks] });
    expect(await tasks.work('purge', {}, { headers: { role: 'admin' } })).toMatchObject({ result: 'purged' });
    const refused = await tasks.work('purge', {}, { headers: { role: 'anybody' } });
    expect(refused.error).toBeInstanceOf(ForbiddenException);
  });

  test("a guard's refusal is an ordinary failure: it is retried", async () => {
    @Injectable()
    class Tasks {
      @TaskHandler('never')
      @UseGuards({ canActivate: () => false })
      never() {
        trace.push('ran');
      }
    }
    const { tasks } = await testApp({ providers: [Tasks] });
    expect(await tasks.work('never')).toMatchObject({ outcome: 'retry' });
    expect(tasks.enqueued('never')[0]).toMatchObject({
      state: 'retry',
      retried: 1,
      lastErr: 'Forbidden resource: the guard without a class refused task "never"',
    });
    expect(trace).toEqual([]);
  });

  test('isAsynqContext distinguishes tasks from requests', async () => {
    const httpOnly: CanActivate = {
      canActivate: (context) =>
        isAsynqContext(context) || context.switchToHttp().getRequest<{ user: string }>().user === 'x',
    };
    const { tasks } = await testApp({ providers: [Wrapped, { provide: APP_GUARD, useValue: httpOnly }] });
    expect(await tasks.work('wrapped', 'hi')).toMatchObject({ outcome: 'done' });
    expect(isAsynqContext({ getType: () => 'http' } as unknown as ArgumentsHost)).toBe(false);
  });
});

describe('results', () => {
  @Injectable()
  class Tasks {
    @TaskHandler('observable')
    observable() {
      return from([1, 2, 3]);
    }
    @TaskHandler('async-observable')
    async asyncObservable() {
      return from([4, 5]);
    }
    @TaskHandler('thenable')
    thenable() {
      const query = {}; // as query builders are: no Promise, but awaited
      Reflect.set(query, 'then', (resolve: (value: unknown) => void) => resolve(of(8, 9)));
      return query;
    }
    @TaskHandler('bare-thenable')
    bareThenable() {
      const query = {}; // its `then` answers nothing
      Reflect.set(query, 'then', (resolve: (value: unknown) => void) => void setImmediate(resolve, 'found'));
      return query;
    }
    @TaskHandler('failing-thenable')
    failingThenable() {
      const query = {};
      Reflect.set(query, 'then', (_: unknown, reject: (error: unknown) => void) => {
        setImmediate(reject, new SkipRetry('no more'));
      });
      return query;
    }
    @TaskHandler('invalid-observable')
    async invalid() {
      return throwError(() => new InvalidPayloadError('not today'));
    }
    @TaskHandler('failing-observable')
    failing() {
      return throwError(() => new SkipRetry('no more'));
    }
    @TaskHandler('empty-observable')
    empty() {
      return EMPTY;
    }
    @TaskHandler('intercepted')
    @UseInterceptors({ intercept: (_, next) => next.handle().pipe(map((value: number) => [value, 'changed'])) })
    intercepted() {
      return from([6, 7]);
    }
    @TaskHandler('cached')
    @UseInterceptors({ intercept: () => of('from the cache') })
    cached() {
      trace.push('ran');
    }
  }

  test.each([
    ['observable', 3],
    ['async-observable', 5],
    ['thenable', 9],
    ['bare-thenable', 'found'],
    ['intercepted', [7, 'changed']],
    ['cached', 'from the cache'],
  ])('%s', async (type, result) => {
    const { tasks } = await testApp({ providers: [Tasks] });
    expect(await tasks.work(type)).toMatchObject({ outcome: 'done', result });
    expect(trace).toEqual([]);
  });

  test.each([false, true])('a SkipRetry that is returned counts as thrown (piped: %s)', async (piped) => {
    @Injectable()
    class Returning {
      @TaskHandler('at-once')
      atOnce() {
        return new SkipRetry('no more');
      }
      @TaskHandler('later')
      async later() {
        return new SkipRetry('no more');
      }
      @TaskHandler('observable-order')
      observable() {
        return of(new SkipRetry('no more'));
      }
      @TaskHandler('other')
      other() {
        return new Error('a result like others');
      }
    }
    const providers = piped ? [Returning, { provide: APP_GUARD, useValue: guard('app guard') }] : [Returning];
    const { tasks } = await testApp({ providers });
    for (const type of ['at-once', 'later', 'observable-order']) {
      expect(await tasks.work(type)).toMatchObject({ outcome: 'archived', error: { message: 'no more' } });
    }
    expect(await tasks.work('other')).toMatchObject({ outcome: 'done' });
  });

  test('a thenable whose `then` returns nothing fails the task when it rejects', async () => {
    const { tasks } = await testApp({ providers: [Tasks] });
    expect(await tasks.work('failing-thenable')).toMatchObject({ outcome: 'archived', error: { message: 'no more' } });
  });

  test.each([false, true])('an Observable that fails or is empty fails the task (piped: %s)', async (piped) => {
    const providers = piped ? [Tasks, { provide: APP_GUARD, useValue: guard('app guard') }] : [Tasks];
    const { tasks } = await testApp({ providers });
    expect(await tasks.work('failing-observable')).toMatchObject({
      outcome: 'archived',
      error: { message: 'no more' },
    });
    expect(await tasks.work('invalid-observable')).toMatchObject({
      outcome: 'archived',
      error: { message: 'not today' },
    });
    expect(await tasks.work('empty-observable')).toMatchObject({ outcome: 'retry', error: { name: 'EmptyError' } });
  });
});

describe('exception filters', () => {
  @Injectable()
  class Failing {
    @TaskHandler('fails')
    run() {
      throw new Error('boom');
    }
  }
  const failing = (...filters: (ExceptionFilter | Type<ExceptionFilter>)[]) => {
    @Injectable()
    class Filtered {
      @TaskHandler('fails')
      @UseFilters(...filters)
      run() {
        throw new TypeError('boom');
      }
    }
    return Filtered;
  };
  const runFailing = async (...providers: NonNullable<Parameters<typeof testApp>[0]['providers']>) => {
    const { app, tasks } = await testApp({ providers });
    const events: AsynqEventMap['hookFailed'][] = [];
    app.get(AsynqServer).events.on('hookFailed', (event) => events.push(event));
    const outcome = await tasks.work('fails', { n: 1 }, { taskId: 't' });
    return { ...outcome, text: tasks.all()[0]?.lastErr, events };
  };

  test('of the method come before those of the class and the application; one runs', async () => {
    @UseFilters(filter('class'))
    class OfClass extends failing(filter('method')) {}
    @UseFilters(filter('class'))
    @Injectable()
    class ClassOnly {
      @TaskHandler('fails')
      run() {
        throw new Error('boom');
      }
    }
    const app = { provide: APP_FILTER, useValue: filter('app') };
    await runFailing(OfClass, app);
    await runFailing(ClassOnly, app);
    await runFailing(Failing, app);
    expect(trace).toEqual(['method boom asynq t {"n":1}', 'class boom asynq t {"n":1}', 'app boom asynq t {"n":1}']);
  });

  test('of useGlobalFilters apply to tasks', async () => {
    const { app, tasks } = await testApp({ providers: [Failing] });
    const web = app.createNestApplication();
    web.useGlobalFilters(filter('app'));
    await web.init();
    expect(await tasks.work('fails', {}, { taskId: 't' })).toMatchObject({ outcome: 'retry' });
    expect(trace).toEqual(['app boom asynq t {}']);
    await web.close();
  });

  test('catch what they declare, the last declared first', async () => {
    @Catch(RangeError)
    class Ranges implements ExceptionFilter {
      catch = () => void trace.push('range');
    }
    @Catch(TypeError)
    class Types implements ExceptionFilter {
      catch = () => void trace.push('type');
    }
    await runFailing(failing(filter('all'), Types, Ranges));
    expect(trace).toEqual(['type']);
  });

  test.each<[string, () => unknown]>([
    ['a value', () => 'all is well'],
    ['nothing', () => undefined],
    ['a promise of nothing', async () => undefined],
    ['a promise of a value', async () => ({ ok: true })],
    ['an Observable', () => of('fine')],
    ['an empty Observable', () => EMPTY],
  ])('that return %s do not turn a failure into a success', async (_, answer) => {
    @Catch()
    class Swallowing implements ExceptionFilter {
      catch = answer;
    }
    for (const providers of [[failing(Swallowing)], [Failing, { provide: APP_FILTER, useClass: Swallowing }]]) {
      const { outcome, text, events } = await runFailing(...providers);
      expect({ outcome, text, events }).toEqual({ outcome: 'retry', text: 'boom', events: [] });
    }
  });

  test.each<[string, (error: unknown) => unknown, string, string]>([
    ['SkipRetry', () => new SkipRetry('give up'), 'archived', 'give up'],
    ['the same error', (error) => error, 'retry', 'boom'],
    ['an error with the original as its cause', (error) => new Error('wrapped', { cause: error }), 'retry', 'wrapped'],
  ])('that throw %s decide', async (_, make, outcome, text) => {
    @Catch()
    class Throwing implements ExceptionFilter {
      catch(error: unknown) {
        throw make(error);
      }
    }
    expect(await runFailing(failing(Throwing))).toMatchObject({ outcome, text, events: [] });
    @Catch()
    class Rpc implements ExceptionFilter {
      catch = (error: unknown) => throwError(() => make(error));
    }
    expect(await runFailing(failing(Rpc))).toMatchObject({ outcome, text, events: [] });
  });

  test('that throw RevokeTask delete the task', async () => {
    @Catch()
    class Dropping implements ExceptionFilter {
      async catch() {
        throw new RevokeTask();
      }
    }
    expect(await runFailing(failing(Dropping))).toMatchObject({ outcome: 'revoked', text: undefined });
  });

  test('that fail, like one for HTTP, are reported, and the task keeps its own error', async () => {
    @Catch()
    class HttpFilter implements ExceptionFilter {
      catch(_: unknown, host: ArgumentsHost) {
        host.switchToHttp().getResponse<{ status(code: number): void }>().status(500);
      }
    }
    const { outcome, text, events } = await runFailing(Failing, { provide: APP_FILTER, useClass: HttpFilter });
    expect({ outcome, text }).toEqual({ outcome: 'retry', text: 'boom' });
    const task = { id: 't', type: 'fails', queue: 'default' };
    expect(events).toEqual([{ hook: 'exception filter of Failing.run', error: expect.any(TypeError), task }]);
  });

  test('see the class, the method and the arguments', async () => {
    let seen: ExecutionContext | undefined;
    @Catch()
    class Looking implements ExceptionFilter {
      catch(_: unknown, host: ArgumentsHost) {
        seen = host as ExecutionContext;
      }
    }
    const Tasks = failing(Looking);
    await runFailing(Tasks);
    expect(seen?.getClass()).toBe(Tasks);
    expect(seen?.getHandler()).toBe(Tasks.prototype.run);
    expect(seen?.getArgs()).toEqual([{ n: 1 }, expect.objectContaining({ id: 't' })]);
    expect(seen?.switchToRpc().getData()).toEqual({ n: 1 });
    expect(seen?.switchToRpc().getContext()).toBe(getTaskContext(seen!));
  });

  test('are injected, also in request scope', async () => {
    @Injectable()
    class Store {
      readonly errors: string[] = [];
    }
    @Catch()
    @Injectable({ scope: Scope.REQUEST })
    class Storing implements ExceptionFilter {
      constructor(private readonly store: Store) {}
      catch = (error: Error) => void this.store.errors.push(error.message);
    }
    const { app, tasks } = await testApp({ providers: [Store, failing(Storing)] });
    await tasks.work('fails');
    const scopedGlobal = await testApp({
      providers: [Store, Failing, { provide: APP_FILTER, useClass: Storing, scope: Scope.REQUEST }],
    });
    await scopedGlobal.tasks.work('fails');
    expect(app.get(Store).errors).toEqual(['boom']);
    expect(scopedGlobal.app.get(Store).errors).toEqual(['boom']);
  });
});

describe('values and factories', () => {
  @Injectable()
  class Guard implements CanActivate {
    canActivate = () => true;
  }
  class Guarded {
    @TaskHandler('guarded')
    @UseGuards(Guard)
    run() {}
  }

  test.each([
    ['value', { provide: 'tasks', useValue: new Guarded() }],
    ['factory', { provide: 'tasks', useFactory: () => new Guarded() }],
  ])('a guard class on a %s, which Nest would leave out, is refused', async (_, provider) => {
    const { app } = await testApp({ providers: [provider] });
    await expect(app.init()).rejects.toThrow(
      'Guarded.run: Nest creates no guard Guard for it, because its provider is a value or a factory; ' +
        'give an instance (new Guard(...)), or provide the handler as a class',
    );
  });

  test('a request-scoped guard of the application, which Nest would not construct, is refused', async () => {
    class Plain {
      @TaskHandler('plain')
      run() {}
    }
    const { app } = await testApp({
      providers: [
        { provide: 'tasks', useValue: new Plain() },
        { provide: APP_GUARD, useClass: Guard, scope: Scope.REQUEST },
      ],
    });
    await expect(app.init()).rejects.toThrow(/^Plain\.run: the request-scoped guards, .* cannot be created for it/);
  });

  test('instances work', async () => {
    class Instances {
      @TaskHandler('guarded')
      @UseGuards(guard('instance'))
      run() {
        return 'ran';
      }
    }
    const { tasks } = await testApp({ providers: [{ provide: 'tasks', useFactory: () => new Instances() }] });
    expect(await tasks.work('guarded', 1, { taskId: 't' })).toMatchObject({ result: 'ran' });
    expect(trace).toEqual(['instance asynq t 1']);
  });
});

describe("Nest's pipeline", () => {
  class Plain {
    @TaskHandler('plain')
    run(@Payload() payload: unknown) {
      return payload;
    }
  }

  const pipelines = async (metadata: Parameters<typeof testApp>[0]) => {
    const create = vi.spyOn(ExternalContextCreator.prototype, 'create');
    try {
      const { app, tasks } = await testApp(metadata);
      await app.init();
      expect(await tasks.work('plain', 1)).toMatchObject({ outcome: 'done', result: 1 });
      return create.mock.calls.length;
    } finally {
      create.mockRestore();
    }
  };

  test('is skipped for a handler without enhancers', async () => {
    expect(await pipelines({ providers: [Plain] })).toBe(0);
    expect(await pipelines({ providers: [Plain, Wrapped] })).toBe(1); // of Wrapped
  });

  test.each([
    ['guard', { provide: APP_GUARD, useValue: guard('app') }],
    ['interceptor', { provide: APP_INTERCEPTOR, useValue: interceptor('app') }],
    ['pipe', { provide: APP_PIPE, useValue: pipe('app') }],
  ])('is used once the application has a %s', async (_, provider) => {
    expect(await pipelines({ providers: [Plain, provider] })).toBe(1);
    @Module({ providers: [provider] })
    class Elsewhere {}
    expect(await pipelines({ providers: [Plain], imports: [Elsewhere] })).toBe(1);
  });
});

describe('a method that was replaced on its instance, as aspects and spies do', () => {
  const work = async (...more: NonNullable<Parameters<typeof testApp>[0]['providers']>) => {
    const { app, tasks } = await testApp({ providers: [Wrapped, ...more] });
    const instance = app.get(Wrapped);
    const original = instance.run.bind(instance);
    instance.run = (payload) => `<${original(payload)}>`;
    return tasks.work('wrapped', 'hi', { taskId: 't' });
  };

  test('runs, behind the same guards', async () => {
    expect(await work()).toMatchObject({ result: '<HI>' });
    expect(trace).toEqual(wayThrough(false));
  });

  test('also when it is replaced between two tasks, and restored', async () => {
    const { app, tasks } = await testApp({ providers: [Wrapped] });
    const work = () => tasks.work('wrapped', 'hi', { taskId: 't' });
    expect(await work()).toMatchObject({ result: 'HI' });
    trace.splice(0);
    const spy = vi.spyOn(app.get(Wrapped), 'run').mockReturnValue('replaced');
    expect(await work()).toMatchObject({ result: 'replaced' });
    expect(trace).toEqual(wayThrough(false).filter((line) => line !== 'handler hi'));
    spy.mockRestore();
    expect(await work()).toMatchObject({ result: 'HI' });
  });

  test('also without a pipeline, even when it is replaced late', async () => {
    @Injectable()
    class Plain {
      @TaskHandler('plain')
      run() {
        return 'original';
      }
    }
    const { app, tasks } = await testApp({ providers: [Plain] });
    await app.init();
    const spy = vi.spyOn(app.get(Plain), 'run').mockReturnValue('replaced');
    expect(await tasks.work('plain', 'hi')).toMatchObject({ result: 'replaced' });
    expect(spy).toHaveBeenCalledExactlyOnceWith('hi', expect.objectContaining({ type: 'plain' }));
  });
});

test("the server waits for the last value of an interceptor's Observable", async () => {
  @Injectable()
  class Tasks {
    @TaskHandler('waits')
    @UseInterceptors({
      intercept: (_, next) => from(lastValueFrom(next.handle()).then(async (value) => (await null, `late ${value}`))),
    })
    run() {
      return 'result';
    }
  }
  const { tasks } = await testApp({ providers: [Tasks] });
  expect(await tasks.work('waits')).toMatchObject({ result: 'late result' });
});
