import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Injectable, type CanActivate, type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { HealthCheckService, TerminusModule, type HealthIndicatorResult } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqHealth,
  AsynqHealthIndicator,
  AsynqInspector,
  AsynqModule,
  AsynqOperationsModule,
  AsynqServer,
  getAsynqHealthIndicatorToken,
  getAsynqHealthToken,
  InvalidOptionError,
  TaskHandler,
  type AsynqModuleOptions,
  type AsynqOperationsOptions,
} from 'nestjs-asynq';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { AsynqHealth as Health, type AsynqHealthDeps } from '../../lib/nest/health/asynq-health.js';
import type { LoopStats } from '../../lib/loop.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { quiet, testApp } from './support.js';

let opened: (() => void)[] = [];
afterEach(() => {
  for (const open of opened.splice(0)) open();
  opened = [];
});

@Injectable()
class Tasks {
  @TaskHandler('hold')
  hold() {
    return new Promise<void>((resolve) => opened.push(resolve));
  }
}

async function start(
  options: Partial<AsynqModuleOptions> = {},
  metadata: ModuleMetadata = {},
  adapter?: FastifyAdapter,
): Promise<INestApplication> {
  const imports = [AsynqModule.forRoot({ connection: 'memory', ...options }), ...(metadata.imports ?? [])];
  const module = await Test.createTestingModule({ providers: [Tasks], ...metadata, imports })
    .setLogger(quiet)
    .compile();
  const app = adapter ? module.createNestApplication(adapter) : module.createNestApplication();
  onTestFinished(() => app.close());
  return app.init();
}

const OK = { status: 'up', problems: [] };

describe('the health of a server', () => {
  test('is up while it runs, and not ready while it drains and afterwards', async () => {
    const app = await start();
    const health = app.get(AsynqHealth);
    expect(health.live()).toEqual({ ...OK, server: 'active' });
    expect(await health.ready()).toEqual({ ...OK, server: 'active', redis: 'up' });
    await app.get(AsynqServer).drain();
    expect(health.live()).toEqual({ ...OK, server: 'stopped' });
    expect(await health.ready()).toMatchObject({ status: 'down', server: 'stopped', redis: 'up' });
    await app.close();
    expect(health.live()).toEqual({ ...OK, server: 'closed' });
    expect(await health.ready()).toMatchObject({
      status: 'down',
      problems: ['the server is closed', expect.any(String)],
    });
  });

  test('is not judged without a server, or when it is started by hand', async () => {
    for (const options of [{ server: false }, { server: { concurrency: 1 } }] as const) {
      const app = await start(options, { providers: [] });
      expect(await app.get(AsynqHealth).ready()).toEqual({ ...OK, server: 'none', redis: 'up' });
    }
    const app = await start({ autoStart: false, name: 'billing' } as Partial<AsynqModuleOptions>, { providers: [] });
    expect(app.get<AsynqHealth>(getAsynqHealthToken('billing')).live()).toEqual({ ...OK, server: 'none' });
    expect(app.get(getAsynqHealthIndicatorToken('billing'))).toBeInstanceOf(AsynqHealthIndicator);
    const byHand = await start({ autoStart: false });
    expect(await byHand.get(AsynqHealth).ready()).toMatchObject({ status: 'up', server: 'new' });
    const { app: tested } = await testApp({ providers: [Tasks] });
    expect(await tested.get(AsynqHealth).ready()).toEqual({ ...OK, server: 'none', redis: 'up' });
  });

  test('has thresholds for the backlog and its age, for one queue and for the others', async () => {
    const app = await start({ server: { queues: ['a', 'b', 'unused'], concurrency: 1 } });
    const [client, health] = [app.get(AsynqClient), app.get(AsynqHealth)];
    await client.enqueue('hold', undefined, { queue: 'a' });
    await vi.waitFor(() => expect(app.get(AsynqServer).active).toBe(1));
    for (const queue of ['a', 'a', 'b']) await client.enqueue('hold', undefined, { queue });
    await vi.waitFor(async () => expect((await health.ready({ maxAge: 1 })).status).toBe('down'));
    expect((await health.ready({ maxPending: 2, maxAge: '1h' })).status).toBe('up');
    expect((await health.ready({ maxPending: 1 })).problems).toEqual(['queue "a" has 2 pending tasks, more than 1']);
    const queues = { a: { maxPending: 9 }, b: { maxPending: 0 } };
    expect((await health.ready({ maxPending: 0, queues })).problems).toEqual([
      'queue "b" has 1 pending tasks, more than 0',
    ]);
    expect((await health.ready({ queues: { a: { maxAge: 1 } } })).problems).toEqual([
      expect.stringMatching(/^queue "a" has a task pending for [\d.]+ s, longer than 0 s$/),
    ]);
    await app.get(AsynqInspector).pauseQueue('a');
    expect((await health.ready({ queues: { a: { maxPending: 0, maxAge: 1 } } })).problems).toEqual([]);
    await app.get(AsynqServer).drain({ timeout: 1 });
  });

  test('count tasks that a limit holds back', async () => {
    @Injectable()
    class Limited {
      @TaskHandler('narrow', { concurrency: 1 })
      hold() {
        return new Promise<void>((resolve) => opened.push(resolve));
      }
    }
    const app = await start({ server: { queues: ['a'], concurrency: 5 } }, { providers: [Limited] });
    const [client, health, inspector] = [app.get(AsynqClient), app.get(AsynqHealth), app.get(AsynqInspector)];
    for (let index = 0; index < 4; index++) await client.enqueue('narrow', undefined, { queue: 'a' });
    await vi.waitFor(async () => expect(await inspector.getQueueInfo('a')).toMatchObject({ active: 1, held: 3 }));
    expect((await health.ready({ maxPending: 3, maxAge: '1h' })).status).toBe('up');
    expect((await health.ready({ maxPending: 2 })).problems).toEqual([
      'queue "a" has 0 pending tasks and 3 held ones, more than 2',
    ]);
    await vi.waitFor(async () =>
      expect((await health.ready({ maxAge: 1 })).problems).toEqual([
        expect.stringMatching(/^queue "a" has a task held for [\d.]+ s, longer than 0 s$/),
      ]),
    );
    await app.get(AsynqServer).drain({ timeout: 1 });
  });

  test.each([
    [{ maxAge: 0 }, 'maxAge'],
    [{ maxPending: -1 }, 'maxPending'],
    [{ maxpending: 1 }, 'maxPending'],
    [{ queues: { a: { maxAge: 'old' } } }, 'maxAge of "a"'],
    [{ timeout: 'soon' }, 'timeout'],
  ])('refuses %o', async (options, text) => {
    const app = await start();
    await expect(app.get(AsynqHealth).ready(options as object)).rejects.toThrow(InvalidOptionError);
    await expect(app.get(AsynqHealth).ready(options as object)).rejects.toThrow(text);
    expect(() => app.get(AsynqHealth).live({ maxLag: 0 })).toThrow('maxLag');
  });
});

