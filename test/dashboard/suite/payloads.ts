import { encode, decode as decodeMsgpack } from '@msgpack/msgpack';
import type { PayloadDecoder } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../support/messages.js';
import { startConsole, type TestConsole } from '../console.js';

/* What becomes of payloads and results on their way out: decoded where somebody knows how, and without what is hidden. */

describe('payloads', () => {
  interface Shown {
    payload: string;
    payload_base64: string | null;
    payload_decoded: { decoder: string; value: unknown } | null;
    result: string;
    result_decoded: { decoder: string; value: unknown } | null;
    error_message: string;
    headers: Record<string, string>;
    redacted: boolean;
    actions: string[];
  }

  const msgpack: PayloadDecoder = {
    name: 'msgpack',
    decode: (bytes, { headers }) => (headers['encoding'] === 'msgpack' ? decodeMsgpack(bytes) : undefined),
  };

  /** message Order { string customer = 1; fixed32 cents = 2; } as a Go team would send it. */
  const orders: PayloadDecoder = {
    name: 'protobuf',
    decode(bytes, { type }) {
      if (!type.startsWith('order:')) return undefined;
      if (bytes[0] !== 0x0a) throw new Error('no order');
      const end = 2 + bytes[1]!;
      return { customer: bytes.toString('utf8', 2, end), cents: bytes.readUInt32LE(end + 1) };
    },
  };

  const order = (customer: string, cents: number): Buffer => {
    const name = Buffer.from(customer);
    const amount = Buffer.alloc(5);
    amount[0] = 0x15;
    amount.writeUInt32LE(cents, 1);
    return Buffer.concat([Buffer.from([0x0a, name.length]), name, amount]);
  };

  let web: TestConsole;
  const show = (id: string) => web.get<Shown>(`queues/default/tasks/${id}`);

  describe('decoders', () => {
    const make = (type: string, payload: unknown, taskId: string, headers = {}) =>
      web.client.enqueue(type, payload, { taskId, headers });

    beforeAll(async () => {
      web = await startConsole({ access: 'destroy', decoders: [orders, msgpack] });
    });
    afterAll(() => web.close());

    it('come after JSON, in their order', async () => {
      expect(await web.get('config')).toMatchObject({ decoders: ['json', 'protobuf', 'msgpack'] });
      await make('order:new', { a: 1 }, 'json');
      expect(await show('json')).toMatchObject({ payload_decoded: { decoder: 'json', value: { a: 1 } } });
    });

    it('read protobuf and msgpack', async () => {
      await make('order:new', order('Zoë', 1999), 'protobuf');
      expect(await show('protobuf')).toMatchObject({
        payload: 'non-printable bytes',
        payload_base64: order('Zoë', 1999).toString('base64'),
        payload_decoded: { decoder: 'protobuf', value: { customer: 'Zoë', cents: 1999 } },
      });
      const value = { big: 2n ** 63n, bytes: new Uint8Array([1, 2]), when: new Date(0), nan: NaN, list: [undefined] };
      const bytes = Buffer.from(encode(value, { useBigInt64: true }));
      await make('any', bytes, 'msgpack', { encoding: 'msgpack' });
      expect((await show('msgpack')).payload_decoded).toEqual({
        decoder: 'msgpack',
        value: {
          big: 9223372036854776000,
          bytes: 'base64:AQI=',
          when: '1970-01-01T00:00:00.000Z',
          nan: 'NaN',
          list: [null],
        },
      });
    });

    it('that throw are passed over, and what nobody reads is shown as it is', async () => {
      await make('order:new', Buffer.from([0xff, 0x00]), 'broken');
      expect(await show('broken')).toMatchObject({ payload: 'non-printable bytes', payload_decoded: null });
      await make('order:new', Buffer.from('plain text'), 'text');
      expect(await show('text')).toMatchObject({ payload: 'plain text', payload_decoded: null });
    });

    it('lose no digit of a long number', async () => {
      await make('any', Buffer.from('{"id":1234567890123456789,"text":"1234567890123456789","n":1.5}'), 'digits');
      const value = { id: '1234567890123456789', text: '1234567890123456789', n: 1.5 };
      expect((await show('digits')).payload_decoded).toEqual({ decoder: 'json', value });
    });

    it('are not asked about a payload that is too large', async () => {
      await make('any', 'x'.repeat(1_000_001), 'large');
      const shown = await show('large');
      expect(shown).toMatchObject({ payload_too_large: true, payload_base64: null, payload_decoded: null });
      expect(shown.payload).toBe(`"${'x'.repeat(199)}…`);
    });

    it('leave lists to text, cut by characters and not by halves of them', async () => {
      await web.client.enqueue('any', Buffer.from('😀'.repeat(201)), { taskId: 'cut', queue: 'cut' });
      const { tasks } = await web.get<{ tasks: object[] }>('queues/cut/pending_tasks');
      expect(tasks).toMatchObject([{ payload: `${'😀'.repeat(200)}…`, payload_cut: true, payload_size: 804 }]);
    });
  });

  describe('redaction', () => {
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
      expect((await show('user')).error_message).toBe(
        'cannot log in [redacted]: [redacted] "[redacted]" at [redacted]',
      );
      expect((await show('medical')).error_message).toBe('no bed for [redacted] nor a [redacted]');
      expect(await show('done')).toMatchObject({
        result: '{"token":"[redacted]","ok":1}',
        result_decoded: { decoder: 'json' },
      });
    });

    it('is no oracle: a search tells nothing that is not shown', async () => {
      const found = async (query: string) =>
        (await web.get<{ tasks: { id: string }[] }>(`queues/default/archived_tasks?${query}`)).tasks.map(
          ({ id }) => id,
        );
      expect(await found('payload=hunter')).toEqual([]);
      expect(await found('error=hunter')).toEqual([]);
      expect(await found('payload=%5Bredacted')).toEqual([]);
      expect(await found('payload=Ann')).toEqual(['user']);
      expect(await found('error=cannot&type=user:')).toEqual(['user']);
      expect(await found('type=medical:')).toEqual(['medical']);
    });

    it('cannot be edited around, but a clone gets all of it', async () => {
      expect((await show('user')).actions).not.toContain('edit');
      expect(await web.api('POST', 'queues/default/tasks/user:edit_payload', { payload: 1 })).toMatchObject({
        status: 403,
      });
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
});
