import { type DynamicModule, Injectable, type Type } from '@nestjs/common';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  AsynqServer,
  BrokerUnavailableError,
  getAsynqClientToken,
  getAsynqServerToken,
  InvalidOptionError,
  Payload,
  PostponeTask,
  RevokeTask,
  SkipRetry,
  Steps,
  TaskAggregator,
  TaskHandler,
  type TaskSteps,
  type AsynqModuleOptions,
  type Broker,
} from 'nestjs-asynq';
import { AsynqMetricsModule, type AsynqMetricsOptions } from 'nestjs-asynq/metrics';
import { Counter, Registry, register, type OpenMetricsContentType } from 'prom-client';
import { describe, expect, test, vi } from 'vitest';
import { fairHeader, request } from '../support/messages.js';
import { rejection } from '../nest/support.js';
import { arrangeHeld } from '../support/every-state.js';
import { samplesOf, start, typesOf } from './support.js';

@Injectable()
class Tasks {
  @TaskHandler('mail:')
  mail(payload: { fail?: string } | undefined) {
    if (payload?.fail === 'retry') throw new Error('later');
    if (payload?.fail === 'archive') throw new SkipRetry('never');
    if (payload?.fail === 'revoke') throw new RevokeTask('gone');
    if (payload?.fail === 'postpone') throw new PostponeTask('1h');
  }

  @TaskHandler('steps:')
  async steps(@Payload() { rows, fail = false }: { rows: number; fail?: boolean }, @Steps() steps: TaskSteps) {
    for (let n = 0; n < rows; n++) await steps.run('row', () => n);
    await steps.sleep('no time', 0);
    if (fail) await steps.run('last', () => Promise.reject(new Error('no')));
  }

  @TaskHandler('hold')
  hold() {
    return holding;
  }

  @TaskAggregator()
  merge() {
    return { type: 'mail:merged', payload: {} };
  }
}
let release = (): void => {};
const holding = new Promise<void>((resolve) => (release = resolve));

const memory = (options: Partial<AsynqModuleOptions> = {}, name?: string) =>
  AsynqModule.forRoot({ connection: 'memory', ...options, name });

async function measured(options: AsynqMetricsOptions = {}) {
  const registry = new Registry();
  const metrics = AsynqMetricsModule.forRoot({ registry, cacheFor: 0, ...options });
  const server = { queues: { default: 2, low: 1 }, groupGracePeriod: '1s', groupMaxSize: 2 } as const;
  const app = await start({ imports: [memory({ server }), metrics], providers: [Tasks] });
  const read = async () => samplesOf(await registry.metrics());
  return { app, registry, read, client: app.get(AsynqClient), server: app.get(AsynqServer) };
}

const P = 'nestjs_asynq_';

