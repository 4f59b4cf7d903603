import { Injectable, type CanActivate } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { AsynqClient, AsynqModule, TaskHandler } from 'nestjs-asynq';
import { AsynqMetricsModule } from 'nestjs-asynq/metrics';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { QueueReader } from '../../lib/metrics/queue-reader.js';
import { BrokerUnavailableError, QueueNotFoundError } from '../../lib/errors.js';
import type { QueueInfo, RunningServer } from '../../lib/inspector/views.js';
import { quiet } from '../nest/support.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { samplesOf, start } from './support.js';

let redis: RedisProcess;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

@Injectable()
class Tasks {
  @TaskHandler('work')
  work() {}
}

class Closed implements CanActivate {
  canActivate() {
    return false;
  }
}

const P = 'nestjs_asynq_';

test('on Redis leaves out the queue that cannot be read, and only that', async () => {
  const registry = new Registry();
  const app = await start({
    imports: [
      AsynqModule.forRoot({ connection: { port: redis.port }, server: { queues: ['a'] } }),
      AsynqMetricsModule.forRoot({ registry, cacheFor: 0 }),
    ],
    providers: [Tasks],
  });
  const client = app.get(AsynqClient);
  for (const queue of ['a', 'bad', 'c']) await client.enqueue('work', {}, { queue });
  const backdoor = new Redis(redis.port);
  onTestFinished(() => backdoor.disconnect());
  await backdoor.set('asynq:{bad}:scheduled', 'no sorted set');
  const samples = await vi.waitFor(async () => {
    const found = samplesOf(await registry.metrics());
    expect(found.get('asynq_tasks_processed_total{queue="a"}')).toBe(1);
    expect(found.get(`${P}task_wait_seconds_count{queue="a",type="work"}`)).toBe(1);
    return found;
  });
  expect(samples.get('asynq_queue_size{queue="c"}')).toBe(1);
  expect(samples.get(`${P}queue_servers{queue="a"}`)).toBe(1);
  expect(samples.get(`${P}queue_servers{queue="c"}`)).toBe(0);
  expect([...samples.keys()].filter((key) => key.startsWith('asynq_') && key.includes('bad'))).toEqual([]);
  const errors = `${P}scrape_errors_total{queue="bad"}`;
  expect(samples.get(errors)).toBeGreaterThan(0);
  expect(samplesOf(await registry.metrics()).get(errors)).toBe(samples.get(errors)! + 1);
});

