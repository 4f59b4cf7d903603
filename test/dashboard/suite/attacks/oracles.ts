import { decode as decodeMsgpack, encode } from '@msgpack/msgpack';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { request } from '../../../support/messages.js';
import { startConsole, type TestConsole } from '../../console.js';
import type { Shown } from '../payload-kit.js';

/* Attempts to make operations reveal redacted values. */

describe('what is redacted, attacked', () => {
  const SECRET = /hunter2|Bearer abc|4711/;
  const headers = { signature: 'Bearer abc', encoding: 'msgpack', trace: '1' };
  let web: TestConsole;
  const clone = (id: string, changes: object) => web.api('POST', `queues/default/tasks/${id}:clone`, changes);

  beforeAll(async () => {
    web = await startConsole({
      access: 'act',
      decoders: [
        {
          name: 'msgpack',
          decode: (bytes, task) => (task.headers['encoding'] === 'msgpack' ? decodeMsgpack(bytes) : undefined),
        },
        // A decoder that reads anything, but finds no fields.
        { name: 'raw', decode: (bytes) => ({ raw: bytes.toString('latin1') }) },
      ],
      redact: [
        { type: 'user:', fields: ['password'], headers: ['signature'] },
        { type: 'pin:', fields: ['pin'] },
      ],
    });
    const payload = Buffer.from('{"name":"Ann","password":"hunter2"}');
    await (web.broker as InMemoryBroker).producer.enqueue('default', [
      request({ id: 'user', type: 'user:created', payload, headers }),
      request({
        id: 'packed',
        type: 'user:created',
        payload: Buffer.from(encode({ name: 'Ann', password: 'hunter2' })),
        headers,
      }),
    ]);
    await web.client.enqueue('pin:check', { user: 1, pin: 4711 }, { taskId: 'pin', unique: '1h' });
  });
  afterAll(() => web.close());

  it.each([
    ['of a type that no rule is about', 'user', { type: 'x' }],
    ['of such a type, with a payload of its own, but the headers', 'user', { type: 'x', payload: 1 }],
    ['of such a type, with headers of its own, but the payload', 'user', { type: 'x', headers: {} }],
    [
      'of such a type, with its headers as they are shown',
      'user',
      { type: 'x', payload: 1, headers: { signature: '[redacted]' } },
    ],
    ['of another rule', 'user', { type: 'pin:check' }],
    ['that another decoder reads', 'packed', { headers: { trace: '1' } }],
  ])('cannot be had by a clone %s', async (_, id, changes) => {
    const reply = await clone(id, { ...changes, task_id: 'copy' });
    expect([reply.status, SECRET.exec(reply.text)]).toEqual([403, null]);
    expect(reply.text).toContain('would show its hidden parts');
    expect(await web.broker.inspection.getTask('default', 'copy')).toBeUndefined();
  });

  it('is cloned with other options, and with a header of its own beside those hidden', async () => {
    const shown = { signature: '[redacted]', encoding: 'msgpack', more: '2' };
    const reply = await clone('packed', { type: 'user:updated', queue: 'other', task_id: 'copied', headers: shown });
    expect([reply.status, SECRET.exec(reply.text)]).toEqual([201, null]);
    const { message } = (await web.broker.inspection.getTask('other', 'copied'))!;
    expect(message.headers).toEqual({ signature: 'Bearer abc', encoding: 'msgpack', more: '2' });
  });

  it('cannot be guessed by asking for locks', async () => {
    const guess = { type: 'pin:check', payload: { user: 1, pin: 4711 }, unique_seconds: 60 };
    for (const reply of [
      await web.api('POST', 'queues/default/tasks', guess),
      await clone('pin', { payload: guess.payload, unique_seconds: 60 }),
    ]) {
      expect([reply.status, reply.text]).toEqual([403, expect.stringContaining('unique_seconds would reveal')]);
    }
    expect(await web.api('POST', 'queues/default/tasks', { ...guess, unique_seconds: undefined })).toMatchObject({
      status: 201,
    });
  });

  it.each(['payload=hunter', 'payload=password%22%3A%22h', 'payload=%22pin%22%3A4', 'payload=hunter&type=user%3A'])(
    'cannot be guessed from the results of a search, nor from the number of entries it has scanned: %s',
    async (query) => {
      const search = async (criteria: string) => {
        const { tasks, damaged, scanned, next_cursor } = await web.get<Record<string, unknown>>(
          `queues/default/pending_tasks?scan=2&${criteria}`,
        );
        return { tasks, damaged, scanned, next_cursor };
      };
      expect(await search(query)).toEqual(await search('payload=nowhere'));
    },
  );

  it('is not read by a search: hidden bytes are compared with no query', async () => {
    const compared = vi.spyOn(Buffer.prototype, 'includes');
    onTestFinished(() => compared.mockRestore());
    await web.get('queues/default/pending_tasks?payload=hunter2');
    const { contexts, calls } = compared.mock;
    const ofHidden = calls.filter(([text], call) => text !== '' && SECRET.test(String(contexts[call])));
    expect(ofHidden).toEqual([]);
  });

  it('does not affect a clone: a given header is not compared with the hidden one', async () => {
    const replies = ['Bearer abc', 'Bearer abd'].map((signature) =>
      clone('user', { type: 'x', payload: 1, headers: { signature } }),
    );
    const [right, wrong] = await Promise.all(replies);
    expect([right!.status, wrong!.status]).toEqual([201, 201]);
    expect(await clone('user', { headers: { signature: '[redacted]', unknown: '[redacted]' } })).toMatchObject({
      status: 201,
    });
    const none = await clone('pin', { headers: { token: '[redacted]' } });
    expect([none.status, none.text]).toEqual([
      400,
      expect.stringContaining('the header "token" is given as [redacted]'),
    ]);
  });

  it.each([['pin:check'], ['plain']])(
    'is in no lock of %s, also where the application asks for one by default',
    async (type) => {
      const other = await startConsole(
        { access: 'act', redact: [{ type: 'pin:', fields: ['pin'] }] },
        { asynq: { defaults: { unique: '1h' } } },
      );
      onTestFinished(() => other.close());
      const enqueue = (payload: unknown) => other.api('POST', 'queues/default/tasks', { type, payload });
      const refused = [403, expect.stringContaining('unique_seconds would reveal')];
      for (const payload of [{ password: 'guess' }, { nested: '{"api_key":"guess"}' }]) {
        const { status, text } = await enqueue(payload);
        expect([status, text]).toEqual(refused);
      }
      expect((await enqueue({ a: 'visible' })).status).toBe(type === 'plain' ? 201 : 403);
    },
  );

  it('is not searched for in other texts: the reason of a cancel is shown whole or not at all', async () => {
    const shown: string[] = [];
    for (const errors of ['hide', 'show'] as const) {
      const other = await startConsole({ access: 'act', redact: [{ type: 'pin:', fields: ['pin'], errors }] });
      for (const reason of ['is it 4711?', 'is it 4712?']) {
        await other.client.enqueue('pin:check', { pin: '4711' }, { taskId: reason });
        const { tasks } = await other.broker.consumer.exchange('default', { settle: [], take: 1 });
        const settle = tasks.map(({ lease, message }) => ({
          kind: 'archive' as const,
          lease,
          message: { ...message, errorMsg: reason },
        }));
        await other.broker.consumer.exchange('default', { take: 0, settle });
        const { error_message } = await other.get<Shown>(`queues/default/tasks/${encodeURIComponent(reason)}`);
        shown.push(error_message);
      }
      await other.close();
    }
    expect(shown).toEqual(['[redacted]', '[redacted]', 'is it 4711?', 'is it 4712?']);
  });
});