describe('the metrics of the process', () => {
  test('is counted by queue, handler and outcome', async () => {
    const { client, read } = await measured();
    for (const fail of ['retry', 'archive', 'revoke', 'postpone']) await client.enqueue(`mail:${fail}`, { fail });
    await client.enqueue('mail:welcome', {}, { queue: 'low' });
    await client.enqueue('mail:retained', {}, { retention: '1h' });
    await client.enqueue('nobody:1', {});
    await client.enqueue('nobody:2', {});
    const attempts = (queue: string, type: string, outcome: string) =>
      `${P}task_attempts_total{outcome="${outcome}",queue="${queue}",type="${type}"}`;
    await vi.waitFor(async () => expect((await read()).get(attempts('default', 'unknown', 'retried'))).toBe(2));
    await vi.waitFor(async () => expect((await read()).get(attempts('low', 'mail:', 'succeeded'))).toBe(1));
    const samples = await read();
    for (const outcome of ['succeeded', 'retried', 'archived', 'revoked', 'postponed']) {
      expect(samples.get(attempts('default', 'mail:', outcome)), outcome).toBe(1);
    }
    for (const outcome of ['requeued', 'lost']) expect(samples.get(attempts('low', 'mail:', outcome))).toBe(0);
    expect(samples.get(`${P}stuck_handlers_total{queue="low",type="mail:"}`)).toBe(0);
    for (const histogram of ['task_duration_seconds', 'task_wait_seconds']) {
      const labels = 'queue="default",type="mail:"';
      expect(samples.get(`${P}${histogram}_count{${labels}}`)).toBe(5);
      expect(samples.get(`${P}${histogram}_bucket{le="+Inf",${labels}}`)).toBe(5);
      expect(samples.get(`${P}${histogram}_bucket{le="3600",${labels}}`)).toBe(5);
      expect(samples.get(`${P}${histogram}_sum{${labels}}`)).toBeLessThan(5);
    }
  });

  test('counts steps by handler and outcome, and those that were answered from what is stored not again', async () => {
    const { client, read } = await measured();
    await client.enqueue('steps:2', { rows: 2 }, { retention: '1h' });
    await client.enqueue('steps:3', { rows: 3, fail: true }, { maxRetry: 0 });
    const of = (outcome: string) => `${P}steps_total{outcome="${outcome}",queue="default",type="steps:"}`;
    await vi.waitFor(async () => expect((await read()).get(of('failed'))).toBe(1));
    await vi.waitFor(async () => expect((await read()).get(of('done'))).toBe(5));
    const samples = await read();
    expect(samples.get(of('interrupted'))).toBe(0);
    expect(samples.get(`${P}step_duration_seconds_count{queue="default",type="steps:"}`)).toBe(6);
    expect([...samples.keys()].filter((name) => name.startsWith(`${P}step`) && name.includes('row'))).toEqual([]);
    await client.enqueue('mail:welcome', {});
    await vi.waitFor(async () => {
      const found = await read();
      expect(found.get(`${P}task_attempts_total{outcome="succeeded",queue="default",type="mail:"}`)).toBe(1);
      expect(found.has(`${P}steps_total{outcome="done",queue="default",type="mail:"}`)).toBe(false);
    });
  });

  test('shows slots, tasks in flight, loops and wake-ups', async () => {
    const { client, read, server } = await measured();
    await client.enqueue('hold');
    await vi.waitFor(() => expect(server.active).toBe(1));
    const samples = await read();
    expect(samples.get(`${P}server_active`)).toBe(1);
    expect(samples.get(`${P}slots`)).toBe(10);
    expect(samples.get(`${P}slots_free`)).toBe(9);
    expect(samples.get(`${P}tasks_in_flight{queue="default"}`)).toBe(1);
    expect(samples.get(`${P}tasks_in_flight{queue="low"}`)).toBe(0);
    expect(samples.get(`${P}loop_lag_seconds{loop="forwarder"}`)).toBeLessThan(10);
    expect(samples.get(`${P}wakeups_total{reason="notice"}`)).toBeGreaterThanOrEqual(0);
    release();
    await vi.waitFor(async () => expect((await read()).get(`${P}tasks_in_flight{queue="default"}`)).toBe(0));
  });

  test('counts failures and aggregations', async () => {
    const { client, read, server } = await measured();
    await client.enqueue('mail:a', {}, { group: 'g' });
    await client.enqueue('mail:b', {}, { group: 'g' });
    await vi.waitFor(async () => expect((await read()).get(`${P}aggregated_tasks_total{queue="default"}`)).toBe(2));
    const entry = { id: 'e', spec: '@daily', type: 't', queue: 'low', planned: new Date() };
    server.events.emit('periodicTaskEnqueued', { entry, taskId: '1' });
    server.events.emit('periodicTaskSkipped', { entry, reason: 'missed' });
    server.events.emit('periodicTaskFailed', { entry, error: new Error('taken') });
    server.events.emit('tasksRecovered', { queue: 'low', retried: 2, archived: 0, suspects: 0 });
    server.events.emit('taskDamaged', { task: { id: 'x', queue: 'low' }, error: new Error('bad') });
    server.events.emit('loopFailed', { loop: 'janitor', error: new Error('odd') });
    server.events.emit('enqueueFailed', { queue: 'low', tasks: 9, error: new BrokerUnavailableError('away') });
    server.events.emit('enqueueFailed', { queue: 'low', tasks: 9, error: new Error('damaged') });
    server.events.emit('queueUnreachable', { queue: 'low', error: new Error('away'), unsettled: 0 });
    server.events.emit('handlerStuck', {
      task: { id: 'x', queue: 'low', type: 'mail:x' },
      reason: undefined,
      seconds: 10,
    });
    const at = new Date(0);
    const run = { queue: 'low', id: 'order/1', name: 'order' };
    server.events.emit('workflowStarted', { ...run, steps: 3 });
    server.events.emit('workflowEnded', { ...run, state: 'failed', steps: 3, failed: 1, startedAt: at, endedAt: at });
    const task = { id: 'x', queue: 'low', type: 'mail:x' };
    server.events.emit('waitEnded', { task, end: 'timedOut', state: 'pending' });
    const batch = { queue: 'low', id: 'batch-1', name: '', state: 'completed', total: 2, failed: 1 } as const;
    for (const onExpiry of ['archive', 'drop'] as const)
      server.events.emit('taskExpired', { task, expiredAt: at, onExpiry });
    server.events.emit('batchEnded', { ...batch, openedAt: at, endedAt: at });
    server.events.emit('payloadTooNew', { task, version: 3, known: 1 });
    const samples = await read();
    expect(samples.get(`${P}newer_payloads_total{queue="low"}`)).toBe(1);
    expect(samples.get(`${P}waits_ended_total{outcome="timed_out",queue="low"}`)).toBe(1);
    for (const outcome of ['started', 'failed']) {
      expect(samples.get(`${P}workflow_runs_total{outcome="${outcome}",queue="low"}`)).toBe(1);
    }
    expect(samples.get(`${P}batches_ended_total{outcome="completed",queue="low"}`)).toBe(1);
    expect(samples.get(`${P}aggregations_total{outcome="succeeded",queue="default"}`)).toBe(1);
    for (const outcome of ['enqueued', 'missed', 'failed']) {
      expect(samples.get(`${P}periodic_firings_total{outcome="${outcome}",queue="low"}`)).toBe(1);
    }
    expect(samples.get(`${P}recovered_tasks_total{outcome="retried",queue="low"}`)).toBe(2);
    expect(samples.has(`${P}recovered_tasks_total{outcome="archived",queue="low"}`)).toBe(false);
    for (const outcome of ['archived', 'dropped']) {
      expect(samples.get(`${P}expired_tasks_total{outcome="${outcome}",queue="low"}`)).toBe(1);
    }
    expect(samples.get(`${P}damaged_tasks_total{queue="low"}`)).toBe(1);
    expect(samples.get(`${P}loop_failures_total{loop="janitor"}`)).toBe(1);
    expect(samples.get(`${P}redis_errors_total{source="exchange"}`)).toBe(1);
    expect(samples.get(`${P}redis_errors_total{source="enqueue"}`)).toBe(1);
    expect(samples.get(`${P}stuck_handlers_total{queue="low",type="mail:"}`)).toBe(1);
  });
});

