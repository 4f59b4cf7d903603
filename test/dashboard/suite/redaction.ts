import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../support/messages.js';
import { startConsole, type TestConsole } from '../console.js';
import { order, orders, type Shown } from './payload-kit.js';

/* Hidden parts of payloads and results. */

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
        { type: 'signed:', headers: ['signature'], errors: 'show' },
      ],
    });
    broker = web.broker as InMemoryBroker;
    const now = Math.floor(broker.clock.now() / 1000);
    const payload = Buffer.from(JSON.stringify({ ...secret, items, deep: [{ a: { token: 'tok-en' } }] }));
    const headers = { authorization: 'Bearer abc', trace: '1' };
    await broker.producer.enqueue('default', [
      request({ id: 'user', type: 'user:created', payload, headers, retention: 3600 }),
      request({ id: 'done', type: 'user:created', payload, headers, retention: 3600 }),
      request({ id: 'opaque', type: 'order:new', payload: Buffer.from([0xff, 1]) }),
      request({
        id: 'medical',
        type: 'medical:record',
        headers: { trace: '1' },
        payload: Buffer.from('{"diagnosis":"secret illness"}'),
      }),
      request({ id: 'order', type: 'order:new', payload: order('Zoë', 5) }),
      request({ id: 'plain', type: 'email', payload: Buffer.from('{"pin": "pin-three"}') }),
      request({ id: 'guess', type: 'email', payload, headers: { Set_Cookie: 'Bearer abc' } }),
      request({
        id: 'signed',
        type: 'signed:x',
        payload: Buffer.from('{ "a": 1 }'),
        headers: { Signature: 'Bearer abc' },
      }),
      request({ id: 'twice', type: 'user:created', payload: Buffer.from(JSON.stringify('{"password":"hunter2"}')) }),
    ]);
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 4 });
    const errors: Record<string, string> = {
      user: 'cannot log in hunter2: Bearer abc "pin-two" at 4111111111111111',
      opaque: 'illness of Zoë',
      medical: 'no bed for {"diagnosis":"secret illness"} nor a secret illness',
    };
    await broker.consumer.exchange('default', {
      take: 0,
      settle: tasks.map(({ lease, message }) =>
        lease.id === 'done'
          ? { kind: 'complete', lease, message, expiresAt: now + 3600, result: Buffer.from('{"token":"xyz","ok":1}') }
          : {
              kind: 'archive',
              lease,
              message: { ...message, errorMsg: errors[lease.id]!, lastFailedAt: now },
            },
      ),
    });
    const worker = { taskId: 'w', taskType: 'user:login', taskPayload: payload, queue: 'default' };
    const times = { startTime: broker.clock.now(), deadline: broker.clock.now() + 1000 };
    const server = { host: 'h', pid: 1, serverId: 's', strictPriority: false, status: 'active', concurrency: 1 };
    await broker.monitoring.writeServerState(
      { ...server, queues: { default: 1 }, startTime: 0, activeWorkerCount: 1 },
      [{ ...worker, ...times, host: 'h', pid: 1, serverId: 's' }],
      60,
    );
    await broker.scheduling.writeSchedulerEntries(
      'x',
      [
        {
          id: 'e',
          spec: '@daily',
          taskType: 'user:purge',
          taskPayload: payload,
          enqueueOptions: [
            'Header(["Authorization","Bearer abc"])',
            'Header("Authorization", Bearer abc)',
            'Queue("low")',
          ],
          nextEnqueueTime: 1,
          prevEnqueueTime: undefined,
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
          name: 'Ann',
          Password: '[redacted]',
          card: { number: '[redacted]', last4: 1111 },
          items: [
            { sku: 'a', pin: '[redacted]' },
            { sku: 'b', pin: '[redacted]' },
          ],
          deep: [{ a: { token: '[redacted]' } }],
        },
      },
    });
    expect(JSON.parse(shown.payload)).toEqual(shown.payload_decoded!.value);
    expect(await show('plain')).toMatchObject({ redacted: false, payload: '{"pin": "pin-three"}' });
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

  it('hides headers among the options of periodic tasks, also in one that cannot be read', async () => {
    const { entries } = await web.get<{ entries: { options: string[] }[] }>('scheduler_entries');
    expect(entries[0]!.options).toEqual([
      expect.stringMatching(/^Header\(.*\[redacted\]/),
      '[redacted]',
      'Queue("low")',
    ]);
  });

  it('hides fields with names of secrets by default, in every task, and leaves all other bytes', async () => {
    const guess = await show('guess');
    expect(guess).toMatchObject({ redacted: true, payload_base64: null, headers: { Set_Cookie: '[redacted]' } });
    expect(guess.payload_decoded!.value).toMatchObject({
      name: 'Ann',
      Password: '[redacted]',
      card: secret.card,
      deep: [{ a: { token: '[redacted]' } }],
    });
    expect(guess.actions).not.toContain('edit');
    const plain = await show('plain');
    expect(plain).toMatchObject({ payload_base64: Buffer.from('{"pin": "pin-three"}').toString('base64') });
    expect(plain.actions).toContain('edit');
  });

  it('hides headers alone, and leaves the payload unchanged', async () => {
    const signed = await show('signed');
    expect(signed).toMatchObject({ redacted: true, payload: '{ "a": 1 }', headers: { Signature: '[redacted]' } });
    expect(signed.payload_base64).not.toBeNull();
  });

  it('hides undecodable payloads completely, and with a whole payload also its keys and headers', async () => {
    expect(await show('opaque')).toMatchObject({ payload: '[redacted]', payload_decoded: null });
    const { payload, payload_base64, payload_decoded, headers } = await show('medical');
    expect([payload, payload_base64, payload_decoded]).toEqual(['[redacted]', null, null]);
    expect(headers).toEqual({ trace: '[redacted]' });
    expect(await show('order')).toMatchObject({ payload_decoded: { value: { customer: '[redacted]', cents: 5 } } });
  });

  it('hides errors completely, and shows the rest of results', async () => {
    for (const id of ['user', 'medical', 'opaque']) expect((await show(id)).error_message).toBe('[redacted]');
    const { failures } = await web.get<{ failures: { error: string; match: string }[] }>('queues/default/failures');
    expect(new Set(failures.map(({ error, match }) => error + match))).toEqual(new Set(['[redacted]']));
    expect(await show('done')).toMatchObject({
      result: '{"token":"[redacted]","ok":1}',
      result_decoded: { decoder: 'json' },
    });
  });

  it('is no oracle: a search reveals nothing that is not shown', async () => {
    const found = async (query: string) =>
      (await web.get<{ tasks: { id: string }[] }>(`queues/default/archived_tasks?${query}`)).tasks.map(({ id }) => id);
    expect(await found('payload=hunter')).toEqual([]);
    expect(await found('error=hunter')).toEqual([]);
    expect(await found('payload=Ann')).toEqual(['user']);
    expect(await found('payload=%22Password%22:%22%5Bredacted')).toEqual(['user']);
    expect(await found('error=cannot&type=user:')).toEqual([]);
    expect(await found('type=medical:')).toEqual(['medical']);
  });

  it('prevents edits, but a clone copies everything', async () => {
    expect((await show('user')).actions).not.toContain('edit');
    expect(await web.api('POST', 'queues/default/tasks/user:edit_payload', { payload: 1, replaces: '' })).toMatchObject(
      {
        status: 403,
      },
    );
    const made = await web.api('POST', 'queues/default/tasks/user:clone', { queue: 'copies', task_id: 'copy' });
    expect([made.status, SECRETS.exec(made.text)]).toEqual([201, null]);
    const [original, copy] = [
      await broker.inspection.getTask('default', 'user'),
      await broker.inspection.getTask('copies', 'copy'),
    ];
    expect(copy!.message.payload).toEqual(original!.message.payload);
    expect(copy!.message.headers).toEqual(original!.message.headers);
  });

  it('can be a function that returns paths, parts, or everything; hides everything when it fails', async () => {
    const answers: Record<string, unknown> = {
      some: ['a'],
      all: true,
      none: false,
      nothing: undefined,
      odd: 'a',
      parts: { fields: ['a'], headers: ['x'], errors: 'show' },
      mistyped: { field: ['a'] },
    };
    const redact = ({ type }: { type: string }) => {
      if (type === 'fails') throw new Error('no rule');
      if (type === 'late') return Promise.reject(new Error('no rule')) as never;
      return answers[type] as boolean;
    };
    const other = await startConsole({ access: 'view', redact });
    const seen: Record<string, unknown> = {};
    for (const type of ['fails', 'late', ...Object.keys(answers)]) {
      await other.client.enqueue(type, { a: 'first', b: 'second' }, { taskId: type, headers: { x: '1', y: '2' } });
      const { payload, headers } = await other.get<Shown>(`queues/default/tasks/${type}`);
      seen[type] = { payload, ...headers };
    }
    await other.close();
    const everything = { payload: '[redacted]', x: '[redacted]', y: '[redacted]' };
    const plain = { payload: '{"a":"first","b":"second"}', x: '1', y: '2' };
    const some = { ...plain, payload: '{"a":"[redacted]","b":"second"}' };
    expect(seen).toEqual({
      fails: everything,
      all: everything,
      odd: everything,
      late: everything,
      mistyped: everything,
      none: plain,
      nothing: plain,
      some,
      parts: { ...some, x: '[redacted]' },
    });
  });

  it('hides nothing if the default is off, and adopts the rules of the connection', async () => {
    const redact = [{ type: 'a', fields: ['a'] }];
    const other = await startConsole(
      { access: 'view', defaultRedaction: false, redact: [{ type: 'b', fields: ['b'] }] },
      { asynq: { redact } },
    );
    const shown: string[] = [];
    for (const type of ['a', 'b', 'c']) {
      await other.client.enqueue(type, { a: 1, b: 2, password: 3 }, { taskId: type });
      shown.push((await other.get<Shown>(`queues/default/tasks/${type}`)).payload);
    }
    await other.close();
    expect(shown).toEqual([
      '{"a":"[redacted]","b":2,"password":3}',
      '{"a":1,"b":"[redacted]","password":3}',
      '{"a":1,"b":2,"password":3}',
    ]);
  });
});
