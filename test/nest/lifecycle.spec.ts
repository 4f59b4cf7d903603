import {
  Global,
  Injectable,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqModule,
  AsynqServer,
  Payload,
  TaskCtx,
  TaskHandler,
  type AsynqModuleOptions,
  type TaskContext,
} from 'nestjs-asynq';
import { AsynqTester } from 'nestjs-asynq/testing';
import { ServerOrchestrator } from '../../lib/nest/lifecycle/server.orchestrator.js';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { compile, quiet, rejection, testApp } from './support.js';

const trace: string[] = [];
let release: () => void;
let released: Promise<void>;
beforeEach(() => {
  trace.splice(0);
  released = new Promise((resolve) => (release = resolve));
});

@Injectable()
class Pool implements OnApplicationBootstrap, OnModuleDestroy {
  open = true;
  onApplicationBootstrap() {
    trace.push('pool bootstrapped');
  }
  onModuleDestroy() {
    this.open = false;
    trace.push('pool closed');
  }
}

@Injectable()
class Tasks {
  constructor(
    private readonly pool: Pool,
    private readonly client: AsynqClient,
  ) {}

  @TaskHandler('slow')
  async slow(@Payload() _payload: unknown, @TaskCtx() task: TaskContext) {
    trace.push('slow started');
    await Promise.race([released, new Promise((resolve) => task.signal.addEventListener('abort', resolve))]);
    await this.client.enqueue('follow-up', 1, { queue: 'elsewhere' });
    trace.push(`slow ended, pool ${this.pool.open ? 'open' : 'closed'}`);
  }
}

@Injectable()
class LastWords implements OnApplicationShutdown {
  private said = false;
  constructor(readonly client: AsynqClient) {}
  async onApplicationShutdown() {
    if (this.said) return; // Nest runs the hooks again when it is closed again
    this.said = true;
    await this.client.enqueue('last', 1, { queue: 'elsewhere' });
    trace.push('last words enqueued');
  }
}

const asynq = (options: Partial<AsynqModuleOptions> = {}) =>
  AsynqModule.forRoot({ connection: 'memory', isGlobal: true, ...options });

@Module({ providers: [LastWords] })
class Inner {}

const start = async (options: Partial<AsynqModuleOptions> = {}): Promise<TestingModule> => {
  const app = await Test.createTestingModule({ imports: [asynq(options), Inner], providers: [Pool, Tasks] })
    .setLogger(quiet)
    .compile();
  const { events } = app.get(AsynqServer);
  events.on('serverStarted', () => trace.push('server started'));
  events.on('serverStopped', () => trace.push('server stopped'));
  events.on('serverClosed', () => trace.push('server closed'));
  events.on('taskFinished', ({ outcome }) => trace.push(`task ${outcome}`));
  onTestFinished(() => app.close());
  return app.init();
};

const slowStarted = async (app: TestingModule): Promise<void> => {
  const started = new Promise<void>((resolve) => app.get(AsynqServer).events.on('taskStarted', () => resolve()));
  await app.get(AsynqClient).enqueue('slow');
  await started;
};