describe('the metrics of queues', () => {
  test('has the names, types and labels of asynq’s exporter', async () => {
    const { app, client, registry, read } = await measured();
    await app.get(AsynqInspector).pauseQueue('low');
    await client.enqueue('mail:x', {}, { queue: 'low' });
    await client.enqueue('mail:later', {}, { queue: 'low', processIn: '1h' });
    await client.enqueue('mail:grouped', {}, { queue: 'other', group: 'g' });
    await arrangeHeld(app.get(ASYNQ_BROKER), 'third');
    const samples = await read();
    const low = [...samples].filter(([key]) => key.startsWith('asynq_') && key.includes('queue="low"'));
    expect(Object.fromEntries(low)).toEqual({
      'asynq_tasks_enqueued_total{queue="low",state="active"}': 0,
      'asynq_tasks_enqueued_total{queue="low",state="pending"}': 1,
      'asynq_tasks_enqueued_total{queue="low",state="scheduled"}': 1,
      'asynq_tasks_enqueued_total{queue="low",state="retry"}': 0,
      'asynq_tasks_enqueued_total{queue="low",state="archived"}': 0,
      'asynq_tasks_enqueued_total{queue="low",state="completed"}': 0,
      'asynq_queue_size{queue="low"}': 2,
      'asynq_queue_latency_seconds{queue="low"}': expect.any(Number),
      'asynq_queue_memory_usage_approx_bytes{queue="low"}': expect.any(Number),
      'asynq_tasks_processed_total{queue="low"}': 0,
      'asynq_tasks_failed_total{queue="low"}': 0,
      'asynq_queue_paused_total{queue="low"}': 1,
    });
    const types = typesOf(await registry.metrics());
    expect(Object.fromEntries(Object.entries(types).filter(([name]) => name.startsWith('asynq_')))).toEqual({
      asynq_tasks_enqueued_total: 'gauge',
      asynq_queue_size: 'gauge',
      asynq_queue_latency_seconds: 'gauge',
      asynq_queue_memory_usage_approx_bytes: 'gauge',
      asynq_tasks_processed_total: 'counter',
      asynq_tasks_failed_total: 'counter',
      asynq_queue_paused_total: 'gauge',
    });
    expect(samples.get(`${P}queue_pending_tasks{queue="low"}`)).toBe(1);
    expect(samples.get(`${P}queue_oldest_pending_seconds{queue="low"}`)).toBeLessThan(60);
    await vi.waitFor(async () => expect((await read()).get(`${P}queue_servers{queue="low"}`)).toBe(1));
    expect(samples.get(`${P}queue_servers{queue="other"}`)).toBe(0);
    expect(samples.get(`${P}queue_aggregating_tasks{queue="other"}`)).toBe(1);
    expect(samples.get(`${P}queue_groups{queue="other"}`)).toBe(1);
    expect(samples.get(`${P}queue_held_tasks{queue="third"}`)).toBe(1);
    expect(samples.get(`${P}queue_oldest_held_seconds{queue="third"}`)).toBeLessThan(60);
    expect(samples.get('asynq_tasks_enqueued_total{queue="third",state="retry"}')).toBe(1);
  });

  test('has the keys of fair queues, and of the largest what waits', async () => {
    const { app, read } = await measured({ topKeys: 2 });
    const broker = app.get<Broker>(ASYNQ_BROKER);
    await app.get(AsynqInspector).pauseQueue('fair');
    broker.fairQueues.add('fair');
    const tasks = (key: string, count: number) =>
      Array.from({ length: count }, () => request({ queue: 'fair', headers: fairHeader(key, { concurrency: 1 }) }));
    await broker.producer.enqueue('fair', [...tasks('acme', 3), ...tasks('beta', 1), ...tasks('zeta', 2)]);
    const samples = await read();
    expect(samples.get(`${P}queue_keys{queue="fair"}`)).toBe(3);
    expect(samples.get(`${P}queue_keys_held{queue="fair"}`)).toBe(0);
    expect([...samples].filter(([name]) => name.startsWith(`${P}key_waiting_tasks`))).toEqual([
      [`${P}key_waiting_tasks{key="acme",queue="fair"}`, 3],
      [`${P}key_waiting_tasks{key="zeta",queue="fair"}`, 2],
    ]);
    expect(samples.has(`${P}queue_keys{queue="low"}`)).toBe(false);
    const without = await measured();
    expect(await without.registry.metrics()).not.toContain('key_waiting_tasks');
    await expect(measured({ topKeys: 101 })).rejects.toThrow('topKeys');
  });

  test('is read for some queues, or none', async () => {
    const some = await measured({ queues: ['low', 'not yet'], asynqNames: false });
    await some.client.enqueue('mail:x');
    await some.client.enqueue('mail:x', {}, { queue: 'low' });
    const keys = [...(await some.read()).keys()];
    expect(keys.filter((key) => key.startsWith('asynq_'))).toEqual([]);
    expect(keys.filter((key) => key.startsWith(`${P}queue_pending_tasks`))).toEqual([
      `${P}queue_pending_tasks{queue="low"}`,
    ]);
    expect(keys.filter((key) => key.startsWith(`${P}scrape_errors`))).toEqual([]);
    const none = await measured({ queues: false });
    expect(Object.keys(typesOf(await none.registry.metrics())).filter((name) => /queue_/.test(name))).toEqual([]);
  });
});

