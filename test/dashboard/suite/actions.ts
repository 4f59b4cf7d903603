import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { createHash } from 'node:crypto';
import { bytesCodec } from 'nestjs-asynq';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { encodeOccurrence } from '../../../lib/event-streams/fleet-event.js';
import { arrangeEveryState } from '../../support/every-state.js';
import { startConsole, type TestConsole } from '../console.js';

/*
 * Routes that asynqmon does not have: enqueue, clone, edit, reschedule, cancel with a reason, run a
 * schedule now.
 */

describe('routes that asynqmon does not have', () => {
  let web: TestConsole;
  let broker: InMemoryBroker;
  const post = (path: string, body?: unknown) => web.api('POST', `queues/default/${path}`, body);
  const message = async (id: string, queue = 'default') => (await broker.inspection.getTask(queue, id))!.message;
  const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
  const inSeconds = (seconds: number) => new Date(broker.clock.now() + seconds * 1000).toISOString();

  beforeAll(async () => {
    web = await startConsole({ access: 'destroy' });
    broker = web.broker as InMemoryBroker;
  });
  beforeEach(async () => {
    broker.clear();
    await arrangeEveryState(broker);
  });
  afterAll(() => web.close());

  describe('enqueue', () => {
    it('takes by when it must begin, also of a copy', async () => {
      const expiring = { type: 'email', task_id: 'brief', expires_in_seconds: 90, on_expiry: 'drop' };
      expect(await post('tasks', expiring)).toMatchObject({ status: 201 });
      const at = broker.clock.now() + 90_000;
      expect((await message('brief')).headers).toEqual({ 'asynq-expires-at': `${at} drop` });
      const copy = await post('tasks/brief:clone', { task_id: 'copy', expires_in_seconds: 30 });
      expect(JSON.parse(copy.text)).toMatchObject({
        expires_at: new Date(at - 60_000).toJSON().replace(/\.?0+Z$/, 'Z'),
      });
      expect(await post('tasks', { type: 'email', on_expiry: 'delete' })).toMatchObject({ status: 400 });
      expect(await post('tasks', { ...expiring, task_id: 'x', group: 'g' })).toMatchObject({ status: 400 });
    });

    it('suggests the types of handlers and of recent tasks, each with a task', async () => {
      await broker.monitoring.writeServerState(
        {
          host: 'h',
          pid: 1,
          serverId: 's',
          concurrency: 1,
          queues: { default: 1 },
          strictPriority: false,
          status: 'active',
          startTime: 0,
          activeWorkerCount: 0,
        },
        [],
        60,
      );
      const handlers = ['image:', 'email:pending'].map((pattern) => ({ pattern }));
      await broker.monitoring.writeServerProfile(
        { host: 'h', pid: 1, serverId: 's' },
        { handlers, queues: {}, aggregates: false },
        60,
      );
      broker.clock.advance(2_000);
      const { types } = await web.get<{ types: object[] }>('queues/default/task_types');
      expect(types).toContainEqual({ type: 'image:', handled: true, task_id: null });
      expect(types).toContainEqual({ type: 'email:pending', handled: true, task_id: 'pending' });
      expect(types).toContainEqual({ type: 'email:archived', handled: false, task_id: 'archived' });
      expect(await web.get('queues/never-used/task_types')).toEqual({ types: [], scanned: 0 });
    });

    it('takes every option of a task', async () => {
      const made = await post('tasks', {
        type: 'email',
        payload: { to: 'ann' },
        task_id: 'new',
        max_retry: 3,
        timeout_seconds: 1.5,
        deadline: inSeconds(7200),
        unique_seconds: 60,
        process_at: inSeconds(3600),
        retention_seconds: 90,
        group: 'g',
        headers: { trace: '1' },
      });
      expect(made.status).toBe(201);
      expect(JSON.parse(made.text)).toMatchObject({ id: 'new', state: 'scheduled', queue: 'default', group: 'g' });
      expect(await message('new')).toMatchObject({
        type: 'email',
        payload: Buffer.from('{"to":"ann"}'),
        maxRetry: 3,
        timeout: 2,
        retention: 90,
        groupKey: 'g',
        headers: { trace: '1' },
        deadline: broker.clock.now() / 1000 + 7200,
      });
      const again = { type: 'email', payload: { to: 'ann' }, unique_seconds: 60 };
      expect(await post('tasks', again)).toMatchObject({
        status: 409,
        headers: { 'x-asynq-error': 'ASYNQ_DUPLICATE_TASK' },
      });
      expect(await post('tasks', { type: 'x', task_id: 'new' })).toMatchObject({
        status: 409,
        headers: { 'x-asynq-error': 'ASYNQ_TASK_ID_CONFLICT' },
      });
    });

    it.each([
      [{ payload: null }, 'null'],
      [{ payload_text: 'as it is' }, 'as it is'],
      [{ payload_base64: Buffer.from('bytes').toString('base64') }, 'bytes'],
      [{}, ''],
    ])('takes a payload as %j', async (payload, stored) => {
      expect(await post('tasks', { type: 'x', task_id: 'new', ...payload })).toMatchObject({ status: 201 });
      expect((await message('new')).payload.toString()).toBe(stored);
    });

    it.each([
      [{}, 'needs the field "type"'],
      [{ type: ' ' }, 'task typename cannot be empty'],
      [{ type: 'x', payload: 1, payload_text: '1' }, 'give one of payload, payload_text'],
      [{ type: 'x', payload_base64: '§' }, 'payload_base64 is not base64'],
      [{ type: 'x', process_at: 'tomorrow' }, 'process_at is "tomorrow"; give a time such as'],
      [{ type: 'x', process_at: '2030-01-01T00:00:00' }, 'process_at is'],
      [{ type: 'x', process_at: '2030-02-30T00:00:00Z' }, 'process_at is'],
      [{ type: 'x', process_at: '2030-01-31T24:00:00Z' }, 'process_at is'],
      [{ type: 'x', deadline: '2030-04-31T23:59:59.5+02:00' }, 'deadline is'],
      [{ type: 'x', process_at: '2030-01-01T00:00:00Z', process_in_seconds: 5 }, 'exclude each other'],
      [{ type: 'x', max_retry: 'many' }, 'max_retry must be of type integer'],
      [{ type: 'x', unique_seconds: 0.5 }, 'Unique TTL cannot be less than 1s'],
      [{ type: 'x', headers: { a: 1 } }, 'headers.a must be of type string'],
      [{ type: 'x', headers: { a: 'half \ud800' } }, 'headers.a has half of a surrogate pair'],
      [{ type: 'x', payload_text: '\udc00' }, 'payload_text has half of a surrogate pair'],
      [{ type: 'x', payload: { ids: [2 ** 53] } }, 'would lose digits'],
      [{ type: 'x', payload: -(2 ** 64) }, 'send the JSON as payload_text'],
      [{ type: 'x', retention: 5 }, 'unknown field of the body "retention"'],
    ])('refuses %j', async (body, text) => {
      expect(await post('tasks', body)).toMatchObject({ status: 400, text: expect.stringContaining(text) });
      expect((await broker.inspection.queues()).length).toBe(1);
    });
  });

  describe('clone', () => {
    it('copies bytes, type and options under a new id, and runs the copy now', async () => {
      const payload = Buffer.from([0xff, 0, 1]);
      const options = { maxRetry: 7, timeout: '10s', retention: '1m', headers: { a: 'b' }, processIn: '1h' } as const;
      await web.client.enqueue('bytes', payload, { taskId: 'original', ...options });
      const { status, text } = await post('tasks/original:clone');
      const { id, state } = JSON.parse(text) as { id: string; state: string };
      expect([status, state]).toEqual([201, 'pending']);
      expect(await message(id)).toEqual({ ...(await message('original')), id });
    });

    it('leaves with the task that its steps are undone, and which of them has failed', async () => {
      const deadline = broker.clock.now() / 1000 + 60;
      const headers = { 'asynq-undoing': `7 ${deadline}`, 'asynq-failed-step': 'ship', a: 'b' };
      await web.client.enqueue('saga', undefined, { taskId: 'undoing', maxRetry: 27, headers });
      await post('tasks/undoing:clone', { task_id: 'copy' });
      expect(await message('copy')).toMatchObject({ headers: { a: 'b' }, maxRetry: 7, deadline });
    });

    it('applies the changes in the body', async () => {
      const changes = {
        queue: 'other',
        task_id: 'copy',
        payload: [1],
        type: 'else',
        process_in_seconds: 60,
        max_retry: 0,
      };
      expect(await post('tasks/archived:clone', changes)).toMatchObject({ status: 201 });
      expect(await message('copy', 'other')).toMatchObject({ type: 'else', maxRetry: 0, payload: Buffer.from('[1]') });
      expect(await broker.inspection.getTask('other', 'copy')).toMatchObject({ state: 'scheduled' });
      expect(await post('tasks/nobody:clone')).toMatchObject({ status: 404 });
    });
  });

  describe('edit', () => {
    it.each(['pending', 'scheduled', 'retry', 'archived'])('gives a task that is %s another payload', async (id) => {
      const { payload_sha256: replaces } = await web.get<{ payload_sha256: string }>(`queues/default/tasks/${id}`);
      expect(replaces).toBe(sha256(`{"id":"${id}"}`));
      expect(await post(`tasks/${id}:edit_payload`, { payload: { new: true }, replaces })).toMatchObject({
        status: 204,
      });
      expect((await message(id)).payload.toString()).toBe('{"new":true}');
    });

    it('refuses an edit without the hash of the payload it replaces, or with another one', async () => {
      const edit = (more: object) => post('tasks/retry:edit_payload', { payload_text: '', ...more });
      expect(await edit({})).toMatchObject({ status: 400, text: expect.stringContaining('payload_sha256') });
      for (const seen of ['', '*', sha256(''), sha256('{"id"')]) {
        const { status, headers } = await edit({ replaces: seen });
        expect([seen, status, headers['x-asynq-error']]).toEqual([seen, 409, 'ASYNQ_TASK_STATE']);
      }
      expect((await message('retry')).payload.toString()).toBe('{"id":"retry"}');
      expect(await edit({ replaces: sha256('{"id":"retry"}').toUpperCase() })).toMatchObject({ status: 204 });
      expect((await message('retry')).payload.length).toBe(0);
    });

    it('offers no edit of a payload that is too large to be shown, and reveals nothing of it', async () => {
      const large = Buffer.alloc(1_048_567, 'x');
      await web.client.enqueue('large', large, { taskId: 'large' });
      const task = await web.get<{ actions: string[] }>('queues/default/tasks/large');
      expect(task).toMatchObject({ payload_base64: null, payload_sha256: null, payload_too_large: true });
      expect(task.actions).toEqual(['archive', 'delete', 'reschedule', 'clone']);
      expect(await post('tasks/large:edit_payload', { payload_text: '', replaces: sha256('') })).toMatchObject({
        status: 409,
      });
      expect((await message('large')).payload.equals(large)).toBe(true);
      // A sender who has downloaded the payload knows its hash.
      expect(await post('tasks/large:edit_payload', { payload_text: 'new', replaces: sha256(large) })).toMatchObject({
        status: 204,
      });
    });

    it('refuses an active task, and a body without a payload', async () => {
      const replaces = sha256('{"id":"active"}');
      expect(await post('tasks/active:edit_payload', { payload_text: 'x', replaces })).toMatchObject({ status: 409 });
      expect(await post('tasks/retry:edit_payload', {})).toMatchObject({ status: 400 });
      expect(await post('tasks/retry:edit_payload')).toMatchObject({ status: 400 });
    });

    it('encodes as the application does', async () => {
      const other = await startConsole({ access: 'act' }, { asynq: { codec: bytesCodec } });
      const make = (body: object) => other.api('POST', 'queues/default/tasks', { type: 'x', ...body });
      expect(await make({ payload: { a: 1 } })).toMatchObject({
        status: 400,
        text: expect.stringContaining('not bytes'),
      });
      expect(await make({ payload_text: 'bytes', task_id: 'x' })).toMatchObject({ status: 201 });
      const body = { payload: { a: 1 }, replaces: sha256('bytes') };
      const edit = await other.api('POST', 'queues/default/tasks/x:edit_payload', body);
      expect(edit).toMatchObject({ status: 400, text: expect.stringContaining('cannot be encoded') });
      await other.close();
    });
  });

  describe('download', () => {
    const get = (path: string, headers = {}) => web.api('GET', path, undefined, headers);

    it('sends every byte of a payload and a result, as a file that no browser shows or runs', async () => {
      const payload = Buffer.from('<script>alert(1)</script>\r\n');
      const id = '"; evil=1\r\n/../ü';
      await web.client.enqueue('bytes', payload, { taskId: id });
      const { status, text, headers } = await get(`queues/default/tasks/${encodeURIComponent(id)}/payload`);
      expect([status, text]).toEqual([200, payload.toString()]);
      expect(headers).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-disposition': 'attachment; filename="evil_1_-payload.txt"',
        'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'content-length': String(payload.length),
      });
      const result = await get('queues/default/tasks/completed/result');
      expect([result.text, result.headers['content-disposition']]).toEqual([
        '{"ok":true}',
        'attachment; filename="completed-result.json"',
      ]);
      const large = Buffer.alloc(3_000_000, Buffer.from([0, 255, 13, 10]));
      await web.client.enqueue('bytes', large, { taskId: 'large' });
      const reply = await fetch(`${web.origin}/asynq/api/queues/default/tasks/large/payload`);
      expect(Buffer.from(await reply.arrayBuffer()).equals(large)).toBe(true);
      expect(reply.headers.get('content-disposition')).toContain('large-payload.bin');
    });

    it('returns 404 for what does not exist', async () => {
      expect(await get('queues/default/tasks/retry/result')).toMatchObject({
        status: 404,
        text: expect.stringContaining('has no result'),
      });
      for (const path of [
        'queues/default/tasks/nobody/payload',
        'queues/nobody/tasks/retry/payload',
        'scheduler_entries/nobody/payload',
      ])
        expect((await get(path)).status).toBe(404);
    });

    it('reveals nothing of redacted tasks, not even whether there is a result', async () => {
      const other = await startConsole({ access: 'destroy', redact: [{ type: 'secret:', fields: ['card'] }] });
      await other.client.enqueue('secret:pay', { card: '4111' }, { taskId: 'x' });
      const entry = { id: 'e', spec: '@daily', taskType: 'secret:pay', taskPayload: Buffer.from('{"card":"4111"}') };
      const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
      await other.broker.scheduling.writeSchedulerEntries('s', [{ ...entry, enqueueOptions: [], ...times }], 60);
      for (const path of [
        'queues/default/tasks/x/payload',
        'queues/default/tasks/x/result',
        'scheduler_entries/e/payload',
      ]) {
        const { status, text } = await other.api('GET', path);
        expect([status, text]).toEqual([403, expect.stringContaining('is redacted')]);
      }
      const shown = (await other.api('GET', 'scheduler_entries/e')).text;
      expect(shown).not.toContain('4111');
      expect(JSON.parse(shown)).toMatchObject({ redacted: true, payload_base64: null });
      expect(await other.get('queues/default/tasks/x')).toMatchObject({ payload_sha256: null });
      await other.close();
    });

    it('shows the whole payload of a periodic task, which lists cut', async () => {
      const taskPayload = Buffer.from(JSON.stringify({ text: 'long\n'.repeat(100), id: 1 }, null, 2));
      const entry = { id: 'long', spec: '@daily', taskType: 'report', taskPayload, enqueueOptions: [] };
      const plain = { ...entry, id: 'cut', taskPayload: Buffer.from('x'.repeat(500)) };
      const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
      await broker.scheduling.writeSchedulerEntries(
        's',
        [
          { ...entry, ...times },
          { ...plain, ...times },
        ],
        60,
      );
      broker.clock.advance(2000);
      const { entries } = await web.get<{ entries: { id: string; payload_cut: boolean }[] }>('scheduler_entries');
      expect(entries.find(({ id }) => id === 'cut')).toMatchObject({ payload_cut: true, payload_size: 500 });
      const one = await web.get<{ payload_base64: string }>('scheduler_entries/long');
      expect(Buffer.from(one.payload_base64, 'base64').equals(taskPayload)).toBe(true);
      expect(one).toMatchObject({ payload_cut: false, payload_too_large: false, payload_decoded: { decoder: 'json' } });
      expect(await web.get('scheduler_entries/cut')).toMatchObject({
        task_payload: 'x'.repeat(500),
        payload_cut: false,
      });
      expect((await get('scheduler_entries/cut/payload')).text).toBe('x'.repeat(500));
      expect((await get('scheduler_entries/nobody')).status).toBe(404);
    });
  });

  test('durations by type are of the newest finished attempts in the event stream', async () => {
    broker.clock.advance(2_000);
    expect(await web.get('durations')).toEqual({ types: [], attempts: 0, from: null, to: null });
    const write = (type: string, duration: number, more: object = {}) => {
      const task = { id: 't', type, queue: 'low' };
      const details = { outcome: 'done', duration, retried: 0, maxRetry: 3, ...more };
      return encodeOccurrence({ names: ['finished'], task, details } as never, 'h:1');
    };
    const entries = [
      ...Array.from({ length: 100 }, (_, index) => write('quick', index + 1)),
      write('slow', 5_000, { outcome: 'retry' }),
      write('slow', 9_000, { outcome: 'requeued' }),
      write('slow', 9_000, { outcome: 'lost' }),
      encodeOccurrence(
        { names: ['started'], task: { id: 't', type: 'slow', queue: 'low' }, details: {} } as never,
        'h',
      ),
      Buffer.from('of another version'),
    ];
    await broker.events.appendEvents('events', entries, { most: 1_000 });
    broker.clock.advance(2_000);
    const found = { attempts: 101, from: expect.any(String), to: expect.any(String) };
    expect(await web.get('durations?queue=low')).toEqual({
      ...found,
      types: [
        { type: 'slow', queue: 'low', attempts: 1, failed: 1, p50_ms: 5_000, p95_ms: 5_000, longest_ms: 5_000 },
        { type: 'quick', queue: 'low', attempts: 100, failed: 0, p50_ms: 50, p95_ms: 95, longest_ms: 100 },
      ],
    });
    expect(await web.get('durations?queue=other')).toMatchObject({ types: [], attempts: 0 });
  });

  test('a queue has up to 90 days, and 10 unless more are asked for', async () => {
    const days = async (query: string) =>
      (await web.get<{ history: object[] }>(`queues/default${query}`)).history.length;
    expect([await days(''), await days('?days=90'), await days('?days=900')]).toEqual([10, 90, 90]);
  });

  test('a schedule is paused and resumed, unless a Go scheduler has it', async () => {
    const common = {
      spec: '@daily',
      taskType: 'report',
      taskPayload: Buffer.alloc(0),
      enqueueOptions: ['Queue("low")'],
    };
    const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
    const entries = ['ours', 'go'].map((id) => ({ id, ...common, ...times }));
    await broker.scheduling.writeSchedulerEntries('s', entries, 60);
    await broker.scheduling.openSchedule('low', 'ours', '@daily', 60);
    const change = (path: string) => web.api('POST', `scheduler_entries/${path}`);
    const pausedAt = async () => (await web.get<{ paused_at: string | null }>('scheduler_entries/ours')).paused_at;
    expect(await change('ours:pause')).toMatchObject({ status: 204 });
    expect(Date.parse((await pausedAt())!)).toBe(Math.floor(broker.clock.now() / 1000) * 1000);
    expect(await change('ours:pause')).toMatchObject({ status: 204 });
    expect(await change('ours:resume')).toMatchObject({ status: 204 });
    broker.clock.advance(2_000);
    expect(await pausedAt()).toBe(null);
    expect(await change('go:pause')).toMatchObject({ status: 404, text: expect.stringContaining('knows no pause') });
    expect(await change('nobody:pause')).toMatchObject({ status: 404 });
    expect(await web.get('scheduler_entries/go')).toMatchObject({ can_pause: false });
  });

  test('reschedule takes a time or a delay', async () => {
    const due = async (id: string) =>
      (await broker.inspection.getTask('default', id))!.nextProcessAt! - broker.clock.now() / 1000;
    expect(await post('tasks/archived:reschedule', { process_in_seconds: 90 })).toMatchObject({ status: 204 });
    expect(await post('tasks/scheduled:reschedule', { process_at: inSeconds(120) })).toMatchObject({ status: 204 });
    expect([await due('archived'), await due('scheduled')]).toEqual([90, 120]);
    expect(await post('tasks/active:reschedule', { process_in_seconds: 1 })).toMatchObject({ status: 409 });
    for (const body of [{}, { process_in_seconds: 1, process_at: inSeconds(1) }, { process_at: 'x' }])
      expect(await post('tasks/retry:reschedule', body)).toMatchObject({ status: 400 });
  });

  test('leaves a task alone that has left the state it was seen in', async () => {
    const ids = { task_ids: ['completed', 'scheduled', 'nobody'] };
    const stateOf = async (id: string) => (await broker.inspection.getTask('default', id))?.state;
    expect(await post('scheduled_tasks:batch_archive', { ...ids, state: 'scheduled' })).toMatchObject({
      text: '{"archived_ids":["scheduled"],"error_ids":["completed","nobody"]}\n',
    });
    const grouped = { task_ids: ['aggregating', 'retry'], state: 'aggregating' };
    expect(await post('groups/g/aggregating_tasks:batch_delete', grouped)).toMatchObject({
      text: '{"deleted_ids":["aggregating"],"failed_ids":["retry"]}\n',
    });
    const later = { process_in_seconds: 60, state: 'scheduled' };
    expect(await post('tasks/completed:reschedule', later)).toMatchObject({ status: 409 });
    expect(await post('tasks/retry:reschedule', { ...later, state: 'retry' })).toMatchObject({ status: 204 });
    expect([await stateOf('completed'), await stateOf('retry')]).toEqual(['completed', 'retry']);
    expect(await post('tasks/retry:reschedule', { ...later, state: 'active' })).toMatchObject({ status: 400 });
    expect(await post('retry_tasks:batch_run', { task_ids: [], state: 'active' })).toMatchObject({ status: 400 });
  });

  test('cancel takes a reason and an outcome', async () => {
    const how = { reason: 'withdrawn', outcome: 'archive' };
    expect(await post('active_tasks/active:cancel', how)).toMatchObject({ status: 204 });
    expect(await broker.cancellation.findCancellations(['active'])).toMatchObject([{ id: 'active', ...how }]);
    expect(await post('active_tasks:cancel_all', { reason: 'all' })).toMatchObject({ status: 204 });
    expect(await broker.cancellation.findCancellations(['active'])).toMatchObject([
      { reason: 'all', outcome: 'retry' },
    ]);
    const batch = await post('active_tasks:batch_cancel', { task_ids: ['active', ' '] });
    expect(batch).toMatchObject({ text: '{"canceled_ids":["active"],"error_ids":[" "]}\n' });
    expect(await post('tasks/active:cancel', { outcome: 'archived' })).toMatchObject({ status: 400 });
  });

  test('running an entry now keeps its options, group and headers', async () => {
    const entry = { id: 'a:b', spec: '@daily', taskType: 'report', taskPayload: Buffer.from('{}') };
    const enqueueOptions = [
      'Queue("low")',
      'MaxRetry(2)',
      'Group("g (1)")',
      'Header(["k","v"])',
      'TaskID("fixed")',
      'Odd',
    ];
    const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
    await broker.scheduling.writeSchedulerEntries('s', [{ ...entry, enqueueOptions, ...times }], 60);
    const { status, text } = await web.api('POST', `scheduler_entries/${encodeURIComponent('a:b')}:run`);
    const { id } = JSON.parse(text) as { id: string };
    expect([status, id]).not.toEqual([201, 'fixed']);
    expect(await message(id, 'low')).toMatchObject({ maxRetry: 2, groupKey: 'g (1)', headers: { k: 'v' } });
    expect(await web.api('POST', 'scheduler_entries/nobody:run')).toMatchObject({ status: 404 });
  });

  describe('live', () => {
    interface Live {
      sequence: number;
      samples: { t: string; queues: Record<string, { pending: number; processed_total: number }> }[];
    }
    const live = (since = 0) => web.get<Live>(`live?since=${since}`);

    it('samples once per period for all clients, and returns only new samples', async () => {
      broker.clock.advance(2000);
      const first = await live();
      expect(first.samples.at(-1)!.queues).toMatchObject({ default: { pending: 1, processed_total: 3 } });
      expect(await Promise.all([live(first.sequence), live(first.sequence)])).toMatchObject([
        { samples: [], sequence: first.sequence },
        { samples: [] },
      ]);
      await post('pending_tasks/pending:archive');
      broker.clock.advance(2000);
      const next = await live(first.sequence);
      expect(next.samples).toHaveLength(1);
      expect(next.samples[0]!.queues).toMatchObject({ default: { pending: 0 } });
      expect(Date.parse(next.samples[0]!.t)).toBe(next.sequence);
      expect((await live()).samples.length).toBeGreaterThanOrEqual(2);
    });

    it('drops samples older than a quarter of an hour', async () => {
      await live();
      broker.clock.advance(15 * 60_000);
      expect((await live()).samples).toHaveLength(1);
    });
  });

  test('reuses a reply until the next period, or until a change through this console', async () => {
    const size = async () => (await web.get<{ queues: { size: number }[] }>('queues')).queues[0]!.size;
    broker.clock.advance(2000);
    expect(await size()).toBe(7);
    await web.client.enqueue('x');
    expect(await size()).toBe(7);
    broker.clock.advance(2000);
    expect(await size()).toBe(8);
    await post('tasks', { type: 'x' });
    expect(await size()).toBe(9);
  });
});
