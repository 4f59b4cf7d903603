import { Inject, Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqModule,
  AsynqServer,
  defineTask,
  getAsynqBrokerToken,
  getAsynqClientToken,
  getAsynqServerToken,
  InjectAsynqClient,
  InvalidOptionError,
  TaskHandler,
  type AsynqModuleOptions,
  type AsynqOptionsFactory,
  type Broker,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { describe, expect, test, vi } from 'vitest';
import { compile, quiet, rejection, testApp } from './support.js';

const redis = vi.hoisted(() => ({ made: 0 }));
vi.mock(import('../../lib/broker/redis/connection/connections.js'), async (original) => {
  const { RedisConnections } = await original();
  class Counted extends RedisConnections {
    constructor(...args: ConstructorParameters<typeof RedisConnections>) {
      super(...args);
      redis.made += 1;
    }
  }
  return { RedisConnections: Counted };
});

const building = (metadata: ModuleMetadata): TestingModuleBuilder =>
  Test.createTestingModule(metadata).setLogger(quiet);
const boot = (options: object) =>
  building({ imports: [AsynqModule.forRoot(options as AsynqModuleOptions)] })
    .compile()
    .then((app) => app.init());

@Injectable()
class Tasks {
  @TaskHandler('task')
  run() {
    return 'ran';
  }
}

describe('forRoot', () => {
  test('provides client, server handle and broker', async () => {
    const { app } = await testApp({ providers: [Tasks] });
    expect(app.get(AsynqClient)).toBeInstanceOf(AsynqClient);
    expect(app.get(AsynqServer)).toBeInstanceOf(AsynqServer);
    expect(app.get(ASYNQ_BROKER)).toBeInstanceOf(InMemoryBroker);
  });

  test('opens no connection to Redis when the broker is overridden', async () => {
    redis.made = 0;
    await testApp({ providers: [Tasks] });
    expect(redis.made).toBe(0);
  });

  test('opens no connection before it is needed', async () => {
    redis.made = 0;
    const app = await boot({ connection: { host: '127.0.0.1', port: 1 } });
    await app.close();
    expect(redis.made).toBe(1);
  });

  test('the connection can be memory', async () => {
    const app = await boot({ connection: 'memory' });
    expect(await app.get(AsynqClient).enqueue('task', 1)).toMatchObject({ type: 'task', state: 'pending' });
    await app.close();
  });

  test('closes everything when the client is a mock', async () => {
    const builder = building({ imports: [AsynqModule.forRoot({ connection: 'memory' })], providers: [Tasks] });
    const app = await builder.overrideProvider(AsynqClient).useValue({ enqueue: vi.fn() }).compile();
    const close = vi.spyOn(app.get<Broker>(ASYNQ_BROKER), 'close');
    await app.init();
    await app.close();
    expect(close).toHaveBeenCalled();
    expect(app.get(AsynqServer).status).toBe('closed');
  });

  test('closes the broker even when the client fails to close', async () => {
    const builder = building({ imports: [AsynqModule.forRoot({ connection: 'memory' })] });
    const useValue = { close: () => Promise.reject(new Error('no')) };
    const app = await builder.overrideProvider(AsynqClient).useValue(useValue).compile();
    const close = vi.spyOn(app.get<Broker>(ASYNQ_BROKER), 'close');
    await app.init();
    await app.close().catch(({ message }: Error) => expect(message).toBe('no')); // Nest 12 logs it
    expect(close).toHaveBeenCalled();
  });

  test('gives every task its defaults', async () => {
    const { app, tasks } = await testApp({ providers: [Tasks] }, { defaults: { queue: 'low', maxRetry: 3 } });
    await app.get(AsynqClient).enqueue('task', 1, { maxRetry: 4 });
    expect(tasks.enqueued()).toMatchObject([{ queue: 'low', maxRetry: 4 }]);
  });

  test('gives the broker its key prefix', async () => {
    const app = await boot({ connection: 'memory', keyPrefix: 'tenant-1' });
    expect(app.get<Broker>(ASYNQ_BROKER).keyPrefix).toBe('tenant-1');
    await app.close();
  });

  test('gives the server its options', async () => {
    const { app, tasks } = await testApp(
      { providers: [Tasks] },
      { server: { queues: { critical: 6 }, retryDelay: () => 5_000 } },
    );
    await app.get(AsynqClient).enqueue('task');
    await app.get(AsynqClient).enqueue('unknown', 0, { queue: 'critical' });
    const now = tasks.clock.now();
    expect((await tasks.drain()).outcomes).toMatchObject([{ outcome: 'retry', retryAt: new Date(now + 5_000) }]);
    expect(tasks.enqueued('task')).toMatchObject([{ state: 'pending' }]); // in a queue it does not serve
  });
});

describe('forRootAsync', () => {
  @Injectable()
  class Config {
    readonly queue = 'from-config';
  }
  @Module({ providers: [Config], exports: [Config] })
  class ConfigModule {}

  @Injectable()
  class OptionsFactory implements AsynqOptionsFactory {
    createAsynqOptions(): AsynqModuleOptions {
      return { connection: 'memory', defaults: { queue: 'from-class' } };
    }
  }
  @Module({ providers: [OptionsFactory], exports: [OptionsFactory] })
  class OptionsModule {}

  const optionsOf = ({ queue }: Config): AsynqModuleOptions => ({ connection: 'memory', defaults: { queue } });

  test.each([
    ['useFactory', { imports: [ConfigModule], inject: [Config], useFactory: optionsOf }, 'from-config'],
    [
      'an async useFactory',
      { imports: [ConfigModule], inject: [Config], useFactory: async (c: Config) => optionsOf(c) },
      'from-config',
    ],
    ['useClass', { useClass: OptionsFactory }, 'from-class'],
    ['useExisting', { imports: [OptionsModule], useExisting: OptionsFactory }, 'from-class'],
    ['extraProviders', { extraProviders: [Config], inject: [Config], useFactory: optionsOf }, 'from-config'],
  ])('%s', async (_, options, queue) => {
    const app = await compile(building({ imports: [AsynqModule.forRootAsync(options)] }));
    expect(await app.get(AsynqClient).enqueue('task')).toMatchObject({ queue });
  });

  test('refuses extras that the factory returns too late', async () => {
    const useFactory = () => ({ connection: 'memory', isGlobal: true }) as AsynqModuleOptions;
    expect((await rejection(building({ imports: [AsynqModule.forRootAsync({ useFactory })] }).compile())).message).toBe(
      'the module option "isGlobal" cannot come from a factory: Nest needs it before the factory runs; ' +
        'put it beside useFactory (or useClass, useExisting) in AsynqModule.forRootAsync',
    );
  });

  test('takes an instance of a class, with methods and getters', async () => {
    class Settings implements AsynqModuleOptions {
      readonly #queue = 'from-getter';
      readonly connection = 'memory';
      get defaults() {
        return { queue: this.#queue };
      }
      isReady(): boolean {
        return true;
      }
    }
    const useFactory = () => new Settings();
    const app = await compile(building({ imports: [AsynqModule.forRootAsync({ useFactory })] }));
    expect(await app.get(AsynqClient).enqueue('task')).toMatchObject({ queue: 'from-getter' });
  });

  test('compiles with what a factory may return', () => {
    const url: string = 'redis://localhost';
    const isOn = url.length > 1;
    const given = () => JSON.parse('{ "connection": "memory" }');
    const modules = () => [
      AsynqModule.forRootAsync({ useFactory: () => ({ connection: 'memory', server: { queues: { a: 1 } } }) }),
      AsynqModule.forRootAsync({ inject: [Config], useFactory: async ({ queue }: Config) => ({ connection: queue }) }),
      AsynqModule.forRootAsync({
        isGlobal: true,
        useFactory: () => (isOn ? { connection: 'memory' as const } : { connection: url, server: false as const }),
      }),
      AsynqModule.forRootAsync({ useFactory: given }),
      AsynqModule.forRootAsync({ useFactory: () => ({ connection: url, invalidPayload: 'retry', autoStart: isOn }) }),
    ];
    expect(modules()).toHaveLength(5);
  });

  test('does not compile with a key that is no option', () => {
    const modules = () => [
      // @ts-expect-error: an option of BullMQ
      AsynqModule.forRootAsync({ useFactory: () => ({ connection: 'memory', prefix: 'x' }) }),
      // @ts-expect-error: mistyped
      AsynqModule.forRootAsync({ useFactory: async () => ({ connection: 'memory', autostart: false }) }),
      // @ts-expect-error: it belongs beside useFactory
      AsynqModule.forRootAsync({ useFactory: () => ({ connection: 'memory', isGlobal: true }) }),
      // @ts-expect-error: mistyped, of the server
      AsynqModule.forRootAsync({ useFactory: () => ({ connection: 'memory', server: { concurency: 3 } }) }),
    ];
    expect(modules()).toHaveLength(4);
  });

  test('refuses a missing source of options, and unknown keys', () => {
    expect(() => AsynqModule.forRootAsync({})).toThrow(/needs one of useFactory, useClass or useExisting/);
    const wrong = { useFactory: () => ({ connection: 'memory' as const }), isglobal: true };
    expect(() => AsynqModule.forRootAsync(wrong)).toThrow(
      'unknown AsynqModule.forRootAsync option "isglobal"; did you mean "isGlobal"?',
    );
  });
});

describe('wrong options fail at boot', () => {
  test.each<[string, object, string | RegExp]>([
    ['an unknown one', { conection: 'memory' }, 'unknown AsynqModule option "conection"; did you mean "connection"?'],
    [
      'a misspelt server option',
      { server: { concurency: 1 } },
      'unknown server option "concurency"; did you mean "concurrency"?',
    ],
    ['a misspelt extra', { isGlobl: true }, 'unknown AsynqModule option "isGlobl"; did you mean "isGlobal"?'],
    ['a wrong server', { server: true }, 'AsynqModule option server (options, or false) must be an object, not true'],
    ['a wrong autoStart', { autoStart: 'no' }, 'AsynqModule option autoStart must be true or false, not "no"'],
    [
      'a wrong policy',
      { invalidPayload: 'drop' },
      'AsynqModule option invalidPayload must be "archive" or "retry", not "drop"',
    ],
    ['a blank prefix', { keyPrefix: ' ' }, /keyPrefix must contain one or more characters/],
    ['braces in the prefix', { keyPrefix: 'a{b}' }, /keyPrefix must be without braces/],
    ['a wrong default', { defaults: { queu: 'x' } }, 'unknown task option "queu"; did you mean "queue"?'],
    ['a wrong codec', { codec: {} }, /codec: encode must be a function/],
  ])('%s', async (_, wrong, message) => {
    const error = await rejection(boot({ connection: 'memory', ...wrong }));
    if (typeof message === 'string') expect(error.message).toBe(message);
    else expect(error.message).toMatch(message);
    expect(error).toMatchObject({ code: expect.stringMatching(/^ASYNQ_INVALID_(OPTION|TASK)$/) });
  });

  test('a missing connection, naming the forms it can have', async () => {
    const error = await rejection(boot({}));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toMatch(/^AsynqModule: the option connection is missing; give \{ host, port \}.*'memory'/);
    expect((await rejection(boot({ name: 'billing' }))).message).toMatch(
      /^AsynqModule "billing": the option connection/,
    );
  });

  test('a misspelt part of the connection', async () => {
    expect((await rejection(boot({ connection: { hots: 'x' } }))).message).toMatch(/"hots".*did you mean "host"/);
  });

  test('missing options, or a blank name', () => {
    const forRoot = AsynqModule.forRoot.bind(AsynqModule) as (options?: object) => unknown;
    expect(() => forRoot()).toThrow(/AsynqModule\.forRoot needs an object with options, at least the connection/);
    expect(() => forRoot({ connection: 'memory', name: ' ' })).toThrow(InvalidOptionError);
  });

  test('extras of another type', () => {
    const wrong = (extras: object) => () => AsynqModule.forRoot({ connection: 'memory', ...extras } as never);
    expect(wrong({ isGlobal: 'no' })).toThrow('AsynqModule option isGlobal must be true or false, not "no"');
    expect(wrong({ extraProviders: {} })).toThrow('AsynqModule option extraProviders must be an array, not an object');
    expect(wrong({ name: 4 })).toThrow('AsynqModule option name must be a string, not 4');
  });

  test('two connections of one name', async () => {
    const imports = [AsynqModule.forRoot({ connection: 'memory' }), AsynqModule.forRoot({ connection: 'memory' })];
    expect((await rejection(building({ imports }).compile())).message).toBe(
      'AsynqModule is registered twice for the connection "default"; call forRoot once (isGlobal: true shares it), ' +
        'or give the second one another name',
    );
  });
});

describe('scope of the providers', () => {
  @Injectable()
  class Producer {
    constructor(readonly client: AsynqClient) {}
  }
  @Module({ providers: [Producer] })
  class Feature {}

  test('a module that does not import AsynqModule cannot inject the client, unless it is global', async () => {
    const imports = (isGlobal: boolean) => [AsynqModule.forRoot({ connection: 'memory', isGlobal }), Feature];
    await expect(building({ imports: imports(false) }).compile()).rejects.toThrow(/AsynqClient/);
    const app = await compile(building({ imports: imports(true) }));
    expect(app.get(Producer).client).toBe(app.get(AsynqClient));
  });
});

describe('named connections', () => {
  const Invoice = defineTask<{ n: number }>('invoice');

  @Injectable()
  class Shop {
    constructor(
      readonly main: AsynqClient,
      @InjectAsynqClient('billing') readonly billing: AsynqClient,
      @InjectAsynqClient() readonly unnamed: AsynqClient,
      @Inject(getAsynqServerToken('billing')) readonly server: AsynqServer,
    ) {}

    @TaskHandler('invoice')
    main_() {
      return 'main';
    }

    @TaskHandler(Invoice, { connection: 'billing' })
    bill() {
      return 'billing';
    }
  }

  test('have separate clients, brokers, servers and handlers', async () => {
    const imports = [
      AsynqModule.forRoot({ connection: 'memory' }),
      AsynqModule.forRootAsync({
        name: 'billing',
        useFactory: () => ({ connection: 'memory', defaults: { queue: 'bills' }, server: { queues: ['bills'] } }),
      }),
    ];
    const app = await compile(
      building({ imports, providers: [Shop] })
        .overrideProvider(getAsynqBrokerToken('billing'))
        .useClass(InMemoryBroker),
    );
    const shop = app.get(Shop);
    expect(shop.unnamed).toBe(shop.main);
    expect(shop.billing).toBe(app.get(getAsynqClientToken('billing')));
    expect(shop.billing).not.toBe(shop.main);
    expect(shop.server).not.toBe(app.get(AsynqServer));

    await shop.main.enqueue(Invoice, { n: 1 });
    await shop.billing.enqueue(Invoice, { n: 2 });
    const [main, billing] = [AsynqTester.from(app), AsynqTester.from(app, 'billing')];
    expect(main.enqueued(Invoice)).toMatchObject([{ queue: 'default', payload: { n: 1 } }]);
    expect(billing.enqueued(Invoice)).toMatchObject([{ queue: 'bills', payload: { n: 2 } }]);
    expect((await main.drain()).outcomes).toMatchObject([{ result: 'main' }]);
    expect((await billing.drain()).outcomes).toMatchObject([{ result: 'billing' }]);
  });
});