describe('a registry', () => {
  test('exports two connections, with a label for each, in both formats', async () => {
    const registry = new Registry<OpenMetricsContentType>();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const app = await start({
      imports: [memory(), memory({}, 'billing'), AsynqMetricsModule.forRoot({ registry, cacheFor: 0 })],
      providers: [Tasks],
    });
    await app.get<AsynqClient>(AsynqClient).enqueue('mail:x');
    await app.get<AsynqClient>(getAsynqClientToken('billing')).enqueue('mail:x');
    const samples = await vi.waitFor(async () => {
      const found = samplesOf(await registry.metrics());
      expect(found.get(`${P}task_attempts_total{outcome="succeeded",queue="default",type="mail:"}`)).toBe(1);
      return found;
    });
    expect(samples.get('asynq_queue_size{connection="billing",queue="default"}')).toBe(1);
    expect(samples.get('asynq_queue_size{queue="default"}')).toBe(0);
    expect(app.get<AsynqServer>(getAsynqServerToken('billing')).status).toBe('new');
  });

  test('merges the applications of one process, and survives a reload', async () => {
    const registry = new Registry();
    const make = () =>
      start({
        imports: [memory(), AsynqMetricsModule.forRoot({ registry, cacheFor: 0 })],
        providers: [Tasks],
      });
    const [first, second] = [await make(), await make()];
    expect(samplesOf(await registry.metrics()).get(`${P}slots`)).toBe(20);
    await first.close();
    expect(samplesOf(await registry.metrics()).get(`${P}slots`)).toBe(10);
    registry.resetMetrics();
    registry.clear();
    const third = await make();
    expect(samplesOf(await registry.metrics()).get(`${P}slots`)).toBe(20);
    await second.close();
    await third.close();
    expect(registry.getMetricsAsArray()).toEqual([]);
    await make();
    expect(samplesOf(await registry.metrics()).get(`${P}slots`)).toBe(10);
  });

  test('serves an application after one that did not start', async () => {
    const registry = new Registry();
    const make = (server: object, ...more: Type[]) =>
      start({
        imports: [memory({ server }), AsynqMetricsModule.forRoot({ registry, cacheFor: 0 })],
        providers: [Tasks, ...more],
      });
    await rejection(make({ concurrency: -1 }));
    expect(registry.getMetricsAsArray()).toEqual([]);
    class Broken {
      onApplicationBootstrap() {
        throw new Error('broken');
      }
    }
    await rejection(make({ concurrency: -1 }, Broken)); // which is not reported
    expect(registry.getMetricsAsArray()).not.toEqual([]);
    await make({ concurrency: 7 });
    expect(samplesOf(await registry.metrics()).get(`${P}slots`)).toBe(7);
  });

  test('is prom-client’s global one by default', async () => {
    const app = await start({ imports: [memory(), AsynqMetricsModule.forRoot({})], providers: [Tasks] });
    expect(register.getSingleMetric(`${P}slots`)).toBeDefined();
    await app.close();
    expect(register.getSingleMetric(`${P}slots`)).toBeUndefined();
  });

  test('counts nothing twice', async () => {
    const registry = new Registry();
    const two = (second: AsynqMetricsOptions) =>
      start({
        imports: [memory(), AsynqMetricsModule.forRoot({ registry }), AsynqMetricsModule.forRoot(second)],
        providers: [Tasks],
      });
    const failed = await rejection(two({ registry, cacheFor: 0 }));
    expect(failed).toBeInstanceOf(InvalidOptionError);
    expect(failed.message).toContain('two AsynqMetricsModules would count everything twice');
    registry.clear();
    await two({ registry, prefix: 'jobs_', asynqNames: false });
    expect(samplesOf(await registry.metrics()).get('jobs_slots')).toBe(10);
  });

  test('is not changed when another metric has such a name', async () => {
    const registry = new Registry();
    const own = new Counter({ name: 'asynq_queue_size', help: 'x', registers: [registry] });
    const failed = await rejection(start({ imports: [memory(), AsynqMetricsModule.forRoot({ registry })] }));
    expect(failed).toBeInstanceOf(InvalidOptionError);
    expect(failed.message).toContain('asynqNames: false');
    expect(registry.getMetricsAsArray()).toEqual([own]);
    await start({ imports: [memory(), AsynqMetricsModule.forRoot({ registry, asynqNames: false, prefix: 'jobs_' })] });
    expect(registry.getSingleMetric('jobs_task_attempts_total')).toBeDefined();
  });
});

