import { Controller, Get, Injectable, Module, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AsynqModule, defineTask, TaskHandler, type TaskHandlerOptions } from 'nestjs-asynq';
import { describe, expect, test } from 'vitest';
import { compile, rejection, testApp } from './support.js';

class Base {
  @TaskHandler('inherited')
  inherited() {
    return `inherited by ${this.constructor.name}`;
  }

  @TaskHandler('replaced')
  replaced() {
    return 'base';
  }

  @TaskHandler('redeclared')
  redeclared() {
    return 'base';
  }
}

@Injectable()
class Derived extends Base {
  override replaced() {
    return 'derived';
  }

  @TaskHandler('redeclared')
  override redeclared() {
    return 'derived';
  }
}

const work = async (providers: NonNullable<Parameters<typeof testApp>[0]['providers']>, type: string) => {
  const { tasks } = await testApp({ providers });
  return tasks.work(type);
};

class Plain {
  constructor(private readonly greeting = 'hi') {}
  @TaskHandler('greet')
  greet() {
    return this.greeting;
  }
}

describe('handlers are found', () => {
  test('in class providers', async () => {
    expect(await work([Plain], 'greet')).toMatchObject({ outcome: 'done', result: 'hi' });
  });

  test('in a class behind another token', async () => {
    expect(await work([{ provide: 'tasks', useClass: Plain }], 'greet')).toMatchObject({ result: 'hi' });
  });

  test('in value providers', async () => {
    expect(await work([{ provide: 'tasks', useValue: new Plain('value') }], 'greet')).toMatchObject({
      result: 'value',
    });
  });

  test('in what factories return, awaited', async () => {
    const useFactory = async () => new Plain('made');
    expect(await work([{ provide: 'tasks', useFactory }], 'greet')).toMatchObject({ result: 'made' });
  });

  test('in controllers', async () => {
    @Controller()
    class Web {
      @Get()
      @TaskHandler('web')
      both() {
        return 'from a controller';
      }
    }
    const { tasks } = await testApp({ controllers: [Web] });
    expect(await tasks.work('web')).toMatchObject({ result: 'from a controller' });
  });

  test('in modules that do not import AsynqModule', async () => {
    @Module({ providers: [Plain] })
    class Feature {}
    const { tasks } = await testApp({ imports: [Feature] });
    expect(await tasks.work('greet')).toMatchObject({ result: 'hi' });
  });

  test('once, when one instance has several tokens', async () => {
    const providers = [
      { provide: 'factory', useFactory: (plain: Plain) => plain, inject: [Plain] },
      { provide: 'alias', useExisting: Plain },
      Plain,
    ];
    expect(await work(providers, 'greet')).toMatchObject({ result: 'hi' });
  });

  test('in base classes; an overriding method without a decorator is no handler', async () => {
    expect(await work([Derived], 'inherited')).toMatchObject({ result: 'inherited by Derived' });
    expect(await work([Derived], 'redeclared')).toMatchObject({ result: 'derived' });
    const { outcome, error } = await work([Derived], 'replaced');
    expect(outcome).toBe('retry');
    expect((error as Error).message).toBe('handler not found for task "replaced"');
  });

  test('several on one method, and the exact type before the longest prefix', async () => {
    @Injectable()
    class Many {
      @TaskHandler('image:')
      prefix() {
        return 'prefix';
      }
      @TaskHandler('image:png:')
      @TaskHandler('image:gif')
      longer() {
        return 'longer';
      }
    }
    const { tasks } = await testApp({ providers: [Many] });
    expect(await tasks.work('image:png:small')).toMatchObject({ result: 'longer' });
    expect(await tasks.work('image:gif')).toMatchObject({ result: 'longer' });
    expect(await tasks.work('image:bmp')).toMatchObject({ result: 'prefix' });
  });

  test('by definition, with its retry delay and isFailure', async () => {
    const Slow = defineTask('slow', { retryDelay: () => 90_000, isFailure: () => false });
    @Injectable()
    class Tasks {
      @TaskHandler(Slow)
      slow() {
        throw new Error('no');
      }
      @TaskHandler('quick', { retryDelay: (retried) => 1000 * (retried + 1) })
      quick() {
        throw new Error('no');
      }
    }
    const { tasks } = await testApp({ providers: [Tasks] });
    const now = tasks.clock.now();
    expect(await tasks.work(Slow)).toMatchObject({ outcome: 'retry', retryAt: new Date(now + 90_000) });
    expect(tasks.enqueued(Slow)[0]).toMatchObject({ state: 'retry', retried: 0 });
    expect(await tasks.work('quick')).toMatchObject({ outcome: 'retry', retryAt: new Date(now + 1000) });
    expect(tasks.enqueued('quick')[0]).toMatchObject({ retried: 1 });
  });
});

