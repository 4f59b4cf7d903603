import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DashboardPermission, DashboardRequest } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mayDo } from '../../../../lib/dashboard/permissions.js';
import { roleFor, type Route } from '../../../../lib/dashboard/rest/route.js';
import { routes } from '../../../../lib/dashboard/rest/table.js';
import {
  arrangeEveryState,
  arrangeHeld,
  arrangeRunsAndBatches,
  arrangeWaiting,
  batchFor,
  runFor,
} from '../../../support/every-state.js';
import { QueueKeys } from '../../../../lib/wire/keys.js';
import { request } from '../../../support/messages.js';
import { type Reply, startConsole, type TestConsole } from '../../console.js';

/*
 * A sender who may see some queues only, against every route: replies must not depend on hidden
 * queues, and changes must not reach them. A new route is included automatically.
 */

const SETS: Readonly<Record<string, DashboardPermission>> = {
  all: 'destroy',
  none: { queues: { own: 'none' } },
  own: { queues: { own: 'destroy' } },
  looks: { queues: { 'ow*': 'view' } },
  acts: { queues: { own: 'act' } },
  broken: { queues: { own: 'admin' as 'view' } },
  others: { queues: { 'hid*': 'none', hidden: 'none' }, default: 'destroy' },
};
const access = ({ headers }: DashboardRequest) => SETS[String(headers['x-set'])];

const SERVER = { host: 'h', pid: 1, strictPriority: false, status: 'active', concurrency: 2 };

/** Everything a queue can have: tasks in every state, a worker, a schedule and its history. */
async function arrange(broker: InMemoryBroker, queue: string): Promise<void> {
  await arrangeHeld(broker, queue);
  await arrangeEveryState(broker, queue);
  await arrangeWaiting(broker, queue);
  await arrangeRunsAndBatches(broker, queue, queue, `-${queue}`);
  const uniqueKey = new QueueKeys('asynq', queue).lock('charge', 'key', [`order-${queue}`]);
  await broker.producer.enqueue(queue, [{ ...request({ queue, id: 'unique', uniqueKey }), uniqueTtl: 3600 }]);
  const [startTime, deadline] = [broker.clock.now(), broker.clock.now() + 60_000];
  const task = { taskId: 'active', taskType: `type-${queue}`, taskPayload: Buffer.from(`"${queue}"`), queue };
  const server = { ...SERVER, serverId: queue };
  const worker = { host: 'h', pid: 1, serverId: queue, ...task, startTime, deadline };
  await broker.monitoring.writeServerState(
    { ...server, queues: { [queue]: 1 }, startTime, activeWorkerCount: 1 },
    [worker],
    60,
  );
  const entry = { id: `nightly-${queue}`, spec: '@daily', taskType: 'report', taskPayload: Buffer.from('{}') };
  const times = { nextEnqueueTime: deadline, prevEnqueueTime: startTime };
  await broker.scheduling.writeSchedulerEntries(
    queue,
    [{ ...entry, enqueueOptions: [`Queue("${queue}")`], ...times }],
    60,
  );
  await broker.scheduling.recordEnqueueEvent(entry.id, { taskId: `event-${queue}`, enqueueTime: startTime });
  const change = { actor: `by-${queue}`, action: 'pause', outcome: 'done', at: startTime, process: 'h:1', queue };
  const clone = { ...change, action: 'clone', queue: 'own', toQueue: queue };
  await broker.events.appendEvents(
    'audit',
    [change, clone].map((one) => Buffer.from(JSON.stringify(one))),
    { most: 1_000 },
  );
}

const BODIES: Readonly<Record<string, unknown>> = {
  'queues/{queue}/tasks': { type: 'new' },
  'queues/{queue}/tasks/{id}:edit_payload': {
    payload_text: 'new',
    replaces: createHash('sha256').update('{"id":"scheduled"}').digest('hex'),
  },
  'queues/{queue}/tasks/{id}:reschedule': { process_in_seconds: 60 },
};

function bodyOf({ path }: Route): unknown {
  return path.includes(':batch_') ? { task_ids: [/(\w+)_tasks/.exec(path)![1]] } : BODIES[path];
}

/** The task for a route without a state in its path, by the verb of the path. */
const IDS: Readonly<Record<string, string>> = { cancel: 'active', result: 'completed' };

function addressOf({ path }: Route, queue: string): string {
  const id = /(\w+)_tasks/.exec(path)?.[1] ?? IDS[/\w+$/.exec(path)?.[0] ?? ''] ?? 'scheduled';
  const values: Readonly<Record<string, string>> = {
    queue,
    group: 'g',
    entry: `nightly-${queue}`,
    id,
    run: `${runFor(path)}-${queue}`,
    batch: `${batchFor(path)}-${queue}`,
  };
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!);
}