describe('options', () => {
  test.each<[object, string]>([
    [{ registery: 1 }, 'registry'],
    [{ registry: {} }, 'a Registry of prom-client'],
    [{ prefix: 'a-b' }, 'prefix'],
    [{ prefix: 'asynq_' }, "not asynq's own"],
    [{ connections: 'default' }, 'connections'],
    [{ connections: ['nobody'] }, 'nobody'],
    [{ queues: [' '] }, 'queues'],
    [{ queues: true }, 'queues'],
    [{ asynqNames: 1 }, 'asynqNames'],
    [{ durationBuckets: [1, 1] }, 'durationBuckets'],
    [{ waitBuckets: [] }, 'waitBuckets'],
    [{ concurrency: 0 }, 'concurrency'],
    [{ cacheFor: 'soon' }, 'cacheFor'],
    [{ timeout: 0 }, 'timeout'],
    [{ paths: 'metrics' }, 'did you mean "path"'],
    [{ path: 'metrics', guards: class Nothing {} }, 'must be an array of guards'],
    [{ guards: [{ canActivate: () => true }] }, 'which is not set'],
  ])('%o is refused at boot', async (options, text) => {
    const failed = await rejection((async () => start({ imports: [memory(), AsynqMetricsModule.forRoot(options)] }))());
    expect(failed).toBeInstanceOf(InvalidOptionError);
    expect(failed.message).toContain(text);
  });

  test.each<[string, () => (Type | DynamicModule)[], string]>([
    ['no connection', () => [AsynqMetricsModule.forRoot({})], 'imports no AsynqModule.forRoot'],
    ['no forRoot', () => [memory(), AsynqMetricsModule], 'import AsynqMetricsModule.forRoot('],
    ['no forRoot of the connection', () => [AsynqModule], 'import AsynqModule.forRoot('],
    [
      'a path from a factory',
      () => [memory(), AsynqMetricsModule.forRootAsync({ useFactory: () => ({ path: 'metrics' }) as object })],
      'put it beside useFactory',
    ],
    ['no factory', () => [memory(), AsynqMetricsModule.forRootAsync({ path: 'metrics' })], 'needs one of useFactory'],
  ])('%s is refused at boot, too', async (_, imports, text) => {
    const failed = await rejection((async () => start({ imports: imports() }))());
    expect(failed).toBeInstanceOf(InvalidOptionError);
    expect(failed.message).toContain(text);
  });
});