describe('a server', () => {
  test('starts after everything else, and shuts down before everything else', async () => {
    const app = await start();
    expect(app.get(AsynqServer).status).toBe('active');
    await slowStarted(app);
    app.get(AsynqServer).events.on('serverStopped', () => release());
    await app.close();
    expect(trace).toEqual([
      'pool bootstrapped',
      'server started',
      'slow started',
      'server stopped',
      'slow ended, pool open',
      'task done',
      'server closed',
      'pool closed',
      'last words enqueued',
    ]);
    expect(app.get(AsynqServer).status).toBe('closed');
    expect(await rejection(app.get(AsynqClient).enqueue('late'))).toMatchObject({ code: 'ASYNQ_CLOSED' });
  });

  test('keeps the client open for shutdown hooks of global modules, in any order of imports', async () => {
    @Global()
    @Module({ providers: [LastWords] })
    class Everywhere {}
    for (const imports of [
      [asynq(), Everywhere],
      [Everywhere, asynq()],
    ]) {
      const app = await Test.createTestingModule({ imports }).setLogger(quiet).compile();
      await app.init();
      await app.close();
    }
    expect(trace).toEqual(['last words enqueued', 'last words enqueued']);
  });

  test('can be closed twice, at the same time or later', async () => {
    const app = await start();
    await Promise.all([app.close(), app.close()]);
    await app.close();
    expect(trace.filter((line) => line === 'server closed')).toHaveLength(1);
  });

  test('aborts handlers after the shutdown timeout, before anything else shuts down', async () => {
    const app = await start({ server: { shutdownTimeout: 0 } });
    await slowStarted(app);
    await app.close();
    expect(trace).toContain('slow ended, pool open');
    expect(trace.indexOf('server closed')).toBeLessThan(trace.indexOf('pool closed'));
  });

  test('runs what is enqueued, and can be changed while it runs', async () => {
    const app = await start({ server: { queues: ['other'] } });
    const server = app.get(AsynqServer);
    await app.get(AsynqClient).enqueue('slow', 1, { queue: 'late' });
    const started = new Promise<void>((resolve) => server.events.on('taskStarted', () => resolve()));
    server.setConcurrency(3);
    server.pauseFetching();
    server.resumeFetching();
    server.addQueue('late', 2);
    await started;
    expect(server.active).toBe(1);
    server.removeQueue('late');
    expect(() => server.removeQueue('late')).toThrow(/does not serve it/);
    release();
    await app.close();
    expect(trace).toContain('task done');
  });

  test('does not start without handlers', async () => {
    const app = await compile(Test.createTestingModule({ imports: [asynq()] }));
    await app.init();
    expect(app.get(AsynqServer).status).toBe('new');
  });

  test.each([
    { server: { concurrency: 2 }, told: 1 },
    { server: {}, told: 0 },
  ])('reports missing handlers when the options $server ask for a server', async ({ server, told }) => {
    const imports = [AsynqModule.forRoot({ connection: 'memory', server })];
    const app = await Test.createTestingModule({ imports }).setLogger(quiet).compile();
    onTestFinished(() => app.close());
    let heard = 0;
    app.get(AsynqServer).events.on('handlersMissing', () => heard++);
    await app.init();
    expect([heard, app.get(AsynqServer).status]).toEqual([told, 'new']);
  });

  test('is started by hand with autoStart: false', async () => {
    const app = await start({ autoStart: false });
    const server = app.get(AsynqServer);
    expect(server.status).toBe('new');
    await server.start();
    expect(server.status).toBe('active');
    await app.close();
    expect(trace).toEqual([
      'pool bootstrapped',
      'server started',
      'server stopped',
      'server closed',
      'pool closed',
      'last words enqueued',
    ]);
  });

  test('can be started before the application has booted', async () => {
    const app = await Test.createTestingModule({ imports: [asynq()], providers: [Pool, Tasks] }).compile();
    await app.get(AsynqServer).start();
    await app.init();
    expect(app.get(AsynqServer).status).toBe('active');
    await app.close();
    expect(app.get(AsynqServer).status).toBe('closed');
  });

  test('does not start if the application shuts down during its boot, as Nest 11 allows', async () => {
    const app = await Test.createTestingModule({ imports: [asynq()], providers: [Pool, Tasks] })
      .setLogger(quiet)
      .compile();
    onTestFinished(() => app.close());
    await app.get(ServerOrchestrator, { strict: false }).onModuleDestroy();
    await app.init();
    expect(app.get(AsynqServer).status).toBe('closed');
    expect(await rejection(app.get(AsynqServer).start())).toMatchObject({ code: 'ASYNQ_SERVER_STATE' });
  });

  test('does not exist with server: false, and the log names the handlers once', async () => {
    const logs: string[] = [];
    const logger = { ...quiet, log: (text: string, context: string) => void logs.push(`[${context}] ${text}`) };
    const app = await Test.createTestingModule({ imports: [asynq({ server: false })], providers: [Pool, Tasks] })
      .setLogger(logger)
      .compile();
    await app.init();
    expect(await app.get(AsynqClient).enqueue('slow')).toMatchObject({ state: 'pending' });
    expect(() => app.get(AsynqServer).status).toThrow(
      'the connection "default" has no server: its option server is false, so this process only produces tasks',
    );
    await app.close();
    expect(logs.filter((line) => line.startsWith('[Asynq]'))).toEqual([
      '[Asynq] This process only produces (server: false): its 1 task handler will not run here',
    ]);
  });

  test('does not start on a broker that a test drives', async () => {
    const { app, tasks } = await testApp({ providers: [Pool, Tasks] });
    await app.init();
    await app.get(AsynqServer).start(); // as an application with autoStart: false does
    expect(app.get(AsynqServer).status).toBe('new');
    await app.get(AsynqClient).enqueue('slow');
    release();
    expect(await tasks.drain()).toMatchObject({ done: 1 });
    await app.close();
    expect(tasks.enqueued('follow-up')).toHaveLength(1);
  });
});

describe('an application that does not boot', () => {
  @Injectable()
  class Elsewhere {
    @TaskHandler('x', { connection: 'nowhere' })
    run() {}
  }

  test('closes all connections', async () => {
    const first = asynq();
    const second = AsynqModule.forRoot({ connection: 'memory', name: 'second', server: { concurrency: -1 } });
    const app = await Test.createTestingModule({ imports: [first, second], providers: [Pool, Tasks] })
      .setLogger(quiet)
      .compile();
    app.get(AsynqServer).events.on('serverStarted', () => trace.push('server started'));
    app.get(AsynqServer).events.on('serverClosed', () => trace.push('server closed'));
    expect((await rejection(app.init())).message).toBe('concurrency must be a whole number from 1 to 100000, not -1');
    expect(trace).toEqual(['pool bootstrapped', 'server started', 'server closed']);
    expect(await rejection(app.get(AsynqClient).enqueue('late'))).toMatchObject({ code: 'ASYNQ_CLOSED' });
  });

  test('reports why, also to a tester', async () => {
    const { app, tasks } = await testApp({ providers: [Elsewhere] });
    expect((await rejection(app.init())).message).toContain('Elsewhere.run is for the connection "nowhere"');
    expect(await rejection(tasks.drain())).toMatchObject({ code: 'ASYNQ_INVALID_HANDLER' });
    expect(AsynqTester.from(app).enqueued()).toEqual([]);
  });
});