/** Values that may differ: the time, and ids and measurements that are new each time. */
const settled = ({ status, text }: Reply): string =>
  `${status} ${text.replaceAll(/"[\w-]{36}"|"\d+-\d+"|"\d{4}-\d\d-[^"]*"|\d{4}-\d\d-\d\dT[\d:.]+Z|"(?:sequence|latency_msec|oldest_pending_ms|display_latency|memory_usage_bytes|latency_ms)":[^,}]*/g, '*')}`;

describe('hidden queues, attacked', () => {
  let prometheus: Server;
  const asked: string[] = [];
  const start = async (): Promise<TestConsole> => {
    const { port } = prometheus.address() as AddressInfo;
    return startConsole({ access, prometheus: `http://127.0.0.1:${port}` });
  };
  const as = (web: TestConsole, set: string, { method, path }: Pick<Route, 'method' | 'path'>, body?: unknown) =>
    web.api(method, path, body, { 'x-set': set });
  const fresh = async (web: TestConsole, queues: readonly string[]): Promise<InMemoryBroker> => {
    const broker = web.broker as InMemoryBroker;
    broker.clear();
    broker.clock.advance(60_000);
    for (const queue of queues) await arrange(broker, queue);
    return broker;
  };

  let web: TestConsole;
  let alone: TestConsole;
  beforeAll(async () => {
    prometheus = createServer((request, response) => {
      asked.push(new URL(request.url!, 'http://x').searchParams.get('query')!);
      response.end('{"status":"success"}');
    });
    await new Promise<void>((resolve) => prometheus.listen(0, '127.0.0.1', resolve));
    [web, alone] = [await start(), await start()];
  });
  afterAll(async () => {
    await Promise.all([web.close(), alone.close()]);
    prometheus.close();
  });

  it.each(['own', 'looks', 'acts', 'others'])(
    'replies to "%s" by every route as if they did not exist',
    async (set) => {
      // Cancellation is an exception: see below.
      for (const route of routes.filter(({ path }) => !path.includes('cancel'))) {
        const [whole, part] = [await fresh(web, ['own', 'hidden']), await fresh(alone, ['own'])];
        part.clock.moveTo(whole.clock.now());
        for (const queue of ['own', 'hidden']) {
          const request = { method: route.method, path: addressOf(route, queue) };
          const [actual, expected] = [
            await as(web, set, request, bodyOf(route)),
            await as(alone, set, request, bodyOf(route)),
          ];
          expect(settled(actual), `${set}: ${route.method} ${request.path}`).toBe(settled(expected));
        }
      }
    },
  );

  it.each(['own', 'looks', 'acts', 'others'])('lets "%s" change nothing in them by any route', async (set) => {
    for (const route of routes.filter(({ method }) => method !== 'GET')) {
      const broker = await fresh(web, ['own', 'hidden']);
      const before = await picture(broker);
      const { status } = await as(web, set, { method: route.method, path: addressOf(route, 'hidden') }, bodyOf(route));
      expect(route.path.includes('{queue}') ? [404] : [403, 404], `${route.method} ${route.path}`).toContain(status);
      await as(web, set, { method: route.method, path: addressOf(route, 'own') }, bodyOf(route));
      expect(await picture(broker), `${set}: ${route.method} ${route.path}`).toEqual(before);
    }
  });

  /** The content of the hidden queue, whatever happens to the others. */
  async function picture(broker: InMemoryBroker) {
    const { active, pending, scheduled, retry, archived, completed, aggregating, held, paused } =
      await broker.inspection.describeQueue('hidden');
    const cancelled = (await broker.cancellation.findCancellations(['active'])).length;
    return { active, pending, scheduled, retry, archived, completed, aggregating, held, paused, cancelled };
  }

  it('checks the role in the queue of the path, by every route', async () => {
    const roles = { looks: 'view', acts: 'act', own: 'destroy' } as const;
    for (const route of routes.filter(({ path }) => path.includes('{queue}'))) {
      for (const [set, role] of Object.entries(roles)) {
        await fresh(web, ['own']);
        const { status } = await as(web, set, { method: route.method, path: addressOf(route, 'own') }, bodyOf(route));
        const what = `${set}: ${route.method} ${route.path}`;
        if (mayDo(role, roleFor(route))) expect([403, 404], what).not.toContain(status);
        else expect(status, what).toBe(403);
      }
    }
  });

  it('every route without a queue in its path declares which role counts', () => {
    const undecided = routes.filter(({ path, scope }) => !path.includes('{queue}') && scope === undefined);
    expect(undecided.map(({ path }) => path)).toEqual(['redis_info', 'outbox']);
    expect(routes.filter(({ path, scope }) => path.includes('{queue}') && scope !== undefined)).toEqual([]);
  });

  it('refuses everything to a sender who may see no queue', async () => {
    for (const { method, path } of routes) expect((await as(web, 'none', { method, path })).status).toBe(403);
  });

  it('denies access when the access function fails or returns something wrong', async () => {
    const { status, text } = await as(web, 'broken', { method: 'GET', path: 'queues' });
    expect([status, text]).toEqual([500, "this did not work; the application's log says why\n"]);
  });

  it('checks a queue named in a body, too', async () => {
    await fresh(web, ['own', 'hidden', 'third']);
    const clone = (set: string, queue: string) =>
      as(web, set, { method: 'POST', path: 'queues/own/tasks/archived:clone' }, { queue, task_id: `by-${set}` });
    expect(await clone('own', 'hidden')).toMatchObject({
      status: 404,
      text: expect.stringContaining('queue not found: queue="hidden"') as string,
    });
    expect(await clone('own', 'nowhere')).toMatchObject({
      status: 404,
      text: expect.stringContaining('queue not found: queue="nowhere"') as string,
    });
    expect(await clone('acts', 'own')).toMatchObject({ status: 201 });
    expect(await clone('others', 'third')).toMatchObject({ status: 201 });
    expect(JSON.parse((await clone('all', 'hidden')).text)).toMatchObject({ queue: 'hidden' });
    expect(await web.broker.inspection.getTask('hidden', 'by-own')).toBeUndefined();
  });

  it('cancels an id that also runs in another queue only for senders who may cancel there', async () => {
    await fresh(web, ['own', 'hidden']); // the same ids run in both
    const cancel = (set: string, path: string, body?: unknown) => as(web, set, { method: 'POST', path }, body);
    for (const set of ['own', 'acts', 'others']) {
      const one = await cancel(set, 'queues/own/tasks/active:cancel');
      expect([one.status, one.headers['x-asynq-error']]).toEqual([409, 'ELSEWHERE']);
      expect(await cancel(set, 'queues/own/active_tasks:batch_cancel', { task_ids: ['active'] })).toMatchObject({
        text: '{"canceled_ids":[],"error_ids":["active"]}\n',
      });
      expect(await cancel(set, 'queues/own/active_tasks:cancel_all')).toMatchObject({ status: 204 });
    }
    expect(await web.broker.cancellation.findCancellations(['active'])).toEqual([]);
    expect(await cancel('all', 'queues/own/tasks/active:cancel')).toMatchObject({ status: 204 });
  });

  it('does not cancel a task of another queue by the path of an allowed one', async () => {
    await fresh(web, ['hidden']);
    await web.client.enqueue('x', {}, { queue: 'own', taskId: 'x' });
    expect(await as(web, 'own', { method: 'POST', path: 'queues/own/tasks/active:cancel' })).toMatchObject({
      status: 404,
      text: expect.stringContaining('task not found: id="active", queue="own"; it has succeeded') as string,
    });
  });

  it('keeps replies for different permissions apart, and shares those for equal ones', async () => {
    const broker = await fresh(web, ['own', 'hidden']);
    const names = async (set: string) =>
      (
        JSON.parse((await as(web, set, { method: 'GET', path: 'queues' })).text) as { queues: { queue: string }[] }
      ).queues.map(({ queue }) => queue);
    expect([await names('all'), await names('own'), await names('others')]).toEqual([
      ['hidden', 'own'],
      ['own'],
      ['own'],
    ]);
    await broker.producer.enqueue('more', []);
    expect(await names('all')).toEqual(['hidden', 'own']);
  });

  it('queries Prometheus only for visible queues', async () => {
    await fresh(web, ['own', 'hidden']);
    const queries = async (set: string, path: string) => {
      asked.length = 0;
      await as(web, set, { method: 'GET', path });
      return new Set(asked.map((query) => /\{(.*?)[,}](?=state|\[|$)/.exec(query)?.[1]));
    };
    expect([...(await queries('own', 'metrics'))].join()).not.toContain('hidden');
    expect([...(await queries('own', 'metrics?queues=own,hidden'))].join()).toMatch(/^queue=~"own"/);
    expect([...(await queries('own', 'metrics?queues=hidden'))].join()).toContain('queue="",queue!=""');
    expect([...(await queries('all', 'metrics'))].join()).not.toContain('queue');
  });

  it('returns permissions in config, and nothing of hidden queues', async () => {
    const config = async (set: string) =>
      JSON.parse((await as(web, set, { method: 'GET', path: 'config' })).text) as object;
    expect(await config('all')).toMatchObject({ role: 'destroy', queue_roles: {} });
    expect(await config('looks')).toMatchObject({ role: null, queue_roles: { 'ow*': 'view' } });
    expect(await config('others')).toMatchObject({ role: 'destroy', queue_roles: {} });
  });
});
