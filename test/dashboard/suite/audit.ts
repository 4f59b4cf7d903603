import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { INestApplication } from '@nestjs/common';
import {
  ASYNQ_BROKER,
  AsynqInspector,
  AsynqServer,
  AsynqTaskEvents,
  type ConsoleAction,
  OnConsoleAction,
} from 'nestjs-asynq';
import type { AsynqDashboardOptions, DashboardPermission, DashboardRequest } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { BrokerUnavailableError } from '../../../lib/errors.js';
import { actionOf } from '../../../lib/dashboard/audit/action-details.js';
import { nameOfSender } from '../../../lib/dashboard/audit/actor.js';
import { CONSOLE_ACTIONS } from '../../../lib/events/console-action.js';
import { routes } from '../../../lib/dashboard/rest/table.js';
import type { Route } from '../../../lib/dashboard/rest/route.js';
import {
  arrangeEveryState,
  arrangeHeld,
  arrangeRunsAndBatches,
  arrangeWaiting,
  batchFor,
  runFor,
} from '../../support/every-state.js';
import { OutboxFile } from '../../support/outbox-file.js';
import { type ConsoleOptions, PLATFORMS, startConsole, type TestConsole } from '../console.js';

/* The trail of changes made through the console: who, when, and with which result. */

type Entry = Record<string, unknown> & { id: string };
interface Trail {
  entries: Entry[];
  next_cursor: string | null;
}

/** Must not appear in any entry, event or log line. */
const SECRET = 'hunter2';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const BODIES: Readonly<Record<string, unknown>> = {
  'queues/{queue}/tasks': { type: 'new', payload: SECRET, headers: { a: SECRET }, task_id: 'made' },
  'queues/{queue}/tasks/{id}:clone': { payload: SECRET, headers: { a: SECRET }, task_id: 'made', queue: 'other' },
  'queues/{queue}/tasks/{id}:edit_payload': { payload_text: SECRET, replaces: sha256('{"id":"retry"}') },
  'queues/{queue}/tasks/{id}:reschedule': { process_in_seconds: 60 },
  'queues/{queue}/tasks/{id}:cancel': { reason: SECRET, outcome: 'archive' },
  'queues/{queue}/active_tasks/{id}:cancel': { reason: SECRET },
  'queues/{queue}/tasks/{id}:release_lock': { name: `locked:${SECRET}:key` },
  'queues/{queue}/tasks/{id}:signal': { name: 'approval', payload: SECRET },
  'queues/{queue}/workflows/{run}:cancel': { reason: SECRET },
};
const FOR_ID: Readonly<Record<string, string>> = {
  archive: 'pending',
  cancel: 'active',
  edit_payload: 'retry',
  release_lock: 'locked',
  signal: 'scheduled',
};

const stateOf = ({ path }: Route): string | undefined => /(\w+)_tasks/.exec(path)?.[1];

const idOf = (route: Route): string => stateOf(route) ?? FOR_ID[/:(\w+)$/.exec(route.path)?.[1] ?? ''] ?? 'archived';

const addressOf = (route: Route): string =>
  route.path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) =>
      ({
        queue: 'default',
        group: 'g',
        entry: 'nightly',
        id: idOf(route),
        run: runFor(route.path),
        batch: batchFor(route.path),
        row: '7',
      })[name]!,
  );

