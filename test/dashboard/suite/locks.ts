import { randomUUID } from 'node:crypto';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startConsole } from '../console.js';

/* The list of the locks of unique tasks: a name is made of the payload of the holder. */

interface LockRow {
  readonly name: string | null;
  readonly type: string | null;
  readonly by: string | null;
  readonly value: string | null;
  readonly redacted: boolean;
  readonly task_id: string;
  readonly state: string | null;
  readonly expires_at: string | null;
}

const open = async (dashboard: AsynqDashboardOptions) => {
  const web = await startConsole({ access: 'view', ...dashboard });
  onTestFinished(() => web.close());
  const locks = async () => (await web.get<{ locks: LockRow[] }>('queues/default/locks')).locks;
  return { web, client: web.client, broker: web.broker as InMemoryBroker, locks };
};

/** What is in the names of locks. */
const KEY = randomUUID();

describe('locks in the REST API', () => {
  it('are listed with what they compare, who holds them and until when', async () => {
    const { client, locks } = await open({ defaultRedaction: false });
    await client.enqueue('mail:send', { to: 'a' }, { taskId: 'm', unique: '1h' });
    await client.enqueue('order:charge', {}, { taskId: 'c', key: 'o:7', unique: { for: '1h', by: 'key' } });
    const { id: last } = await client.enqueue('order:sync', {}, { key: 'o:7', latest: true });
    await client.enqueue('order:mail', { a: 1 }, { taskId: 'f', unique: { for: '1h', by: ['a'] } });
    const found = await locks();
    const row = (id: string) => found.find(({ task_id }) => task_id === id);
    const seen = { redacted: false, state: 'pending', expires_at: expect.stringMatching(/^20/) as string };
    const hash = expect.stringMatching(/^[\da-f]{32}$/) as string;
    const name = expect.stringMatching(/^mail:send:[\da-f]{32}$/) as string;
    expect(row('m')).toEqual({ ...seen, name, type: 'mail:send', by: 'payload', value: hash, task_id: 'm' });
    expect(row('c')).toEqual({
      ...seen,
      name: 'order:charge:o%3A7:key',
      type: 'order:charge',
      by: 'key',
      value: 'o:7',
      task_id: 'c',
    });
    expect(row(last)).toMatchObject({ name: 'order:sync:o%3A7:last', by: 'last', value: 'o:7' });
    expect(row('f')).toMatchObject({ by: 'fields', value: expect.stringMatching(/^a,/) as string, task_id: 'f' });
  });

  it('show the key of a task that is gone only where nothing of such a task may be hidden', async () => {
    for (const [defaultRedaction, value] of [
      [true, null],
      [false, KEY],
    ] as const) {
      const { web, client, broker, locks } = await open({ defaultRedaction });
      await client.enqueue('order:alert', {}, { taskId: 'gone', key: KEY, throttle: '1m' });
      expect(await locks()).toMatchObject([{ value: KEY, redacted: false, state: 'pending' }]);
      const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
      const settle = tasks.map(({ lease }) => ({ kind: 'done' as const, lease, uniqueKey: '' }));
      await broker.consumer.exchange('default', { settle, take: 0 });
      broker.clock.advance(5_000); // the reply is cached
      expect(await locks()).toMatchObject([
        { type: 'order:alert', by: 'key', value, redacted: defaultRedaction, state: null },
      ]);
      expect((await web.api('GET', 'queues/default/locks')).text.includes(KEY)).toBe(value !== null);
    }
  });

  it.each([
    ['by a rule about all of it', { redact: [{ type: 'user:' }] }],
    ['by a rule about a field', { redact: [{ type: 'user:', fields: ['email'] }] }],
    ['by a function', { redact: ({ type }: { type: string }) => type.startsWith('user:key:') }],
    ['by a common name of secrets', { redact: [] }],
  ])('contain neither key nor hash of a payload with a part that is hidden %s', async (_, options) => {
    const { web, client, broker } = await open(options);
    const payload = { email: KEY, token: KEY };
    const type = 'user:key:welcome'; // which looks like the name of a lock
    await client.enqueue(type, payload, { taskId: 'key', key: KEY, unique: { for: '1h', by: 'key' } });
    await client.enqueue(type, payload, { taskId: 'payload', unique: '1h' });
    await client.enqueue(type, payload, { taskId: 'fields', unique: { for: '1h', by: ['email'] } });
    await client.enqueue(type, payload, { taskId: 'throttled', key: `${KEY}2`, throttle: '1h' });
    for (const gone of [false, true]) {
      const { text } = await web.api('GET', 'queues/default/locks');
      const { locks } = JSON.parse(text) as { locks: LockRow[] };
      expect(locks.map(({ name, value, redacted }) => [name, value, redacted])).toEqual(
        locks.map(() => [null, null, true]),
      );
      expect(locks).toHaveLength(gone ? 1 : 4);
      expect(text).not.toContain(KEY);
      const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 4 });
      const settle = tasks.map(({ lease, message }) => ({
        kind: 'done' as const,
        lease,
        uniqueKey: message.uniqueKey,
      }));
      await broker.consumer.exchange('default', { settle, take: 0 });
      broker.clock.advance(5_000);
    }
  });

  it('are freed by name, if the task that was seen holds them, by those who may destroy', async () => {
    const { web, client, broker } = await open({ access: ({ headers }) => headers['x-role'] as 'act' });
    const as = (role: string) => ({ 'x-role': role });
    const list = async () => (await web.get<{ locks: LockRow[] }>('queues/default/locks', as('view'))).locks;
    const order = { key: 'o-7', unique: { for: '1h', by: 'key' } } as const;
    await client.enqueue('order:charge', {}, { taskId: 'c', ...order });
    const [{ name }] = (await list()) as [LockRow];
    const free = (id: string, role = 'destroy', body: unknown = { name }, queue = 'default') =>
      web.api('POST', `queues/${queue}/tasks/${id}:release_lock`, body, as(role));
    expect(await free('c', 'act')).toMatchObject({ status: 403 });
    expect(await free('c', 'destroy', {})).toMatchObject({ status: 400 });
    expect(await free('c', 'destroy', { name: ' ' })).toMatchObject({ status: 400 });
    expect(await free('c', 'destroy', { name }, 'nowhere')).toMatchObject({ status: 404 });
    expect(await free('other', 'destroy')).toMatchObject({ status: 403 }); // a task that is gone may be redacted
    await client.enqueue('order:charge', {}, { taskId: 'other' });
    expect(await free('other')).toMatchObject({ status: 409, text: expect.stringContaining('"other"') as string });
    expect((await broker.uniqueness.list('default')).locks).toHaveLength(1);
    expect(await free('c')).toMatchObject({ status: 204 });
    expect(await free('c')).toMatchObject({ status: 409 });
    await client.enqueue('order:charge', {}, { taskId: 'd', ...order });
    broker.clock.advance(5_000);
    expect(await list()).toMatchObject([{ task_id: 'd' }]);
  });

  it('of a task that is gone are freed where nothing of such a task may be hidden', async () => {
    const { web, client, broker, locks } = await open({ access: 'destroy', defaultRedaction: false });
    await client.enqueue('order:alert', {}, { taskId: 'gone', key: KEY, throttle: '1m' });
    await broker.consumer.exchange('default', { settle: [], take: 1 }).then(({ tasks: [task] }) =>
      broker.consumer.exchange('default', {
        settle: [{ kind: 'done', lease: task!.lease, uniqueKey: '' }],
        take: 0,
      }),
    );
    const [{ name, state }] = (await locks()) as [LockRow];
    expect(state).toBeNull();
    expect(await web.api('POST', 'queues/default/tasks/gone:release_lock', { name })).toMatchObject({ status: 204 });
    expect((await broker.uniqueness.list('default')).locks).toEqual([]);
  });

  it('are not named when another type of task has the id of a holder that is gone', async () => {
    const { web, client, broker, locks } = await open({ access: 'destroy', redact: [{ type: 'user:' }] });
    await client.enqueue('user:mail', {}, { taskId: 'gone', key: KEY, throttle: '1h' });
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    const settle = tasks.map(({ lease }) => ({ kind: 'done' as const, lease, uniqueKey: '' }));
    await broker.consumer.exchange('default', { settle, take: 0 });
    await client.enqueue('visible', {}, { taskId: 'gone' });
    expect(await locks()).toMatchObject([{ name: null, by: null, value: null, task_id: 'gone' }]);
    const guess = { name: `user:mail:${KEY}:key` };
    expect(await web.api('POST', 'queues/default/tasks/gone:release_lock', guess)).toMatchObject({ status: 403 });
    expect((await broker.uniqueness.list('default')).locks).toHaveLength(1);
  });

  it('of hidden payloads are freed by nobody, and right and wrong guesses have one reply', async () => {
    const { web, client, broker } = await open({ access: 'destroy', redact: [{ type: 'user:', fields: ['email'] }] });
    const unique = { for: '1h', by: 'key' } as const;
    await client.enqueue('user:mail', { email: KEY }, { taskId: 'u', key: KEY, unique });
    const replies = await Promise.all(
      [KEY, 'wrong'].map((key) =>
        web.api('POST', 'queues/default/tasks/u:release_lock', { name: `user:mail:${key}:key` }),
      ),
    );
    expect(replies[0]).toMatchObject({ status: 403, text: expect.stringContaining('lock release') as string });
    expect(replies[1]!.text).toBe(replies[0]!.text);
    expect((await broker.uniqueness.list('default')).locks).toHaveLength(1);
  });

  it('are not shown to those who may not see the queue, nor by a wrong cursor', async () => {
    const { web, client } = await open({ access: { queues: { default: 'view', hidden: 'none' } } });
    await client.enqueue('x', {}, { queue: 'hidden', unique: '1h' });
    await client.enqueue('x', {}, { unique: '1h' });
    expect(await web.api('GET', 'queues/hidden/locks')).toMatchObject({ status: 404 });
    expect(await web.api('GET', 'queues/nowhere/locks')).toMatchObject({ status: 404 });
    expect(await web.api('GET', 'queues/default/locks?cursor=x')).toMatchObject({
      status: 400,
      text: expect.stringContaining('cursor "x" is not one of a list of locks') as string,
    });
  });
});