describe('the loops', () => {
  const well: LoopStats = { loop: 'janitor', lag: 99_000, overdue: 0, busyFor: 0, failures: 7 };
  const health = (loops: LoopStats[], deps: Partial<AsynqHealthDeps> = {}) =>
    new Health({
      broker: { clock: new ManualClock(), monitoring: { ping: async () => undefined } },
      inspector: { getQueueInfo: () => Promise.reject(new Error('bad')) },
      stats: () => ({ status: 'active', loops, inFlight: new Map() }) as never,
      autoStart: true,
      ...deps,
    });

  test.each<[string, Partial<LoopStats>, string[]]>([
    ['that failed or was late', {}, []],
    ['that is due for long', { overdue: 31_000 }, ['the janitor is 31 s late']],
    ['that never ends', { busyFor: 900_001 }, ['the janitor has been at one pass for 900 s']],
  ])('show one %s', async (_, stats, problems) => {
    const status = problems.length === 0 ? 'up' : 'down';
    expect(health([well, { ...well, ...stats }]).live()).toMatchObject({ status, problems });
    expect(await health([{ ...well, ...stats }]).ready()).toMatchObject({ status, problems });
  });

  test('may be later, or must be faster, by the options', () => {
    const late = health([{ ...well, overdue: 31_000, busyFor: 5_000 }]);
    expect(late.live({ maxLag: '1m' }).status).toBe('up');
    expect(late.live({ maxLag: '1m', maxPass: '4s' }).problems).toEqual(['the janitor has been at one pass for 5 s']);
  });

  test('probes of Terminus share a reply of Redis for a second, per set of options', async () => {
    const clock = new ManualClock();
    const ping = vi.fn(async () => undefined);
    const indicator = new AsynqHealthIndicator(health([well], { broker: { clock, monitoring: { ping } } }));
    await Promise.all([indicator.isReady(), indicator.isReady('tasks'), indicator.isReady('asynq', { timeout: '1s' })]);
    clock.advance(999);
    await indicator.isReady();
    expect(ping).toHaveBeenCalledTimes(2);
    clock.advance(1);
    await indicator.isReady();
    expect(ping).toHaveBeenCalledTimes(3);
  });

  test('an unreadable queue or a hanging Redis delays no probe', async () => {
    expect((await health([well]).ready({ queues: { a: { maxPending: 1 } } })).problems).toEqual([
      'queue "a" cannot be read',
    ]);
    const clock = new ManualClock();
    const hanging = health([well], { broker: { clock, monitoring: { ping: () => new Promise(() => {}) } } });
    const asked = hanging.ready({ timeout: '1s' });
    clock.advance(1_000);
    expect(await asked).toMatchObject({ redis: 'down', problems: ['Redis does not answer within 1 s'] });
  });
});

