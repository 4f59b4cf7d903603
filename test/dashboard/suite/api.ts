import { ASYNQ_BROKER, type Broker, BrokerUnavailableError } from 'nestjs-asynq';
import { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { arrangeEveryState } from '../../support/every-state.js';
import { failingBroker } from '../../support/failing-broker.js';
import { PLATFORMS, startConsole, type TestConsole } from '../console.js';

describe('the API', () => {
  const consoleOn = (broker: Broker): Promise<TestConsole> =>
    startConsole(
      { access: 'view' },
      { override: (builder) => builder.overrideProvider(ASYNQ_BROKER).useValue(broker) },
    );

  /** Colons and slashes confuse platforms and proxies. */
  const QUEUE = 'a/b:c%2F';
  const at = (path: string) => `queues/${encodeURIComponent(QUEUE)}${path}`;

  interface List {
    tasks: { id: string; state: string }[];
    stats: { queue: string };
    next_cursor: string | null;
    scanned?: number;
  }

  describe.each(PLATFORMS)('the API on %s', (platform) => {
    let web: TestConsole;
    const ids = async (path: string) => (await web.get<List>(at(path))).tasks.map(({ id }) => id);

    beforeAll(async () => {
      web = await startConsole({ access: 'destroy' }, { platform });
      await arrangeEveryState(web.broker, QUEUE);
    });
    afterAll(() => web.close());

    it('runs on its platform', () => expect(web.adapter).toBe(platform));

    it('lists queues, and shows one with its history', async () => {
      const { queues } = await web.get<{ queues: object[] }>('queues');
      expect(queues).toMatchObject([{ queue: QUEUE, size: 7, active: 1, aggregating: 1, succeeded: 1, failed: 2 }]);
      const { current, history } = await web.get<{ current: object; history: object[] }>(at(''));
      expect(current).toEqual(queues[0]);
      expect(history).toHaveLength(10);
    });

    it.each(['active', 'pending', 'scheduled', 'retry', 'archived', 'completed'])(
      'lists tasks that are %s',
      async (state) => {
        const list = await web.get<List>(at(`/${state}_tasks`));
        expect(list).toMatchObject({ tasks: [{ id: state, state }], stats: { queue: QUEUE }, next_cursor: null });
      },
    );

    it('lists from either end, by default as asynqmon does, and goes on in that direction', async () => {
      const archive = (path: string) => web.get<List>(`queues/ends/archived_tasks?size=2${path}`);
      for (const id of ['a', 'b', 'c']) {
        await web.client.enqueue('x', {}, { queue: 'ends', taskId: id });
        expect((await web.api('POST', `queues/ends/tasks/${id}:archive`)).status).toBe(204);
        (web.broker as InMemoryBroker).clock.advance(1000);
      }
      const ids = ({ tasks }: List) => tasks.map(({ id }) => id);
      expect(ids(await archive(''))).toEqual(['a', 'b']);
      expect(ids(await archive('&page=2'))).toEqual(['c']);
      expect(ids(await archive('&page=2&order=newest'))).toEqual(['a']);
      const newest = await archive('&order=newest');
      expect(ids(newest)).toEqual(['c', 'b']);
      const cursor = `&cursor=${newest.next_cursor}`;
      expect(ids(await archive(cursor))).toEqual(['a']);
      expect(ids(await archive(`${cursor}&order=newest`))).toEqual(['a']);
      expect((await web.api('GET', `queues/ends/archived_tasks?order=oldest${cursor}`)).status).toBe(400);
      expect((await web.api('GET', 'queues/ends/archived_tasks?order=upwards')).text).toContain('newest or oldest');
      expect(ids(await archive('&order=newest&type=x'))).toEqual(['c', 'b', 'a']);
      expect((await web.api('GET', 'queues/ends/pending_tasks?order=newest')).status).toBe(400);
      expect((await web.api('DELETE', 'queues/ends?force=true')).status).toBe(204);
    });

    it('says since when a pending task waits', async () => {
      const since = expect.stringMatching(/^\d{4}-.*Z$/);
      expect(await web.get(at('/pending_tasks'))).toMatchObject({ tasks: [{ id: 'pending', pending_since: since }] });
      expect(await web.get(at('/tasks/pending'))).toMatchObject({ pending_since: since });
      expect(await web.get(at('/tasks/retry'))).toMatchObject({ pending_since: null });
    });

    it('lists the tasks of a group', async () => {
      const list = await web.get<List>(at('/groups/g/aggregating_tasks'));
      expect(list).toMatchObject({ tasks: [{ id: 'aggregating', group: 'g' }], groups: [{ group: 'g', size: 1 }] });
    });

    it('says what fails', async () => {
      const error = {
        type: expect.stringContaining('email:'),
        error: 'connect ECONNREFUSED',
        match: 'connect ECONNREFUSED',
      };
      expect(await web.get(at('/failures'))).toMatchObject({
        failures: [
          { ...error, retry: 1, archived: 0, task_id: 'retry', last_failed_at: expect.stringMatching(/Z$/) },
          { ...error, retry: 0, archived: 1, task_id: 'archived', first_failed_at: expect.stringMatching(/Z$/) },
        ],
        scanned: 2,
        total: 2,
      });
      expect((await web.api('GET', 'queues/nowhere/failures')).status).toBe(404);
    });

    it('searches', async () => {
      expect(await web.get(at('/archived_tasks?error=REFUSED'))).toMatchObject({
        tasks: [{ id: 'archived' }],
        scanned: 1,
      });
      expect(await web.get(at('/archived_tasks?payload=nothing'))).toMatchObject({ tasks: [], scanned: 1 });
    });

    it('shows a task', async () => {
      expect(await web.get(at('/tasks/completed'))).toMatchObject({
        state: 'completed',
        payload: '{"id":"completed"}',
        payload_decoded: { decoder: 'json', value: { id: 'completed' } },
        result_decoded: { decoder: 'json', value: { ok: true } },
        actions: ['run', 'archive', 'delete', 'reschedule', 'clone'],
      });
      expect(await web.api('GET', at('/tasks/nobody'))).toMatchObject({
        status: 404,
        headers: { 'x-asynq-error': 'ASYNQ_TASK_NOT_FOUND' },
      });
    });

    it('moves tasks one by one, and only from the state asked for', async () => {
      expect(await web.api('POST', at('/archived_tasks/archived:run'))).toMatchObject({ status: 204, text: '' });
      expect(await ids('/pending_tasks')).toEqual(['pending', 'archived']);
      const late = await web.api('POST', at('/tasks/archived:archive'), { state: 'retry' });
      expect(late).toMatchObject({ status: 409, headers: { 'x-asynq-error': 'ASYNQ_TASK_STATE' } });
      expect(await web.api('POST', at('/tasks/archived:archive'), { state: 'pending' })).toMatchObject({ status: 204 });
      expect(await web.api('DELETE', at('/tasks/archived'))).toMatchObject({ status: 204 });
      expect(await ids('/archived_tasks')).toEqual([]);
    });

    it("moves tasks by batch and all at once, with asynqmon's field names", async () => {
      const batch = await web.api('POST', at('/retry_tasks:batch_run'), { task_ids: ['retry', 'nobody'] });
      expect(batch).toMatchObject({ status: 200, text: '{"pending_ids":["retry"],"error_ids":["nobody"]}\n' });
      expect(await web.api('POST', at('/pending_tasks:archive_all'))).toMatchObject({ text: '{"archived":2}\n' });
      expect(await web.api('DELETE', at('/archived_tasks:delete_all'))).toMatchObject({ text: '{"deleted":2}\n' });
      const group = await web.api('POST', at('/groups/g/aggregating_tasks:run_all'));
      expect(group).toMatchObject({ text: '{"scheduled":1}\n' });
    });

    it('pauses, resumes and deletes a queue', async () => {
      const paused = async () => (await web.get<{ current: { paused: boolean } }>(at(''))).current.paused;
      for (const [verb, wanted] of Object.entries({ pause: true, resume: false })) {
        expect(await web.api('POST', `${at('')}:${verb}`)).toMatchObject({ status: 204 });
        expect(await paused()).toBe(wanted);
      }
      expect(await web.api('POST', 'queues/nobody:pause')).toMatchObject({ status: 404 });
      await web.client.enqueue('x', undefined, { queue: 'second' });
      expect(await web.api('DELETE', 'queues/second')).toMatchObject({ status: 400 });
      expect(await web.api('DELETE', 'queues/second?force=true')).toMatchObject({ status: 204 });
      expect(await web.broker.inspection.queues()).toEqual([QUEUE]);
    });

    it('returns the configuration, and what the sender may do', async () => {
      expect(await web.get('config')).toMatchObject({ role: 'destroy', read_only: false, refresh_ms: 2000 });
      const { paths } = await web.get<{ paths: Record<string, object> }>('openapi.json');
      expect(Object.keys(paths)).toContain('/queues/{queue}/archived_tasks/{id}:run');
    });

    it('redirects to the page by a relative address', async () => {
      expect(await web.raw('GET', '/asynq?x=1')).toMatchObject({ status: 307, headers: { location: './asynq/?x=1' } });
      expect((await web.raw('GET', '/asynq/nothing')).status).toBe(404);
    });
  });

  it('lists servers with their tasks and start times', async () => {
    const web = await startConsole();
    const { broker } = web;
    await arrangeEveryState(broker);
    const [startTime, deadline] = [Date.parse('2030-01-01T00:00:00.250Z'), Date.parse('2030-01-01T00:30:00Z')];
    const owner = { host: 'h', pid: 7, serverId: 's' };
    const task = { taskId: 'active', taskType: 'email:active', taskPayload: Buffer.from('{}'), queue: 'default' };
    const server = { ...owner, strictPriority: true, status: 'active', concurrency: 2, queues: { default: 3 } };
    await broker.monitoring.writeServerState(
      { ...server, startTime, activeWorkerCount: 1 },
      [{ ...owner, ...task, startTime, deadline }],
      60,
    );
    const times = { start_time: '2030-01-01T00:00:00.25Z', deadline: '2030-01-01T00:30:00Z' };
    expect(await web.get('servers')).toEqual({
      servers: [
        {
          id: 's',
          host: 'h',
          pid: 7,
          concurrency: 2,
          queue_priorities: { default: 3 },
          strict_priority_enabled: true,
          start_time: times.start_time,
          status: 'active',
          active_workers: [
            { task_id: 'active', queue: 'default', task_type: 'email:active', task_payload: '{}', ...times },
          ],
        },
      ],
    });
    const { tasks } = await web.get<List>('queues/default/active_tasks');
    expect(tasks).toMatchObject([{ id: 'active', ...times, is_orphaned: false }]);
    const worker = { server_id: 's', host: 'h', pid: 7, started_at: times.start_time, deadline: times.deadline };
    expect(await web.get('queues/default/tasks/active')).toMatchObject({ worker, actions: ['cancel', 'clone'] });
    await web.close();
  });

  it('returns 503 and one sentence while Redis is away', async () => {
    const failing = failingBroker<Broker>(new InMemoryBroker());
    const web = await consoleOn(failing.broker);
    failing.faults.set('queues', 'before').set('servers', 'before');
    for (const path of ['queues', 'live', 'servers']) {
      const { status, text, headers } = await web.api('GET', path);
      expect([path, status, headers['x-asynq-error']]).toEqual([path, 503, 'ASYNQ_BROKER_UNAVAILABLE']);
      expect(text).toMatch(/^[^\n]+\n$/);
    }
    failing.faults.clear();
    expect(await web.get('queues')).toEqual({ queues: [] });
    await web.close();
  });

  it('returns the other queues while one node is away, without waiting for it, until it is back', async () => {
    const broker = new InMemoryBroker();
    const describe = broker.inspection.describeQueue.bind(broker.inspection);
    let reply = (): Promise<void> => Promise.reject(new BrokerUnavailableError('its node is away'));
    broker.inspection.describeQueue = async (queue) => {
      if (queue === 'lost') await reply();
      return describe(queue);
    };
    const count = broker.inspection.countsOfDays.bind(broker.inspection);
    broker.inspection.countsOfDays = async (queue, days) => {
      if (queue === 'lost') await reply();
      return count(queue, days);
    };
    const web = await consoleOn(broker);
    for (const queue of ['lost', 'well']) await web.client.enqueue('t', {}, { queue });
    const rows = async () => {
      broker.clock.advance(60_000); // the cached state of the queues expires
      const { queues } = await web.get<{ queues: { queue: string; error?: string; size?: number }[] }>('queues');
      return queues;
    };
    const [lost, well] = [
      { queue: 'lost', error: expect.stringContaining('its node is away') },
      { queue: 'well', size: 1 },
    ];
    expect(await rows()).toMatchObject([lost, well]);
    expect((await web.api('GET', 'queues/lost')).status).toBe(503);
    const { stats } = await web.get<{ stats: Record<string, unknown[]> }>('queue_stats');
    expect([stats['lost'], stats['well']!.length > 0]).toEqual([[], true]);
    let back = (): void => undefined;
    reply = () => new Promise<void>((resolve) => (back = resolve));
    expect(await rows()).toMatchObject([lost, well]);
    expect(await rows()).toMatchObject([lost, well]);
    back();
    reply = async () => undefined;
    await vi.waitFor(async () => expect(await rows()).toMatchObject([{ queue: 'lost', size: 1 }, well]));
    await web.close();
  });

  it('returns 503 while no node responds, and recovers at once', async () => {
    const failing = failingBroker<Broker>(new InMemoryBroker());
    const web = await consoleOn(failing.broker);
    await web.client.enqueue('t', {});
    failing.faults.set('describeQueue', 'before').set('countsOfDays', 'before');
    for (const path of ['queues', 'queue_stats']) expect((await web.api('GET', path)).status).toBe(503);
    failing.faults.clear();
    expect(await web.get('queues')).toMatchObject({ queues: [{ queue: 'default', size: 1 }] });
    await web.close();
  });
});
