import { Injectable, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  type AsynqEventMap,
  type AsynqEventName,
  AsynqModule,
  type AsynqModuleOptions,
  defineTask,
  InjectTasks,
  PeriodicTask,
  TaskHandler,
  type TasksOf,
  workflow,
} from 'nestjs-asynq';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { ConnectionRegistry } from '../../lib/nest/connection/connection.registry.js';
import { declaredClasses } from '../../lib/nest/decorators/handler-method.js';
import { rejection, testApp, quiet } from './support.js';

class Mails {
  @TaskHandler('mail')
  send() {}
}

/** An application on a clock of its own, and what its events say. */
async function start<E extends AsynqEventName>(
  event: E,
  metadata: ModuleMetadata,
  options: Partial<AsynqModuleOptions> = {},
) {
  const clock = new ManualClock(new Date('2026-01-01'));
  const broker = new MemoryBroker(clock);
  const imports = [AsynqModule.forRoot({ connection: 'memory', isGlobal: true, ...options })];
  const app = await Test.createTestingModule({ ...metadata, imports })
    .setLogger(quiet)
    .overrideProvider(ASYNQ_BROKER)
    .useValue(broker)
    .compile();
  onTestFinished(() => app.close());
  const heard: AsynqEventMap[E][] = [];
  const { events } = app.get(ConnectionRegistry, { strict: false }).all()[0]!;
  const first = new Promise<void>((resolve) => {
    events.on(event, (what) => (heard.push(what), resolve()));
  });
  await app.init();
  const client = app.get(AsynqClient);
  const observe = vi.spyOn(broker.obstacles, 'servedQueues');
  return { app, broker, clock, client, heard, first, observe };
}

/** Lets promises that are under way go on. */
const settle = async (): Promise<void> => {
  for (let round = 0; round < 50; round++) await Promise.resolve();
};

describe('a queue without a server', () => {
  test('is looked up once, in the background, together with others', async () => {
    const options = { server: { queues: ['emails'] } };
    const { client, clock, heard, first, observe } = await start('queueNotServed', { providers: [Mails] }, options);
    for (const queue of ['emials', 'emails', 'other', 'emials']) await client.enqueue('mail', {}, { queue });
    await client.enqueueMany('mail', [1, 2], { queue: 'other' });
    await (await client.openBatch({ name: 'b', queue: 'emails' })).add('mail', [1], { queue: 'of a batch' });
    await client.start(workflow('w').add('mail', 'mail', 1, { options: { queue: 'of a step' } }), { id: 'w' });
    expect(observe).not.toHaveBeenCalled();
    clock.advance(5_000);
    await first;
    await client.enqueue('mail', {}, { queue: 'emials' });
    clock.advance(60_000);
    await settle();
    expect(observe).toHaveBeenCalledTimes(1);
    expect(heard).toEqual([
      { queue: 'emials', near: 'emails', handler: undefined },
      { queue: 'other', near: undefined, handler: undefined },
      { queue: 'of a batch', near: undefined, handler: undefined },
      { queue: 'of a step', near: undefined, handler: undefined },
    ]);
  });

  test('costs no read where this process serves it', async () => {
    const { client, clock, heard, observe } = await start('queueNotServed', { providers: [Mails] });
    await client.enqueue('mail', {});
    clock.advance(5_000);
    await settle();
    expect(observe).not.toHaveBeenCalled();
    expect(heard).toEqual([]);
  });

  test('is no news where another process serves it', async () => {
    const { client, clock, heard, observe, broker } = await start('queueNotServed', {}, { server: false });
    const info = { host: 'h', pid: 1, serverId: 's', concurrency: 1, queues: { default: 1 }, strictPriority: false };
    await broker.monitoring.writeServerState({ ...info, status: 'active', startTime: 0, activeWorkerCount: 0 }, [], 60);
    await client.enqueue('mail', {});
    clock.advance(5_000);
    await settle();
    expect(observe).toHaveBeenCalledTimes(1);
    expect(heard).toEqual([]);
  });

  test('is found at the start, for definitions and periodic tasks with handlers here', async () => {
    const Typo = defineTask('typo', { queue: 'low' });
    class Typos {
      @TaskHandler(Typo)
      run() {}
      @PeriodicTask('@every 1h', { queue: 'hourly' })
      hourly() {}
    }
    const { clock, heard, first, observe } = await start('queueNotServed', { providers: [Typos] });
    clock.advance(5_000);
    await first;
    expect(observe).toHaveBeenCalledTimes(1);
    expect(heard.toSorted((one, other) => one.queue.localeCompare(other.queue))).toEqual([
      { queue: 'hourly', near: undefined, handler: 'Typos.hourly' },
      { queue: 'low', near: undefined, handler: 'Typos.run' },
    ]);
  });

  test('is found for a periodic task without a queue of its own', async () => {
    class Nightly {
      @PeriodicTask('@daily')
      run() {}
    }
    const server = { queues: ['mails'] };
    const { clock, heard, first } = await start('queueNotServed', { providers: [Nightly] }, { server });
    clock.advance(5_000);
    await first;
    expect(heard).toEqual([{ queue: 'default', near: undefined, handler: 'Nightly.run' }]);
  });

  test('harms nobody when the fleet cannot be read', async () => {
    const { client, clock, heard, observe } = await start('queueNotServed', {}, { server: false });
    observe.mockRejectedValue(new Error('no permission'));
    await client.enqueue('mail', {});
    clock.advance(5_000);
    await settle();
    expect(heard).toEqual([]);
  });
});