test('is served at the path of the module, on Express and Fastify, behind guards', async () => {
  const make = (extras: object) =>
    Test.createTestingModule({
      imports: [
        AsynqModule.forRoot({ connection: 'memory' }),
        AsynqMetricsModule.forRoot({ registry: new Registry(), path: 'internal/metrics', ...extras }),
      ],
      providers: [Tasks],
    })
      .setLogger(quiet)
      .compile();
  const express = (await make({})).createNestApplication();
  const fastify = (await make({})).createNestApplication<NestFastifyApplication>(new FastifyAdapter());
  const guarded = (await make({ guards: [Closed] })).createNestApplication();
  const apps = [express, fastify, guarded];
  onTestFinished(async () => void (await Promise.all(apps.map((app) => app.close()))));
  for (const app of apps) await app.listen(0, '127.0.0.1');
  for (const app of [express, fastify]) {
    const response = await fetch(`${await app.getUrl()}/internal/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(samplesOf(await response.text()).get(`${P}slots`)).toBe(10);
    expect((await fetch(`${await app.getUrl()}/metrics`)).status).toBe(404);
  }
  expect((await fetch(`${await guarded.getUrl()}/internal/metrics`)).status).toBe(403);
});

test('takes its options from a factory', async () => {
  const registry = new Registry();
  const options = { useFactory: async () => ({ registry, prefix: 'from_factory_' }), path: 'metrics' };
  const app = await start({
    imports: [AsynqModule.forRoot({ connection: 'memory' }), AsynqMetricsModule.forRootAsync(options)],
    providers: [Tasks],
  });
  await app.listen(0, '127.0.0.1');
  expect(await (await fetch(`${await app.getUrl()}/metrics`)).text()).toContain('from_factory_slots 10');
});

const info = (queue: string) => ({ queue }) as QueueInfo;

function reader(ask: (queue: string) => Promise<QueueInfo>, options = {}) {
  const clock = new ManualClock(0);
  const errors: string[] = [];
  const inspector = {
    queues: async () => ['a', 'b', 'c', 'd'],
    servers: async (): Promise<RunningServer[]> => [],
    getQueueInfo: vi.fn(ask),
    fairnessKeys: async () => ({ keys: [], cursor: undefined }),
  };
  const onError = (queue: string) => errors.push(queue);
  const made = new QueueReader({
    inspector,
    clock,
    concurrency: 2,
    cacheFor: 1_000,
    timeout: 500,
    maxQueues: 1_000,
    topKeys: 0,
    served: () => [],
    onError,
    ...options,
  });
  return { clock, errors, inspector, reader: made };
}

test('reads a bounded number of queues at a time, and once for concurrent scrapes', async () => {
  let asked = 0;
  let most = 0;
  const rig = reader(async (queue) => {
    most = Math.max(most, ++asked);
    await new Promise((resolve) => setImmediate(resolve));
    asked -= 1;
    return info(queue);
  });
  const [one, other] = await Promise.all([rig.reader.read(), rig.reader.read()]);
  expect(one).toBe(other);
  expect(one.queues.map(({ queue }) => queue)).toEqual(['a', 'b', 'c', 'd']);
  expect(most).toBe(2);
  rig.clock.advance(999);
  expect(await rig.reader.read()).toBe(one);
  rig.clock.advance(1);
  expect(await rig.reader.read()).not.toBe(one);
  expect(rig.inspector.getQueueInfo).toHaveBeenCalledTimes(8);
});

test('does not wait long for a queue that hangs, and reports it once', async () => {
  let fail = (): void => {};
  const hanging = new Promise<QueueInfo>((_, reject) => (fail = () => reject(new BrokerUnavailableError('away'))));
  const rig = reader((queue) => (queue === 'b' ? hanging : Promise.resolve(info(queue))));
  const reading = rig.reader.read();
  await vi.waitFor(() => expect(rig.inspector.getQueueInfo).toHaveBeenCalledTimes(4));
  rig.clock.advance(500);
  expect((await reading).queues.map(({ queue }) => queue)).toEqual(['a', 'c', 'd']);
  fail();
  await hanging.catch(() => undefined);
  expect(rig.errors).toEqual(['b']);
});

test('ends in time, however many queues hang, and reads no more of them', async () => {
  const names = Array.from({ length: 100 }, (_, index) => `q${index}`);
  const rig = reader(() => new Promise(() => {}), { queues: names });
  const reading = rig.reader.read();
  await new Promise(setImmediate); // the servers have replied
  expect(rig.inspector.getQueueInfo).toHaveBeenCalledTimes(2);
  rig.clock.advance(500);
  expect((await reading).queues).toEqual([]);
  expect(rig.inspector.getQueueInfo).toHaveBeenCalledTimes(2);
  expect(rig.errors.toSorted()).toEqual(names.toSorted());
});

test('without the list of queues or of servers exports the rest', async () => {
  const rig = reader(async (queue) => {
    if (queue === 'a') throw new QueueNotFoundError(queue);
    return info(queue);
  });
  rig.inspector.servers = () => Promise.reject(new BrokerUnavailableError('away'));
  const queues = ['b', 'c', 'd'].map(info);
  expect(await rig.reader.read()).toEqual({ queues, servers: undefined, keys: [], leftOut: 0 });
  expect(rig.errors).toEqual(['']);
  rig.inspector.queues = () => Promise.reject(new BrokerUnavailableError('away'));
  rig.clock.advance(1_000);
  expect((await rig.reader.read()).queues).toEqual([]);
  expect(rig.errors).toEqual(['', '', '']);
});

describe('with more queues than are exported', () => {
  const names = Array.from({ length: 1_000 }, (_, index) => `q${String(index).padStart(4, '0')}`);
  const numbers = { active: 0, archived: 5, completed: 0 };
  const setUp = (waiting: Readonly<Record<string, number>>, options = {}) => {
    const rig = reader(async (queue) => ({ ...info(queue), ...numbers, size: 5 + (waiting[queue] ?? 0) }), {
      maxQueues: 10,
      served: () => ['q0500'],
      ...options,
    });
    rig.inspector.queues = async () => names;
    rig.inspector.servers = async () => [{ status: 'active', queues: { q0900: 1 } } as unknown as RunningServer];
    const read = async () => {
      rig.clock.advance(1_000);
      const { queues, leftOut } = await rig.reader.read();
      return { names: queues.map(({ queue }) => queue), leftOut };
    };
    return { ...rig, read };
  };

  test('those with servers come first, then others by name, and the number left out is exported', async () => {
    const { read, inspector } = setUp({});
    const fillers = names.slice(0, 8);
    expect(await read()).toEqual({ names: [...fillers, 'q0500', 'q0900'], leftOut: 990 });
    expect(inspector.getQueueInfo.mock.calls.length).toBe(110); // bounded: some others are tried
  });

  test('a backlog without a server is found in turn, and dropped when it is gone', async () => {
    const waiting: Record<string, number> = { q0250: 1, q0777: 30 };
    const { read } = setUp(waiting);
    for (let reading = 0; reading < 10; reading++) await read();
    const { names: exported } = await read();
    expect(exported).toEqual([...names.slice(0, 6), 'q0250', 'q0500', 'q0777', 'q0900']);
    waiting['q0777'] = 0;
    await read();
    expect((await read()).names).not.toContain('q0777');
  });

  test('those with most waiting tasks come first, and queues that are only tried add no errors', async () => {
    const all = Object.fromEntries(names.map((name, index) => [name, index]));
    const { read, inspector, errors } = setUp(all, { maxQueues: 4 });
    for (let reading = 0; reading < 12; reading++) await read();
    expect((await read()).names).toEqual(['q0500', 'q0900', 'q0998', 'q0999']);
    inspector.getQueueInfo.mockRejectedValue(new BrokerUnavailableError('away'));
    await read();
    expect(errors.toSorted()).toEqual(['q0500', 'q0900', 'q0998', 'q0999']);
  });
});

test('a scrape of 50,000 queues is bounded, and exports how many it leaves out', async () => {
  const registry = new Registry();
  const app = await start({
    imports: [AsynqModule.forRoot({ connection: 'memory' }), AsynqMetricsModule.forRoot({ registry, timeout: '1m' })],
  });
  const client = app.get(AsynqClient);
  const queues = Array.from({ length: 50_000 }, (_, index) => `tenant-${index}`);
  await Promise.all(queues.map((queue) => client.enqueue('work', undefined, { queue })));
  const exposition = await registry.metrics();
  expect(exposition).toContain(`${P}queues_left_out 49000`);
  expect(exposition.match(/^asynq_queue_size\{/gm)).toHaveLength(1_000);
  expect(exposition.length).toBeLessThan(2_000_000);
});