describe('searching does no harm', () => {
  test('getters are not called, odd providers are skipped', async () => {
    let called = 0;
    @Injectable()
    class Odd {
      arrow = () => 'not a method';
      get lazy() {
        called += 1;
        return () => 0;
      }
      [Symbol('s')]() {
        return 0;
      }
    }
    const mock = new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : () => 0) }); // as mock libraries make them
    const { tasks } = await testApp({
      providers: [
        Odd,
        Plain,
        { provide: 'null prototype', useValue: Object.create(null) },
        { provide: 'nothing', useValue: undefined },
        { provide: 'null', useValue: null },
        { provide: 'number', useValue: 4 },
        { provide: 'function', useValue: () => 0 },
        { provide: 'mock', useValue: mock },
        { provide: 'heir of a mock', useFactory: () => Object.create(mock) as object },
      ],
    });
    expect(await tasks.work('greet')).toMatchObject({ result: 'hi' });
    expect(called).toBe(0);
  });
});

describe('wrong declarations are refused', () => {
  const boot = (...providers: Parameters<typeof work>[0]) =>
    testApp({ providers }).then(({ app }) => app.init().then(() => 'booted'));

  test('two handlers of one pattern, naming both', async () => {
    @Injectable()
    class A {
      @TaskHandler('email:welcome')
      first() {}
    }
    @Injectable()
    class B {
      @TaskHandler('email:welcome')
      second() {}
    }
    const error = await rejection(boot(A, B));
    expect(error).toMatchObject({ code: 'ASYNQ_INVALID_HANDLER' });
    expect(error.message).toBe(
      'two handlers for the task type "email:welcome" of the connection "default": A.first and B.second; keep one of them',
    );
  });

  test('a class provided by two modules', async () => {
    @Module({ providers: [Plain] })
    class One {}
    @Module({ providers: [Plain] })
    class Two {}
    const { app } = await testApp({ imports: [One, Two] });
    expect((await rejection(app.init())).message).toContain('the class is provided twice: export it from one module');
  });

  test('an unknown connection, with the nearest one', async () => {
    @Injectable()
    class Billing {
      @TaskHandler('invoice', { connection: 'bililng' })
      invoice() {}
    }
    const billing = AsynqModule.forRoot({ connection: 'memory', name: 'billing' });
    const main = AsynqModule.forRoot({ connection: 'memory' });
    const app = await compile(Test.createTestingModule({ imports: [main, billing], providers: [Billing] }));
    const error = await rejection(app.init());
    expect(error).toMatchObject({ code: 'ASYNQ_INVALID_HANDLER' });
    expect(error.message).toBe(
      'Billing.invoice is for the connection "bililng", which no AsynqModule.forRoot names; ' +
        'did you mean "billing"? (known: default, billing)',
    );
  });

  const decorate =
    (...args: [task: unknown, options?: unknown]) =>
    (target: object, key: unknown, descriptor?: unknown) =>
      (TaskHandler(args[0] as string, args[1] as TaskHandlerOptions) as (...decorated: unknown[]) => void)(
        target,
        key,
        descriptor,
      );
  class Target {
    method() {}
    static method() {}
    get accessor() {
      return () => 0;
    }
    property = () => 0;
  }
  const method = Object.getOwnPropertyDescriptor(Target.prototype, 'method');
  const { prototype } = Target;

  test.each<[string, () => void, RegExp]>([
    [
      'a blank type',
      () => decorate(' \t')(prototype, 'method', method),
      /Target\.method: @TaskHandler needs a task type/,
    ],
    [
      'no type',
      () => decorate(undefined)(prototype, 'method', method),
      /takes a task type or the result of defineTask/,
    ],
    [
      'null',
      () => decorate(null)(prototype, 'method', method),
      /takes a task type or the result of defineTask, not null/,
    ],
    ['a property', () => decorate('x')(prototype, 'property'), /Target\.property: @TaskHandler belongs on a method/],
    [
      'an accessor',
      () => decorate('x')(prototype, 'accessor', Object.getOwnPropertyDescriptor(prototype, 'accessor')),
      /Target\.accessor: @TaskHandler belongs on a method/,
    ],
    ['a class', () => decorate('x')(Target, undefined), /Target: @TaskHandler belongs on a method/],
    [
      'a static method',
      () => decorate('x')(Target, 'method', Object.getOwnPropertyDescriptor(Target, 'method')),
      /Target\.method: @TaskHandler cannot be on a static method/,
    ],
    ['a symbol', () => decorate('x')(prototype, Symbol('s'), method), /needs a method with a text name, not a symbol/],
    [
      'an unknown option',
      () => decorate('x', { retrydelay: 1 })(prototype, 'method', method),
      /unknown @TaskHandler option of Target\.method: "retrydelay"; did you mean "retryDelay"\?/,
    ],
    [
      'an option of another type',
      () => decorate('x', { retryDelay: 5 })(prototype, 'method', method),
      /Target\.method: retryDelay \(\(retried\) => milliseconds\) must be a function, not 5/,
    ],
    [
      'no object of options',
      () => decorate('x', null)(prototype, 'method', method),
      /Target\.method: the options of @TaskHandler must be an object, not null/,
    ],
    ['no codec', () => decorate('x', { codec: {} })(prototype, 'method', method), /codec: encode must be a function/],
  ])('%s', (_, wrong, message) => {
    expect(wrong).toThrow(message);
    expect(wrong).toThrow(expect.objectContaining({ code: expect.stringMatching(/^ASYNQ_INVALID_/) }));
  });
});

test('a request-scoped handler of a scoped module is found', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Scoped extends Base {}
  expect(await work([Scoped], 'inherited')).toMatchObject({ result: 'inherited by Scoped' });
});
