import { encode, decode as decodeMsgpack } from '@msgpack/msgpack';
import type { PayloadDecoder } from 'nestjs-asynq/dashboard';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startConsole, type TestConsole } from '../console.js';
import { order, orders, type Shown } from './payload-kit.js';

/* Payloads and results that a decoder can read. */

describe('decoders', () => {
  const msgpack: PayloadDecoder = {
    name: 'msgpack',
    decode: (bytes, { headers }) => (headers['encoding'] === 'msgpack' ? decodeMsgpack(bytes) : undefined),
  };

  let web: TestConsole;
  const show = (id: string) => web.get<Shown>(`queues/default/tasks/${id}`);

  const make = (type: string, payload: unknown, taskId: string, headers = {}) =>
    web.client.enqueue(type, payload, { taskId, headers });

  beforeAll(async () => {
    web = await startConsole({ access: 'destroy', decoders: [orders, msgpack] });
  });
  afterAll(() => web.close());

  it('are tried after JSON, in their order', async () => {
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

  it('that throw are skipped, and undecoded bytes are shown as they are', async () => {
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

  it('are not called for a payload that is too large', async () => {
    await make('any', 'x'.repeat(1_000_001), 'large');
    const shown = await show('large');
    expect(shown).toMatchObject({ payload_too_large: true, payload_base64: null, payload_decoded: null });
    expect(shown.payload).toBe(`"${'x'.repeat(199)}…`);
  });

  it('are not used in lists, whose text is cut between characters', async () => {
    await web.client.enqueue('any', Buffer.from('😀'.repeat(201)), { taskId: 'cut', queue: 'cut' });
    const { tasks } = await web.get<{ tasks: object[] }>('queues/cut/pending_tasks');
    expect(tasks).toMatchObject([{ payload: `${'😀'.repeat(200)}…`, payload_cut: true, payload_size: 804 }]);
  });
});