describe('a class that no module provides', () => {
  test('is named at once; not one that is called, inherited, or provided in another way', async () => {
    declaredClasses().clear();
    class Base {
      @TaskHandler('base')
      run() {}
    }
    @Injectable()
    class Derived extends Base {}
    class Made {
      @TaskHandler('made')
      run() {}
    }
    class Called {
      @TaskHandler('called')
      run() {}
    }
    class Forgotten {
      @TaskHandler('forgotten')
      run() {}
    }
    class Caller {
      constructor(@InjectTasks(Called) readonly tasks: TasksOf<Called>) {}
    }
    void Forgotten;
    const { heard } = await start('handlersNotProvided', {
      providers: [Derived, { provide: 'made', useFactory: () => new Made() }, Caller],
    });
    expect(heard).toEqual([{ classes: ['Forgotten'] }]);
  });

  test('is no matter to a process that only produces', async () => {
    const { heard } = await start('handlersNotProvided', {}, { server: false });
    expect(heard).toEqual([]);
  });
});

describe('a queue that two applications share', () => {
  const other = async (broker: MemoryBroker, pattern: string, queues: Record<string, number>) => {
    const info = { host: 'h', pid: 1, serverId: 's', concurrency: 1, queues, strictPriority: false };
    await broker.monitoring.writeServerState({ ...info, status: 'active', startTime: 0, activeWorkerCount: 0 }, [], 60);
    await broker.monitoring.writeServerProfile(info, { handlers: [{ pattern }], queues: {}, aggregates: false }, 60);
  };

  test('is reported when no type is handled by both', async () => {
    const { broker, clock, first, heard } = await start('queueShared', { providers: [Mails] });
    await other(broker, 'invoice', { default: 1 });
    clock.advance(5_000);
    await first;
    expect(heard).toEqual([{ queue: 'default', host: 'h', pid: 1, theirs: ['invoice'], ours: ['mail'] }]);
  });

  test.each<[string, string, Record<string, number>]>([
    ['two versions of one application', 'mail:new', { default: 1 }],
    ['other queues', 'invoice', { invoices: 1 }],
  ])('is no news: %s', async (_, pattern, queues) => {
    const { broker, clock, heard } = await start('queueShared', { providers: [Mails] });
    await other(broker, pattern, queues);
    clock.advance(5_000);
    await settle();
    expect(heard).toEqual([]);
  });
});

describe('a decorator above @TaskHandler', () => {
  const replacing = (copies: boolean) => (_target: object, _key: string, descriptor: PropertyDescriptor) => {
    const original = descriptor.value as (...args: unknown[]) => unknown;
    const value = function (this: unknown, ...args: unknown[]) {
      return [original.apply(this, args)];
    };
    for (const key of copies ? Reflect.getMetadataKeys(original) : []) {
      Reflect.defineMetadata(key, Reflect.getMetadata(key, original), value);
    }
    descriptor.value = value;
  };

  test('is refused when it hides the method', async () => {
    class Hidden {
      @replacing(false)
      @TaskHandler('hidden')
      run() {}
    }
    class Heir extends Hidden {}
    for (const provider of [Hidden, Heir]) {
      const error = await rejection(testApp({ providers: [provider] }));
      expect(error).toMatchObject({ code: 'ASYNQ_INVALID_HANDLER' });
      expect(error.message).toMatch(/\.run: a decorator above @TaskHandler replaces the method/);
    }
  });

  test('runs when it copies the metadata, and below it', async () => {
    class Copied {
      @replacing(true)
      @TaskHandler('copied')
      copied() {
        return 1;
      }
      @TaskHandler('below')
      @replacing(false)
      below() {
        return 2;
      }
    }
    const { tasks } = await testApp({ providers: [Copied] });
    expect(await tasks.work('copied')).toMatchObject({ result: [1] });
    expect(await tasks.work('below')).toMatchObject({ result: [2] });
  });

  test('is no matter where a subclass overrides the method', async () => {
    class Hidden {
      @replacing(false)
      @TaskHandler('hidden')
      run() {}
    }
    class Own extends Hidden {
      @TaskHandler('own')
      override run() {}
    }
    const { tasks } = await testApp({ providers: [Own] });
    expect(await tasks.work('own')).toMatchObject({ outcome: 'done' });
  });
});

describe('a payload that JSON changes', () => {
  test('is reported once per type; a Date only where no definition says so', async () => {
    const Dated = defineTask<{ at: Date }>('dated');
    const { client, heard } = await start('payloadChanged', {}, { server: false });
    await client.enqueue('mail', { list: [{ set: new Set() }] });
    await client.enqueue('mail', { map: new Map() });
    await client.enqueue(Dated, { at: new Date(0) });
    await client.enqueue('plain', { a: [1, null, 'x', { toJSON: () => 1 }], b: undefined, c: Buffer.from('x') });
    await client.enqueue('bytes', new Uint8Array(3));
    await client.enqueue(
      'private',
      new (class Money {
        #cents = 1;
        get cents() {
          return this.#cents;
        }
      })(),
    );
    expect(heard.map(({ type, path, what }) => `${type} ${path} ${what}`)).toEqual([
      'mail $.list[0].set a Set, which becomes {}: give its values as an array',
      'private $ an instance of Money, which becomes {}: JSON sees no private fields and no methods',
    ]);
  });
});
