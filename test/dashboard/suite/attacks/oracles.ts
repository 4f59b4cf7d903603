import { decode as decodeMsgpack, encode } from '@msgpack/msgpack';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../../support/messages.js';
import { startConsole, type TestConsole } from '../../console.js';

/* Operations that could be made to say what is redacted. */

describe('what is redacted, attacked', () => {
  const SECRET = /hunter2|Bearer abc|4711/;
  const headers = { authorization: 'Bearer abc', encoding: 'msgpack', trace: '1' };
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
        // Reads anything, but knows no fields.
        { name: 'raw', decode: (bytes) => ({ raw: bytes.toString('latin1') }) },
      ],
      redact: [
        { type: 'user:', fields: ['password'], headers: ['authorization'] },
        { type: 'pin:', fields: ['pin'] },
      ],
    });
    const payload = Buffer.from('{"name":"Ann","password":"hunter2"}');
    await (web.broker as InMemoryBroker).enqueue('default', [
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
      { type: 'x', headers: { authorization: '[redacted]' } },
    ],
    ['of another rule', 'user', { type: 'pin:check' }],
    ['that another decoder reads', 'packed', { headers: { trace: '1' } }],
  ])('cannot be had by a clone %s', async (_, id, changes) => {
    const answer = await clone(id, { ...changes, task_id: 'copy' });
    expect([answer.status, SECRET.exec(answer.text)]).toEqual([403, null]);
    expect(answer.text).toContain('would show what is hidden of it');
    expect(await web.broker.getTask('default', 'copy')).toBeUndefined();
  });

  it('is cloned with other options, and with a header of its own beside those hidden', async () => {
    const shown = { authorization: '[redacted]', encoding: 'msgpack', more: '2' };
    const answer = await clone('packed', { type: 'user:updated', queue: 'other', task_id: 'copy', headers: shown });
    expect([answer.status, SECRET.exec(answer.text)]).toEqual([201, null]);
    const { message } = (await web.broker.getTask('other', 'copy'))!;
    expect(message.headers).toEqual({ authorization: 'Bearer abc', encoding: 'msgpack', more: '2' });
  });

  it('cannot be guessed by asking for locks', async () => {
    const guess = { type: 'pin:check', payload: { user: 1, pin: 4711 }, unique_seconds: 60 };
    for (const answer of [
      await web.api('POST', 'queues/default/tasks', guess),
      await clone('pin', { payload: guess.payload, unique_seconds: 60 }),
    ]) {
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('unique_seconds would tell')]);
    }
    expect(await web.api('POST', 'queues/default/tasks', { ...guess, unique_seconds: undefined })).toMatchObject({
      status: 201,
    });
  });

  it.each(['payload=hunter', 'payload=password%22%3A%22h', 'payload=%22pin%22%3A4', 'payload=hunter&type=user%3A'])(
    'cannot be guessed by what a search answers, nor by how much it says to have looked at: %s',
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
});