describe('with Redis', () => {
  let redis: RedisProcess;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('the indicator reports to Terminus, and an unavailable Redis is no reason to restart', async () => {
    const app = await start({ connection: { port: redis.port } }, { imports: [TerminusModule] });
    const [terminus, asynq] = [await app.resolve(HealthCheckService), app.get(AsynqHealthIndicator)];
    const check = () =>
      terminus.check([(): Promise<HealthIndicatorResult> => asynq.isReady('tasks', { timeout: 300, cacheFor: 0 })]);
    const details = { tasks: { status: 'up', server: 'active', redis: 'up' } };
    const isReady = () => vi.waitFor(async () => expect(await check()).toMatchObject({ status: 'ok', details }));
    await isReady();
    const continued = () => process.kill(redis.pid!, 'SIGCONT');
    process.kill(redis.pid!, 'SIGSTOP');
    onTestFinished(() => void continued());
    await expect(check()).rejects.toMatchObject({
      status: 503,
      response: {
        error: { tasks: { status: 'down', redis: 'down', problems: ['Redis does not answer within 0.3 s'] } },
      },
    });
    expect(await terminus.check([() => asynq.isLive()])).toMatchObject({
      status: 'ok',
      details: { asynq: { status: 'up', server: 'active' } },
    });
    continued();
    await isReady();
  });
});

class Nobody implements CanActivate {
  canActivate() {
    return false;
  }
}

