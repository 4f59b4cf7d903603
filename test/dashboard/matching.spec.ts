import { AsynqInspector } from 'nestjs-asynq';
import type { DashboardRequest } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { STATES_BY_ACTION } from '../../lib/task/actions.js';
import { TASK_STATES, type TaskState } from '../../lib/wire/states.js';
import { arrangeEveryState, arrangeHeld, arrangeWaiting } from '../support/every-state.js';
import { request } from '../support/messages.js';
import { startConsole, type TestConsole } from './console.js';

/* Actions of the console on all tasks that match. */

interface Counted {
  matching: number;
  scanned: number;
  next_cursor: string | null;
  counted_at: string;
}

interface Done {
  done: number;
  skipped: number;
  scanned: number;
  next_cursor: string | null;
}

const pathOf = (state: TaskState, queue = 'default'): string =>
  `queues/${queue}/${state === 'aggregating' ? 'groups/g/' : ''}${state}_tasks`;

describe('tasks that match', () => {
  let web: TestConsole;
  let broker: InMemoryBroker;
  let inspector: AsynqInspector;

  beforeAll(async () => {
    web = await startConsole({
      access: ({ headers }: DashboardRequest) => (headers['x-role'] as 'view' | undefined) ?? 'destroy',
      redact: [{ type: 'pin:', fields: ['pin'], errors: 'hide' }],
    });
    broker = web.broker as InMemoryBroker;
    inspector = new AsynqInspector(broker);
  });
  beforeEach(() => broker.clear());
  afterAll(() => web.close());

  const count = (query: string, state: TaskState = 'pending') => web.get<Counted>(`${pathOf(state)}:count?${query}`);

  async function act(action: string, body: object, state: TaskState = 'pending'): Promise<Done> {
    const { status, text } = await web.api('POST', `${pathOf(state)}:${action}_matching`, body);
    expect([status, text]).toEqual([200, expect.any(String)]);
    return JSON.parse(text) as Done;
  }

  const add = (tasks: readonly { id: string; type?: string; payload?: unknown }[]) =>
    broker.producer.enqueue(
      'default',
      tasks.map(({ id, type = 'x', payload = {} }) =>
        request({ id, type, payload: Buffer.from(JSON.stringify(payload)) }),
      ),
    );

  it.each(['run', 'archive', 'delete', 'cancel'] as const)(
    'are counted and done to in every state: %s',
    async (action) => {
      await arrangeHeld(broker);
      await arrangeEveryState(broker);
      await arrangeWaiting(broker);
      for (const state of TASK_STATES) {
        const reply = await web.api('POST', `${pathOf(state)}:${action}_matching`, { id: state, type: 'email:' });
        const states: readonly TaskState[] = STATES_BY_ACTION[action];
        if (!states.includes(state)) expect(reply.status, state).toBe(404);
      }
      broker.clear();
      for (const state of STATES_BY_ACTION[action]) {
        broker.clear();
        await arrangeHeld(broker);
        await arrangeEveryState(broker);
        await arrangeWaiting(broker);
        expect(await count(`id=${state}`, state), state).toMatchObject({ matching: 1, next_cursor: null });
        expect(await act(action, { id: 'none' }, state), state).toMatchObject({ done: 0, skipped: 0 });
        const before = await inspector.getTaskInfo('default', state);
        expect(before?.state).toBe(state);
        expect(await act(action, { id: state }, state), state).toMatchObject({
          done: 1,
          skipped: 0,
          next_cursor: null,
        });
        const after = await inspector.getTaskInfo('default', state);
        if (action !== 'cancel') expect(after?.state, state).not.toBe(state);
      }
    },
  );

  it('are found by type, payload, field, error and age, and by all that is given', async () => {
    await add([
      { id: 'a', type: 'email:a', payload: { order: { id: 17 }, note: 'x=1', 'a.b': true } },
      { id: 'b', type: 'email:b', payload: { order: { id: '17' } } },
      { id: 'c', type: 'sms:c', payload: { order: { id: 171 }, none: null } },
    ]);
    const found = async (query: string) => (await count(query)).matching;
    expect(await found('type=email:')).toBe(2);
    expect(await found('payload=171')).toBe(1);
    expect(await found('field=order.id%3D17')).toBe(2);
    expect(await found('field=order.id%3D17&type=email:b')).toBe(1);
    expect(await found('field=note%3Dx%3D1')).toBe(1);
    expect(await found('field=a.b%3Dtrue')).toBe(1);
    expect(await found('field=none%3Dnull')).toBe(1);
    expect(await found('field=order%3D[object%20Object]')).toBe(0);
    expect(await found('field=missing%3Dundefined')).toBe(0);
    expect(await found('error=refused')).toBe(0);
    broker.clock.advance(3_600_000);
    expect(await found('older_than=1h')).toBe(3);
    expect(await found('older_than=2h')).toBe(0);
    const { tasks } = await web.get<{ tasks: { id: string }[] }>(`${pathOf('pending')}?field=order.id%3D171`);
    expect(tasks.map(({ id }) => id)).toEqual(['c']);
  });

  it('are done part by part: each reply says where to go on', async () => {
    await add(
      Array.from({ length: 1_203 }, (_, index) => ({ id: `t${index}`, type: index % 3 === 0 ? 'even' : 'odd' })),
    );
    const parts: Done[] = [];
    for (let cursor: string | null | undefined; cursor !== null; cursor = parts.at(-1)!.next_cursor) {
      parts.push(await act('archive', { type: 'even', scan: 500, cursor }));
      if (parts.length === 1) expect((await inspector.getQueueInfo('default')).archived).toBe(167);
    }
    expect(parts.map(({ scanned }) => scanned)).toEqual([500, 500, 203]);
    expect(parts.reduce((sum, { done }) => sum + done, 0)).toBe(401);
    expect(await inspector.getQueueInfo('default')).toMatchObject({ archived: 401, pending: 802 });
    const counted: Counted[] = [await count('type=odd&scan=700')];
    counted.push(await count(`type=odd&scan=700&cursor=${counted[0]!.next_cursor}`));
    expect(counted.map(({ matching, next_cursor }) => [matching, next_cursor === null])).toEqual([
      [700, false],
      [102, true],
    ]);
  });

  it('are left alone if they came into the state after the count', async () => {
    await add([{ id: 'old' }]);
    const { counted_at: before } = await count('type=x');
    broker.clock.advance(1_000);
    await add([{ id: 'new' }]);
    expect(await act('delete', { type: 'x', before })).toMatchObject({ done: 1, skipped: 0, scanned: 2 });
    expect((await inspector.listTasks('default', 'pending')).tasks.map(({ id }) => id)).toEqual(['new']);
    await arrangeHeld(broker);
    await arrangeEveryState(broker);
    const later = new Date(broker.clock.now() - 5_000).toISOString();
    for (const state of ['retry', 'archived', 'completed'] as const) {
      expect(await act('delete', { id: state, before: later }, state), state).toMatchObject({ done: 0, scanned: 1 });
      expect(await act('delete', { id: state }, state), state).toMatchObject({ done: 1, scanned: 1 });
    }
  });

  it.each([
    ['nothing to compare with', {}],
    ['nothing to compare with', { type: '' }],
    ['before must be a time', { type: 'x', before: 'soon' }],
    ['field must be a name and a value', { field: 'order.id' }],
    ['field must be a name and a value', { field: '=17' }],
    ['is not a cursor of this list', { type: 'x', cursor: 'x' }],
    ['scan must be at least 1', { type: 'x', scan: 0 }],
    ['did you mean "older_than"', { olderthan: '1h' }],
    ['olderThan', { older_than: 'soon' }],
  ])('are refused before anything is changed: %s', async (text, body) => {
    await add([{ id: 'a' }]);
    const reply = await web.api('POST', `${pathOf('pending')}:delete_matching`, body);
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining(text)]);
    expect((await inspector.getQueueInfo('default')).pending).toBe(1);
  });

  it('need a queue, and the role of the action', async () => {
    await add([{ id: 'a' }]);
    const as = async (role: string, action: string, queue = 'default') =>
      (await web.api('POST', `${pathOf('pending', queue)}:${action}`, { type: 'x' }, { 'x-role': role })).status;
    expect(await as('view', 'archive_matching')).toBe(403);
    expect(await as('act', 'delete_matching')).toBe(403);
    expect(await as('destroy', 'archive_matching', 'nowhere')).toBe(404);
    expect((await web.api('GET', `${pathOf('pending', 'nowhere')}:count?type=x`)).status).toBe(404);
    expect((await web.api('GET', `${pathOf('pending')}:count`)).status).toBe(400);
    expect(await as('act', 'archive_matching')).toBe(200);
  });

  it.each(['payload', 'field', 'error'] as const)('tell nothing about what is hidden: %s', async (name) => {
    await add([{ id: 'a', type: 'pin:check', payload: { user: 1, pin: 4711 } }]);
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    const [{ lease, message }] = tasks as [(typeof tasks)[0]];
    const failed = { ...message, errorMsg: 'wrong pin 4711' };
    await broker.consumer.exchange('default', { take: 0, settle: [{ kind: 'archive', lease, message: failed }] });
    const guesses = { payload: ['4711', '4712'], field: ['pin=4711', 'pin=4712'], error: ['4711', '4712'] }[name];
    for (const guess of guesses) {
      const query = `${name}=${encodeURIComponent(guess)}`;
      expect(await count(query, 'archived')).toMatchObject({ matching: 0, scanned: 1, next_cursor: null });
      const expected = { done: 0, skipped: 0, scanned: 1, next_cursor: null };
      expect(await act('delete', { [name]: guess }, 'archived')).toEqual(expected);
    }
    expect(await count('field=user%3D1', 'archived')).toMatchObject({ matching: 1 });
  });

  it('do not fill the archive for those who may not delete', async () => {
    await add(Array.from({ length: 5_200 }, (_, index) => ({ id: `t${index}` })));
    const body = { type: 'x', scan: 10_000 };
    const reply = await web.api('POST', `${pathOf('pending')}:archive_matching`, body, { 'x-role': 'act' });
    expect([reply.status, reply.headers['x-asynq-error']]).toEqual([409, 'ASYNQ_ARCHIVE_FULL']);
    expect((await inspector.getQueueInfo('default')).archived).toBe(5_000);
  });
});