describe('the audit trail', () => {
  const start = async (options: AsynqDashboardOptions = {}, more?: ConsoleOptions): Promise<TestConsole> => {
    const web = await startConsole({ access: 'destroy', ...options }, more);
    onTestFinished(() => web.close());
    return web;
  };
  const trail = async (web: TestConsole, query = '', headers = {}): Promise<Entry[]> => {
    (web.broker as InMemoryBroker).clock.advance(2_000); // the cached reply expires
    return (await web.get<Trail>(`audit${query}`, headers)).entries;
  };
  const eventsOf = (app: INestApplication) => {
    const [actions, failures]: [ConsoleAction[], object[]] = [[], []];
    const { events } = app.get(AsynqServer, { strict: false });
    events.on('consoleAction', (action) => actions.push(action));
    events.on('consoleTrailFailed', (failure) => failures.push(failure));
    return { actions, failures };
  };

  async function arrange(broker: InMemoryBroker): Promise<void> {
    broker.clear();
    await arrangeHeld(broker);
    await arrangeEveryState(broker);
    await arrangeWaiting(broker);
    await arrangeRunsAndBatches(broker);
    const entry = { id: 'nightly', spec: '@daily', taskType: 'report', taskPayload: Buffer.from(`"${SECRET}"`) };
    const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
    await broker.scheduling.writeSchedulerEntries('s', [{ ...entry, enqueueOptions: ['Queue("low")'], ...times }], 60);
    await broker.scheduling.openSchedule('low', 'nightly', '@daily', 60);
  }

  const changing = routes.filter(({ method }) => method !== 'GET');

  it('has one entry for each change, by every route, without payloads, headers and reasons', async () => {
    const outbox = await OutboxFile.create();
    onTestFinished(() => outbox.close());
    const web = await start({ actor: () => 'alice' }, { metadata: { imports: [outbox.module] } });
    const { actions } = eventsOf(web.app);
    for (const route of changing) {
      await arrange(web.broker as InMemoryBroker);
      outbox.poison(7, 'default', SECRET);
      if (route.path.endsWith(':release_lock')) await lockOne(web);
      const body = bodyOf(route);
      const address = route.path === 'queues/{queue}' ? 'queues/empty' : addressOf(route);
      if (address === 'queues/empty') await emptyQueue(web);
      const { status, text } = await web.api(route.method, address, body);
      const what = `${route.method} ${route.path}: ${status} ${text}`;
      expect(status, what).toBeLessThan(300);
      const entries = await trail(web);
      expect(entries.length, what).toBe(1);
      const { id: _, at, process: where, ...fields } = entries[0]!;
      expect(fields, what).toEqual({ actor: 'alice', outcome: 'done', ...expected(route) });
      expect(new Date(String(at)).getTime(), what).toBeLessThanOrEqual(web.broker.clock.now());
      expect(where).toBe(`${hostname()}:${process.pid}`);
      expect(JSON.stringify([entries, actions]), what).not.toContain(SECRET);
    }
    expect(actions).toHaveLength(changing.length);
    expect(new Set(changing.map(actionOf))).toEqual(new Set(CONSOLE_ACTIONS));
  });

  const bodyOf = (route: Route): unknown => {
    if (route.path.includes(':batch_')) return { task_ids: [idOf(route), 'nobody'] };
    // Every payload has the id: it is found by a part of it, which the trail must not have.
    return route.path.endsWith('_matching') ? { id: idOf(route), payload: '{"', scan: 50 } : BODIES[route.path];
  };

  const lockOne = async ({ client }: TestConsole): Promise<void> => {
    await client.enqueue('locked', {}, { taskId: 'locked', key: SECRET, unique: { for: '1h', by: 'key' } });
  };

  const emptyQueue = async (web: TestConsole): Promise<void> => {
    await web.client.enqueue('x', {}, { queue: 'empty', taskId: 'x' });
    await new AsynqInspector(web.broker).deleteTask('empty', 'x');
  };

  /** The expected entry of a route, except actor, time and process. */
  function expected(route: Route): object {
    const action = actionOf(route);
    if (action === 'delete_queue') return { action, queue: 'empty' };
    if (action === 'run_schedule')
      return { action, queue: 'low', schedule: 'nightly', new_task_id: expect.any(String) };
    if (action.endsWith('_schedule')) return { action, queue: 'low', schedule: 'nightly' };
    if (action === 'retry_workflow') return { action, queue: 'default', workflow: runFor(route.path), count: 1 };
    if (route.path.includes('{run}')) return { action, queue: 'default', workflow: runFor(route.path) };
    if (route.path.includes('{batch}')) return { action, queue: 'default', batch: batchFor(route.path) };
    if (route.path.includes('{row}')) return { action, queue: 'default', row: '7' };
    const group = route.path.includes('{group}') ? { group: 'g' } : {};
    if (route.path.includes(':batch_')) {
      const failed = action === 'cancel' ? 0 : 1;
      return { action, queue: 'default', scope: 'batch', state: stateOf(route), count: 2 - failed, failed, ...group };
    }
    if (route.path.endsWith('_all')) {
      const failed = action === 'cancel' ? { failed: 0 } : {};
      return { action, queue: 'default', scope: 'all', state: stateOf(route), count: 1, ...failed, ...group };
    }
    if (route.path.endsWith('_matching')) {
      const many = { scope: 'matching', criteria: `id ${stateOf(route)}, payload`, count: 1, failed: 0 };
      return { action, queue: 'default', state: stateOf(route), ...many, ...group };
    }
    const one = { action, queue: 'default', ...(route.path.includes('{id}') && { task_id: idOf(route) }), ...group };
    if (action === 'clone') return { ...one, to_queue: 'other', new_task_id: 'made' };
    if (action === 'enqueue') return { ...one, new_task_id: 'made' };
    if (action === 'signal') return { ...one, detail: 'approval' };
    return route.path === 'queues/{queue}/tasks/{id}:cancel' ? { ...one, detail: 'archive' } : one;
  }

  it('names every route that changes something', () => {
    for (const route of changing) expect(CONSOLE_ACTIONS).toContain(actionOf(route));
    expect(() => actionOf({ method: 'POST', path: 'queues/{queue}:explode' })).toThrow(
      /has no name in the audit trail/,
    );
  });

  describe('names the sender', () => {
    it.each([
      [{ user: { username: 'bob', email: 'b@x', sub: '1' } }, 'bob'],
      [{ user: { email: 'b@x', sub: '1' } }, 'b@x'],
      [{ user: { sub: 'auth0|1', groups: ['ops'] } }, 'auth0|1'],
      [{ user: { id: 17 } }, '17'],
      [{ user: 'carol' }, 'carol'],
      [{ user: { username: ' ', email: null, id: 17 } }, '17'],
      [{ user: {}, ip: '10.0.0.1' }, '10.0.0.1'],
      [{ socket: { remoteAddress: '::1' } }, '::1'],
      [{ user: 'x'.repeat(300) }, `${'x'.repeat(200)}…`],
      [{}, 'unknown'],
    ])('by default: %j', (request, name) => {
      expect(nameOfSender(request)).toBe(name);
    });

    it.each(PLATFORMS)('by its option, or by default, on %s', async (platform) => {
      const actor = ({ headers }: DashboardRequest) => {
        if (headers['x-name'] === 'boom') throw new Error('no directory');
        return Promise.resolve(headers['x-name'] as string | undefined);
      };
      const guard = {
        canActivate: (context: { switchToHttp(): { getRequest(): object } }) =>
          Boolean(Object.assign(context.switchToHttp().getRequest(), { user: { email: 'guarded@x' } })),
      };
      const web = await start({ actor, guards: [guard as never] }, { platform });
      const failed = vi.fn();
      web.app.get(AsynqServer, { strict: false }).events.on('hookFailed', failed);
      await web.client.enqueue('x', {}, { taskId: 'x' });
      for (const name of ['dave', 'boom', undefined]) {
        await web.api('POST', 'queues/default:pause', undefined, name === undefined ? {} : { 'x-name': name });
      }
      expect((await trail(web)).map(({ actor: who }) => who)).toEqual(['guarded@x', 'guarded@x', 'dave']);
      expect(failed).toHaveBeenCalledTimes(1);
      const open = await start({}, { platform });
      await open.client.enqueue('x', {}, { taskId: 'x' });
      await open.api('POST', 'queues/default:pause');
      expect((await trail(open))[0]).toMatchObject({ actor: '127.0.0.1' });
    });
  });

  describe('records refused attempts', () => {
    const access = ({ headers }: DashboardRequest) => headers['x-role'] as 'view' | undefined;

    it('with the reason, and without names of queues that do not exist', async () => {
      const web = await start({ access, actor: () => 'mallory' });
      await arrange(web.broker as InMemoryBroker);
      const as = (role: string, method: string, path: string, body?: unknown, headers = {}) =>
        web.api(method, path, body, { 'x-role': role, ...headers });
      await as('view', 'POST', 'queues/default:pause');
      await as('act', 'DELETE', 'queues/default?force=true');
      await as('act', 'POST', 'queues/default/tasks/active:cancel', { outcome: 'delete', reason: SECRET });
      await as('act', 'POST', 'queues/default/tasks', { type: 'x', [SECRET]: 1 });
      await as('destroy', 'POST', 'queues/default:pause', undefined, { origin: 'https://evil.example' });
      await web.api('POST', 'queues/default:pause');
      await as('act', 'POST', 'queues/default/tasks/nobody:run');
      await as('destroy', 'POST', 'nothing/here');
      await as('destroy', 'PUT', 'queues/default:pause');
      const entries = await trail(web, '', { 'x-role': 'view' });
      expect(
        entries.map(({ action, outcome, code }) => `${String(action)} ${String(outcome)} ${String(code)}`),
      ).toEqual([
        'run failed ASYNQ_TASK_NOT_FOUND',
        'pause refused FORBIDDEN',
        'pause refused CROSS_ORIGIN',
        'enqueue refused BAD_REQUEST',
        'cancel refused FORBIDDEN',
        'delete_queue refused FORBIDDEN',
        'pause refused FORBIDDEN',
      ]);
      expect(JSON.stringify(entries)).not.toContain(SECRET);
    });

    it('in read-only mode, too', async () => {
      const web = await start({ readOnly: true });
      await arrange(web.broker as InMemoryBroker);
      await web.api('POST', 'queues/default:pause');
      expect(await trail(web)).toMatchObject([{ action: 'pause', outcome: 'refused', code: 'READ_ONLY' }]);
    });

    it('but at most 60 per minute: the next entry says how many are missing', async () => {
      const web = await start({ access });
      await arrange(web.broker as InMemoryBroker);
      const { actions } = eventsOf(web.app);
      const pause = (role: string) => web.api('POST', 'queues/default:pause', undefined, { 'x-role': role });
      for (let count = 0; count < 65; count++) await pause('view');
      expect(actions).toHaveLength(60);
      await pause('act');
      expect(await trail(web, '?size=200', { 'x-role': 'view' })).toMatchObject([
        { outcome: 'done', missing: 5 },
        ...Array.from({ length: 60 }, () => ({ outcome: 'refused' })),
      ]);
      (web.broker as InMemoryBroker).clock.advance(60_000);
      await pause('view');
      expect(actions.at(-1)).toMatchObject({ outcome: 'refused', missing: undefined });
    });
  });

  describe('misses no change', () => {
    it('has an entry before the change, which stays if the process ends meanwhile', async () => {
      const web = await start({ actor: () => 'alice' });
      await arrange(web.broker as InMemoryBroker);
      let before: object[] = [];
      const pause = vi.spyOn(web.broker.administration, 'pauseQueue').mockImplementation(async () => {
        before = (await web.broker.events.readEventsBack('audit', undefined, 10)).map(({ data }) =>
          JSON.parse(String(data)),
        );
        throw new BrokerUnavailableError('away');
      });
      await web.api('POST', 'queues/default:pause');
      expect(before).toMatchObject([{ action: 'pause', outcome: 'started', actor: 'alice', queue: 'default' }]);
      expect(await trail(web)).toMatchObject([{ outcome: 'failed', code: 'ASYNQ_BROKER_UNAVAILABLE' }]);
      // While it runs, and until its process writes again.
      let release: () => void = () => undefined;
      pause.mockImplementation(() => new Promise((resolve) => (release = () => resolve(true))));
      const asked = web.api('POST', 'queues/default:pause');
      await vi.waitFor(() => expect(pause).toHaveBeenCalledTimes(2));
      expect(await trail(web)).toMatchObject([{ outcome: 'started' }, { outcome: 'failed' }]);
      release();
      await asked;
      expect(await trail(web)).toMatchObject([{ outcome: 'done' }, { outcome: 'failed' }]);
    });

    it('allows an action that cannot be recorded, logs it, and counts it', async () => {
      const web = await start();
      const { broker } = web;
      await arrange(broker as InMemoryBroker);
      const { actions, failures } = eventsOf(web.app);
      const append = vi.spyOn(broker.events, 'appendEvents').mockRejectedValue(new BrokerUnavailableError('away'));
      expect(await web.api('POST', 'queues/default:pause')).toMatchObject({ status: 204 });
      expect((await broker.inspection.describeQueue('default')).paused).toBe(true);
      expect(failures).toMatchObject([{ action: { outcome: 'started' } }, { action: { outcome: 'done' } }]);
      expect(actions).toMatchObject([{ action: 'pause', outcome: 'done' }]);
      append.mockRestore();
      await web.api('POST', 'queues/default:resume');
      expect(await trail(web)).toMatchObject([{ action: 'resume', missing: 1 }]);
      append.mockRestore();
    });

    it('keeps the first entry if the result cannot be written', async () => {
      const web = await start();
      await arrange(web.broker as InMemoryBroker);
      const { events } = web.broker;
      const real = events.appendEvents.bind(events);
      const append = vi.spyOn(events, 'appendEvents');
      append.mockImplementationOnce(real);
      append.mockRejectedValueOnce(new BrokerUnavailableError('away'));
      await web.api('POST', 'queues/default:pause');
      append.mockRestore();
      await web.api('POST', 'queues/default:resume');
      expect(await trail(web)).toMatchObject([
        { action: 'resume', outcome: 'done' },
        { action: 'pause', outcome: 'started' },
      ]);
    });

    it('is one for all processes', async () => {
      const first = await start({ actor: () => 'one' });
      await arrange(first.broker as InMemoryBroker);
      const shared = Object.assign(Object.create(first.broker) as object, { close: () => Promise.resolve() });
      const second = await start(
        { actor: () => 'two' },
        { override: (builder) => builder.overrideProvider(ASYNQ_BROKER).useValue(shared) },
      );
      await first.api('POST', 'queues/default:pause');
      await second.api('POST', 'queues/default:resume');
      expect((await trail(first)).map(({ actor }) => actor)).toEqual(['two', 'one']);
    });

    it('costs nothing without changes', async () => {
      const actor = vi.fn(() => 'alice');
      const web = await start({ actor });
      await arrange(web.broker as InMemoryBroker);
      const append = vi.spyOn(web.broker.events, 'appendEvents');
      const back = vi.spyOn(web.broker.events, 'readEventsBack');
      for (const route of routes.filter(({ method, path }) => method === 'GET' && path !== 'audit')) {
        await web.api('GET', addressOf(route));
      }
      expect([actor, append].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
      expect(back.mock.calls.filter(([stream]) => stream === 'audit')).toEqual([]); // durations read the events
    });
  });

  describe('is read', () => {
    const SETS: Readonly<Record<string, DashboardPermission>> = {
      all: 'destroy',
      mail: { queues: { mail: 'view' } },
      'not payroll': { queues: { payroll: 'none' }, default: 'act' },
    };
    const access = ({ headers }: DashboardRequest) => SETS[String(headers['x-set'])];
    const as = (set: string) => ({ 'x-set': set });

    /** 30 changes: of mail and payroll in turn, and clones from one into the other. */
    const filled = async (): Promise<TestConsole> => {
      const web = await start({ access, actor: ({ headers }) => String(headers['x-name'] ?? 'alice') });
      for (const queue of ['mail', 'payroll']) await web.client.enqueue('x', {}, { queue, taskId: queue });
      for (let round = 0; round < 10; round++) {
        await web.api('POST', 'queues/mail:pause', undefined, { ...as('all'), 'x-name': 'bob' });
        await web.api('POST', 'queues/payroll:pause', undefined, as('all'));
        await web.api('POST', 'queues/mail/tasks/mail:clone', { queue: 'payroll' }, as('all'));
      }
      return web;
    };

    it('page by page, newest first, by queue, actor, action and outcome', async () => {
      const web = await filled();
      const all: Entry[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const page: Trail = await web.get(`audit?size=7&cursor=${cursor}`, as('all'));
        all.push(...page.entries);
        cursor = page.next_cursor;
      }
      expect(all).toHaveLength(30);
      expect(new Set(all.map(({ id }) => id)).size).toBe(30);
      const times = all.map(({ id }) => id.split('-').map(Number));
      expect(times).toEqual(times.toSorted(([a, b], [c, d]) => c! - a! || d! - b!));
      const counted = async (query: string) => (await trail(web, `?size=200&${query}`, as('all'))).length;
      expect(await counted('queue=mail')).toBe(20);
      expect(await counted('queue=payroll')).toBe(20);
      expect(await counted('actor=bob')).toBe(10);
      expect(await counted('action=clone&queue=payroll')).toBe(10);
      expect(await counted('outcome=failed')).toBe(0);
      const { next_cursor: end } = await web.get<Trail>('audit?size=10&actor=bob', as('all'));
      expect(end).toBeNull();
    });

    it('only for visible queues, with a cursor that reveals nothing of the others', async () => {
      const web = await filled();
      for (const set of ['mail', 'not payroll']) {
        const entries = await trail(web, '?size=200', as(set));
        expect(entries.map(({ action, queue }) => [action, queue])).toEqual(
          Array.from({ length: 10 }, () => ['pause', 'mail']),
        );
        const page: Trail = await web.get('audit?size=4', as(set));
        expect(page.next_cursor).toBe(page.entries[3]!.id);
        expect(JSON.stringify(entries)).not.toContain('payroll');
        expect(await trail(web, '?queue=payroll', as(set))).toEqual([]);
      }
    });

    it('without malformed entries of other writers', async () => {
      const web = await start({ access: ({ headers }) => (headers['x-all'] ? 'view' : { queues: { mail: 'view' } }) });
      const good = { at: 1_000, actor: 'other', action: 'run', outcome: 'done', process: 'h:1', queue: 'mail' };
      const wrong = [
        { at: 9e15 },
        { at: '1' },
        { queue: {} },
        { toQueue: 5 },
        { queue: null },
        { taskId: [] },
        { count: '1' },
      ];
      for (const fields of [...wrong, {}]) {
        const entry = Buffer.from(JSON.stringify({ ...good, ...fields }));
        await web.broker.events.appendEvents('audit', [entry], { most: 100 });
      }
      const shown = [{ ...good, at: '1970-01-01T00:00:01Z' }];
      expect(await trail(web, '', { 'x-all': '1' })).toMatchObject(shown);
      expect(await trail(web, '?queue=mail')).toMatchObject(shown);
    });

    it('with clear errors for unknown values', async () => {
      const web = await start();
      expect(await web.api('GET', 'audit?action=deleted')).toMatchObject({
        status: 400,
        text: 'action is "deleted"; did you mean "delete"?\n',
      });
      expect(await web.api('GET', 'audit?outcome=x')).toMatchObject({ status: 400 });
      expect(await web.api('GET', 'audit?cursor=x')).toMatchObject({ status: 400 });
      await web.broker.events.appendEvents(
        'audit',
        ['{', '{"action":"explode"}'].map((text) => Buffer.from(text)),
        { most: 9 },
      );
      expect(await trail(web)).toEqual([]);
    });
  });

  it('is emitted to methods and observables of the process', async () => {
    class Watch {
      readonly seen: ConsoleAction[] = [];
      @OnConsoleAction({ action: 'pause', queue: ['default'] })
      onPause(action: ConsoleAction): void {
        this.seen.push(action);
        throw new Error('harms nobody');
      }
    }
    const web = await start({ actor: () => 'alice' }, { metadata: { providers: [Watch] } });
    await web.client.enqueue('x');
    const failed = vi.fn();
    web.app.get(AsynqServer, { strict: false }).events.on('listenerFailed', failed);
    const seen: string[] = [];
    const events = web.app.get(AsynqTaskEvents, { strict: false });
    events.consoleActions({ outcome: ['done', 'failed'] }).subscribe(({ action }) => seen.push(action));
    await web.api('POST', 'queues/default:pause');
    await web.api('POST', 'queues/default:resume');
    await web.api('POST', 'queues/other:pause'); // there is none
    expect(web.app.get(Watch).seen).toMatchObject([{ actor: 'alice', action: 'pause', at: expect.any(Date) as Date }]);
    expect(seen).toEqual(['pause', 'resume', 'pause']);
    expect(failed).toHaveBeenCalledTimes(1);
    expect(() => events.consoleActions({ action: 'deleted' as 'delete' })).toThrow('did you mean "delete"?');
    expect(() => OnConsoleAction({ queues: 'a' } as never)(Watch.prototype, 'onPause', { value: () => 0 })).toThrow(
      'did you mean "queue"?',
    );
  });
});