describe('the routes for deployments', () => {
  async function serve(options?: AsynqOperationsOptions, adapter?: FastifyAdapter) {
    const app = await start({}, { imports: [AsynqOperationsModule.forRoot(options)] }, adapter);
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    const ask = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`${url}/${path}`, init);
      return [response.status, await response.json()] as const;
    };
    return { app, ask };
  }
  const post = (headers: Record<string, string> = {}): RequestInit => ({ method: 'POST', headers });

  test.each([
    ['Express', undefined],
    ['Fastify', () => new FastifyAdapter()],
  ])('on %s report liveness and readiness, and drain', async (_, adapter) => {
    const { app, ask } = await serve({ drainAccess: 'loopback' }, adapter?.());
    expect(await ask('asynq/live')).toEqual([200, OK]);
    expect(await ask('asynq/ready')).toEqual([200, OK]);
    await app.get(AsynqClient).enqueue('hold');
    await vi.waitFor(() => expect(opened).toHaveLength(1));
    expect(await ask('asynq/drain?timeout=1ms', post())).toEqual([200, { drained: false, active: 1 }]);
    expect(await ask('asynq/ready')).toEqual([
      503,
      { status: 'down', problems: ['the server drains: it takes no tasks any more'] },
    ]);
    const drained = ask('asynq/drain', post());
    opened[0]!();
    expect(await drained).toEqual([200, { drained: true, active: 0 }]);
    expect(await ask('asynq/drain', post())).toEqual([200, { drained: true, active: 0 }]);
    expect(await ask('asynq/live')).toEqual([200, OK]);
  });

  test.each([
    ['through a proxy', { 'x-forwarded-for': '127.0.0.1' }],
    ['through another proxy', { 'x-forwarded-proto': 'https' }],
    ['through the sidecar of a mesh', { 'x-envoy-attempt-count': '1' }],
    ['from a page in a browser', { origin: 'http://127.0.0.1' }],
  ])('do not drain %s', async (_, headers) => {
    const { app, ask } = await serve({ drainAccess: 'loopback' });
    expect((await ask('asynq/drain', post(headers)))[0]).toBe(403);
    expect((await ask('asynq/drain'))[0]).toBe(404);
    expect(app.get(AsynqServer).status).toBe('active');
  });

  test.each([
    ['Express', undefined],
    ['Fastify', () => new FastifyAdapter()],
  ])(
    'on %s drain for nobody unless told otherwise, as no header shows a proxy on the same machine',
    async (_, adapter) => {
      const { app, ask } = await serve(undefined, adapter?.());
      const [status, body] = await ask('asynq/drain', post());
      expect(status).toBe(403);
      expect((body as { message: string }).message).toBe(
        'nobody may drain over HTTP: give AsynqOperationsModule guards, or drainAccess: "loopback" where no proxy on this ' +
          'machine forwards requests to the application, or drain by the signal of server.drainSignal',
      );
      expect(app.get(AsynqServer).status).toBe('active');
    },
  );

  test('drain on loopback for 127.0.0.1 only, and not for a sidecar', async () => {
    const { app } = await serve({ drainAccess: 'loopback' });
    const { port } = new URL(await app.getUrl());
    const ask = async (localAddress: string) => {
      const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress });
      socket.end(`POST /asynq/drain HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return (await text(socket)).split(' ')[1];
    };
    expect(await ask('127.0.0.6')).toBe('403'); // a sidecar of Istio
    expect(app.get(AsynqServer).status).toBe('active');
    expect(await ask('127.0.0.1')).toBe('200');
  });

  test('ask Redis once for all probes within a second, and notice at once that the server drains', async () => {
    const queues = Array.from({ length: 200 }, (_, index) => `queue-${index}`);
    const redis = await startRedis();
    const ready = { maxPending: 0, timeout: '10s', cacheFor: '1h' } as const;
    const options = { connection: { port: redis.port }, server: { queues, concurrency: 1 } };
    const probes = AsynqOperationsModule.forRoot({ ready });
    const app = await start(options, { imports: [probes] });
    onTestFinished(async () => {
      await app.close();
      await redis.stop();
    });
    await app.get(AsynqClient).enqueue('hold', undefined, { queue: 'queue-7' });
    await vi.waitFor(() => expect(app.get(AsynqServer).active).toBe(1));
    await app.get(AsynqClient).enqueue('hold', undefined, { queue: 'queue-7' });
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/asynq/ready`;
    const read = vi.spyOn(AsynqInspector.prototype, 'getQueueInfo');
    onTestFinished(() => read.mockRestore());
    const asked = await Promise.all(Array.from({ length: 20 }, () => fetch(url)));
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([503]));
    expect(await asked[0]!.json()).toEqual({ status: 'down', problems: ['a queue is beyond its thresholds'] });
    expect(read).toHaveBeenCalledTimes(200); // once each, however many ask
    await app.get(AsynqServer).drain({ timeout: 1 });
    const problems = ['the server drains: it takes no tasks any more', 'a queue is beyond its thresholds'];
    expect(await (await fetch(url)).json()).toEqual({ status: 'down', problems });
    expect(read).toHaveBeenCalledTimes(200);
  });

  test('name queues only with showDetails', async () => {
    const options = { ready: { maxPending: 0, cacheFor: 0 }, showDetails: true };
    const { app, ask } = await serve(options);
    const client = app.get(AsynqClient);
    await client.enqueue('hold');
    await vi.waitFor(() => expect(opened).toHaveLength(1));
    await app.get(AsynqServer).setConcurrency(1);
    await client.enqueue('hold');
    expect(await ask('asynq/ready')).toEqual([
      503,
      { status: 'down', problems: ['queue "default" has 1 pending tasks, more than 0'] },
    ]);
  });

  test('are at the given path, and drain for callers that the guards admit', async () => {
    const guarded = await serve({ path: 'ops', guards: [Nobody] });
    expect((await guarded.ask('ops/live'))[0]).toBe(200);
    expect((await guarded.ask('ops/drain', post()))[0]).toBe(403);
    const open = await serve({ drainAccess: 'everyone', ready: { maxPending: 1 } });
    expect((await open.ask('asynq/drain?timeout=later', post()))[0]).toBe(400);
    expect((await open.ask('asynq/drain', post({ 'x-forwarded-for': '10.0.0.1' })))[0]).toBe(200);
  });

  test.each([
    ['without a connection', () => AsynqOperationsModule.forRoot(), 'imports no AsynqModule.forRoot'],
    ['without forRoot', () => AsynqOperationsModule, 'import AsynqOperationsModule.forRoot('],
  ])('are refused %s', async (_, module, text) => {
    const compile = async () => {
      const app = await Test.createTestingModule({ imports: [module()] })
        .setLogger(quiet)
        .compile();
      await app.init();
    };
    await expect(compile()).rejects.toThrow(text);
  });

  test.each<[object, string]>([
    [{ pth: 'x' }, 'path'],
    [{ path: ' ' }, 'path'],
    [{ drainAccess: 'all' }, 'drainAccess must be "none", "loopback" or "everyone", not "all"'],
    [{ ready: { cacheFor: -1 } }, 'cacheFor must be zero or more'],
    [{ showDetails: 'yes' as never }, 'showDetails must be true or false'],
    [{ drainTimeout: 'x' }, 'drainTimeout'],
    [{ ready: { maxAge: 0 } }, 'maxAge'],
    [{ live: { maxPass: 0 } }, 'maxPass'],
    [{ guards: class Nothing {} as never }, 'must be an array of guards'],
  ])('refuse %o', (options, text) => {
    expect(() => AsynqOperationsModule.forRoot(options)).toThrow(InvalidOptionError);
    expect(() => AsynqOperationsModule.forRoot(options)).toThrow(text);
  });
});
