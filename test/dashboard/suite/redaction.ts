import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../support/messages.js';
import { startConsole, type TestConsole } from '../console.js';
import { order, orders, type Shown } from './payload-kit.js';

/* What nobody gets to see of payloads and results. */

describe('redaction', () => {
  let web: TestConsole;
  const show = (id: string) => web.get<Shown>(`queues/default/tasks/${id}`);

  const secret = { name: 'Ann', Password: 'hunter2', card: { number: 4111111111111111, last4: 1111 } };
  const items = [
    { sku: 'a', pin: 'pin-one' },
    { sku: 'b', pin: 'pin-two' },
  ];
  let broker: InMemoryBroker;

  beforeAll(async () => {
    web = await startConsole({
      access: 'destroy',
      decoders: [orders],
      redact: [
        { type: 'user:', fields: ['password', 'card.number', 'items.pin', '**.token'], headers: ['Authorization'] },
        { type: 'order:', fields: ['customer'] },
        { type: 'medical:' },
      ],
    });
    broker = web.broker as InMemoryBroker;
    const now = Math.floor(broker.clock.now() / 1000);
    const payload = Buffer.from(JSON.stringify({ ...secret, items, deep: [{ a: { token: 'tok-en' } }] }));
    const headers = { authorization: 'Bearer abc', trace: '1' };
    await broker.enqueue('default', [
      request({ id: 'user', type: 'user:created', payload, headers, retention: 3600 }),
      request({ id: 'done', type: 'user:created', payload, headers, retention: 3600 }),
      request({ id: 'opaque', type: 'order:new', payload: Buffer.from([0xff, 1]) }),
      request({ id: 'medical', type: 'medical:record', payload: Buffer.from('{"diagnosis":"secret illness"}') }),
      request({ id: 'order', type: 'order:new', payload: order('Zoë', 5) }),
      request({ id: 'plain', type: 'email', payload }),
      request({ id: 'twice', type: 'user:created', payload: Buffer.from(JSON.stringify('{"password":"hunter2"}')) }),
    ]);
    const { tasks } = await broker.exchange('default', { settle: [], take: 4 });
    const errors: Record<string, string> = {
      user: 'cannot log in hunter2: Bearer abc "pin-two" at 4111111111111111',
      opaque: 'illness of Zoë',
      medical: 'no bed for {"diagnosis":"secret illness"} nor a secret illness',
    };
    await broker.exchange('default', {
      take: 0,
      settle: tasks.map(({ lease, message }) =>
        lease.id === 'done'
          ? { kind: 'complete', lease, message, expiresAt: now + 3600, result: Buffer.from('{"token":"xyz","ok":1}') }
          : {
              ...{ kind: 'archive', lease },
              message: { ...message, errorMsg: errors[lease.id]!, lastFailedAt: now },
            },
      ),
    });
    const worker = { taskId: 'w', taskType: 'user:login', taskPayload: payload, queue: 'default' };
    const times = { startTime: broker.clock.now(), deadline: broker.clock.now() + 1000 };
    const server = { host: 'h', pid: 1, serverId: 's', strictPriority: false, status: 'active', concurrency: 1 };
    await broker.writeServerState(
      { ...server, queues: { default: 1 }, startTime: 0, activeWorkerCount: 1 },
      [{ ...worker, ...times, host: 'h', pid: 1, serverId: 's' }],
      60,
    );
    await broker.writeSchedulerEntries(
      'x',
      [
        {
          ...{ id: 'e', spec: '@daily', taskType: 'user:purge', taskPayload: payload },
          enqueueOptions: ['Header(["Authorization","Bearer abc"])', 'Queue("low")'],
          ...{ nextEnqueueTime: 1, prevEnqueueTime: undefined },
        },
      ],
      60,
    );
  });
  afterAll(() => web.close());

  const SECRETS = /hunter2|4111111111111111|pin-one|pin-two|tok-en|xyz|Bearer abc|illness|Zoë|aHVudGVyMg/;

  it('hides fields wherever a payload is shown, and leaves the rest', async () => {
    const shown = await show('user');
    expect(shown).toMatchObject({
      redacted: true,
      payload_base64: null,
      headers: { authorization: '[redacted]', trace: '1' },
      payload_decoded: {
        value: {
          ...{ name: 'Ann', Password: '[redacted]', card: { number: '[redacted]', last4: 1111 } },
          items: [
            { sku: 'a', pin: '[redacted]' },
            { sku: 'b', pin: '[redacted]' },
          ],
          deep: [{ a: { token: '[redacted]' } }],
        },
      },
    });
    expect(JSON.parse(shown.payload)).toEqual(shown.payload_decoded!.value);
    expect(await show('plain')).toMatchObject({ redacted: false, payload: expect.stringContaining('hunter2') });
  });

  it.each([
    'queues/default/archived_tasks',
    'queues/default/completed_tasks',
    'queues/default/tasks/user',
    'queues/default/tasks/done',
    'queues/default/tasks/opaque',
    'queues/default/tasks/medical',
    'queues/default/tasks/order',
    'queues/default/tasks/twice',
    'servers',
    'scheduler_entries',
  ])('lets no secret out by %s', async (path) => {
    const { status, text } = await web.api('GET', path);
    expect([status, SECRETS.exec(text)]).toEqual([200, null]);
    expect(text).toContain('[redacted]');
  });

  it('hides what cannot be decoded, and the error of such a task, altogether', async () => {
    expect(await show('opaque')).toMatchObject({
      payload: '[redacted]',
      payload_decoded: null,
      error_message: '[redacted]',
    });
    expect(await show('medical')).toMatchObject({ payload: '[redacted]', payload_base64: null });
    expect(await show('order')).toMatchObject({ payload_decoded: { value: { customer: '[redacted]', cents: 5 } } });
  });

  it('keeps what an error says besides secrets', async () => {
    expect((await show('user')).error_message).toBe('cannot log in [redacted]: [redacted] "[redacted]" at [redacted]');
    expect((await show('medical')).error_message).toBe('no bed for [redacted] nor a [redacted]');
    expect(await show('done')).toMatchObject({
      result: '{"token":"[redacted]","ok":1}',
      result_decoded: { decoder: 'json' },
    });
  });

  it('is no oracle: a search tells nothing that is not shown', async () => {
    const found = async (query: string) =>
      (await web.get<{ tasks: { id: string }[] }>(`queues/default/archived_tasks?${query}`)).tasks.map(({ id }) => id);
    expect(await found('payload=hunter')).toEqual([]);
    expect(await found('error=hunter')).toEqual([]);
    expect(await found('payload=%5Bredacted')).toEqual([]);
    expect(await found('payload=Ann')).toEqual(['user']);
    expect(await found('error=cannot&type=user:')).toEqual(['user']);
    expect(await found('type=medical:')).toEqual(['medical']);
  });

  it('cannot be edited around, but a clone gets all of it', async () => {
    expect((await show('user')).actions).not.toContain('edit');
    expect(await web.api('POST', 'queues/default/tasks/user:edit_payload', { payload: 1, replaces: '' })).toMatchObject(
      {
        status: 403,
      },
    );
    const made = await web.api('POST', 'queues/default/tasks/user:clone', { queue: 'copies', task_id: 'copy' });
    expect([made.status, SECRETS.exec(made.text)]).toEqual([201, null]);
    const [original, copy] = [await broker.getTask('default', 'user'), await broker.getTask('copies', 'copy')];
    expect(copy!.message.payload).toEqual(original!.message.payload);
    expect(copy!.message.headers).toEqual(original!.message.headers);
  });

  it('can be a function, which hides everything when it fails', async () => {
    const redact = ({ type }: { type: string }) => {
      if (type === 'fails') throw new Error('no rule');
      return type === 'some' ? ['a'] : type === 'all';
    };
    const other = await startConsole({ access: 'view', redact });
    const payloads: Record<string, string> = {};
    for (const type of ['fails', 'some', 'all', 'none']) {
      await other.client.enqueue(type, { a: 'first', b: 'second' }, { taskId: type });
      payloads[type] = (await other.get<Shown>(`queues/default/tasks/${type}`)).payload;
    }
    await other.close();
    expect(payloads).toEqual({
      fails: '[redacted]',
      some: '{"a":"[redacted]","b":"second"}',
      all: '[redacted]',
      none: '{"a":"first","b":"second"}',
    });
  });
});
