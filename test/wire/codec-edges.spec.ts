import { describe, expect, it } from 'vitest';
import { UndecodableMessageError } from '../../lib/errors.js';
import {
  decodeSchedulerEntry,
  decodeServerInfo,
  decodeTaskMessage,
  decodeWorkerInfo,
  encodeServerInfo,
  encodeTaskMessage,
} from '../../lib/wire/codec.js';
import { bytesOf, hexOf } from './golden.js';
import { zeroMessage } from '../support/messages.js';

const LARGEST_INT64 = 'ffffffffffffffff7f';

describe('integers beyond what a number holds', () => {
  it.each<[string, string, number]>([
    ['2^63 - 1', LARGEST_INT64, Number.MAX_SAFE_INTEGER],
    ['-2^63', '80808080808080808001', Number.MIN_SAFE_INTEGER],
    ['2^53', '8080808080808010', Number.MAX_SAFE_INTEGER],
  ])('%s reads as the bound and is written back exactly', (_, varint, bound) => {
    for (const [tag, name] of Object.entries({
      40: 'timeout',
      48: 'deadline',
      58: 'lastFailedAt',
      60: 'retention',
      68: 'completedAt',
    })) {
      const read = decodeTaskMessage(bytesOf(`0a0174${tag}${varint}`));
      expect(read).toMatchObject({ type: 't', [name]: bound });
      expect(hexOf(encodeTaskMessage({ ...read, retried: 1 }))).toBe(`0a01743001${tag}${varint}`);
    }
  });

  it('do not return after another value is set', () => {
    const read = decodeTaskMessage(bytesOf(`48${LARGEST_INT64} 58${LARGEST_INT64} 68${LARGEST_INT64} 8001 07`));
    const rewritten = encodeTaskMessage({ ...read, lastFailedAt: 5, completedAt: 0 });
    expect(hexOf(rewritten)).toBe(`580548${LARGEST_INT64}800107`);
  });

  it('do not multiply with every rewrite', () => {
    let stored = bytesOf(`48${LARGEST_INT64}`);
    for (let i = 0; i < 5; i++) stored = encodeTaskMessage({ ...decodeTaskMessage(stored), retried: i });
    expect(hexOf(stored)).toBe(`300448${LARGEST_INT64}`);
  });

  it('are replaced by a later value of the same field', () => {
    const read = decodeTaskMessage(bytesOf(`48${LARGEST_INT64} 4805`));
    expect(read.deadline).toBe(5);
    expect(hexOf(encodeTaskMessage(read))).toBe('4805');
  });
});

describe('numbers that a field cannot hold', () => {
  it.each<[string, Parameters<typeof zeroMessage>[0], string]>([
    ['a fraction is dropped', { maxRetry: 2.9, timeout: -2.9 }, '280240feffffffffffffffff01'],
    ['less than one is zero', { maxRetry: 0.5, timeout: 0.5, deadline: -0 }, ''],
    ['NaN is zero', { maxRetry: NaN, timeout: NaN }, ''],
    ['too much is clamped', { maxRetry: 2 ** 31, retention: Infinity }, '28ffffffff0760ffffffffffffff0f'],
    ['too little is clamped', { maxRetry: -Infinity }, '2880808080f8ffffffff01'],
  ])('%s', (_, fields, hex) => {
    expect(hexOf(encodeTaskMessage(zeroMessage(fields)))).toBe(hex);
  });
});

describe('text', () => {
  it.each<[string, string]>([
    ['a\ud800', 'a\ufffd'],
    ['\udc00a\ud800b'.repeat(50), '\ufffda\ufffdb'.repeat(50)],
    ['\ud83d\ude00\ud83d', '\u{1f600}\ufffd'],
  ])('%j is written with U+FFFD for lone surrogates', (broken, repaired) => {
    const message = zeroMessage({ type: broken, errorMsg: broken, headers: { [broken]: broken } });
    const stored = encodeTaskMessage(message);
    const read = decodeTaskMessage(stored);
    expect(read).toEqual(zeroMessage({ type: repaired, errorMsg: repaired, headers: { [repaired]: repaired } }));
    expect(hexOf(stored)).toBe(hexOf(encodeTaskMessage(read)));
  });

  it.each<[string, string]>([
    ['ff', '\ufffd'],
    ['eda080', '\ufffd\ufffd\ufffd'],
    ['c3', '\ufffd'],
    ['efbbbf61', '\ufeffa'],
  ])('the bytes %s read as %j', (hex, text) => {
    const prefix = (hex.length / 2).toString(16).padStart(2, '0');
    expect(decodeTaskMessage(bytesOf(`0a${prefix}${hex} 1a${prefix}${hex}`))).toMatchObject({ type: text, id: text });
  });

  it.each<[string, Parameters<typeof zeroMessage>[0], string]>([
    ['type', { type: 'other' }, '0a'],
    ['id', { id: 'other' }, '1a'],
    ['queue', { queue: 'other' }, '22'],
    ['errorMsg', { errorMsg: 'other' }, '3a'],
    ['uniqueKey', { uniqueKey: 'other' }, '52'],
    ['groupKey', { groupKey: 'other' }, '72'],
  ])(
    'in another encoding keeps its bytes when the message is written again, until %s is changed',
    (_, changed, tag) => {
      const raw = `${tag}0563616ee974`;
      const read = decodeTaskMessage(bytesOf(raw));
      expect(hexOf(encodeTaskMessage({ ...read, retried: 1 }))).toBe(`3001${raw}`);
      expect(hexOf(encodeTaskMessage({ ...read, ...changed }))).toBe(`${tag}056f74686572`);
      const replaced = `${tag}03efbfbd`;
      expect(decodeTaskMessage(bytesOf(replaced)).unknownFields).toBeUndefined();
    },
  );

  it('that recurs is read as it is', () => {
    // Same length, same first, middle and last byte: what a cache of names might mistake for each other.
    const types = ['a-b-c', 'a+b+c', 'a-b-c', 'aab+c', '\u00e9\u00e9a'];
    const stored = types.map((type) => Buffer.from(encodeTaskMessage(zeroMessage({ type }))));
    expect(stored.map((bytes) => decodeTaskMessage(bytes).type)).toEqual(types);
    expect(decodeTaskMessage(bytesOf('0a01ff')).type).toBe('\ufffd');
    expect(decodeTaskMessage(bytesOf('0a02c3bf')).type).toBe('\u00ff');
  });

  it('reads the same after any other text: bytes of Latin-1 are not their letters', () => {
    const high = Array.from({ length: 128 }, (_, low) => String.fromCharCode(low + 128));
    for (const text of high.flatMap((first) => high.map((second) => first + second))) {
      const latin = Buffer.concat([bytesOf('0a02'), Buffer.from(text, 'latin1')]);
      decodeTaskMessage(Buffer.from(encodeTaskMessage(zeroMessage({ type: text })))); // now a cache may know it
      if (decodeTaskMessage(latin).type === latin.toString('utf8', 2)) continue;
      expect.fail(`${hexOf(latin)} read as ${decodeTaskMessage(latin).type}`);
    }
  });

  it.each([42, 43, 127, 128, 16_383, 16_384, 100_000])('of %s characters has the right length', (length) => {
    for (const char of ['x', 'é', '日']) {
      const message = zeroMessage({ type: char.repeat(length), headers: { k: char.repeat(length) } });
      expect(decodeTaskMessage(encodeTaskMessage(message))).toEqual(message);
    }
  });
});

describe('payloads', () => {
  it('are views of the stored bytes, not copies', () => {
    const stored = Buffer.from(encodeTaskMessage(zeroMessage({ payload: Buffer.from('abc') })));
    const { payload } = decodeTaskMessage(stored);
    expect(Buffer.isBuffer(payload)).toBe(true);
    expect(payload.buffer).toBe(stored.buffer);
  });

  it('may be any bytes', () => {
    const payload = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    expect(decodeTaskMessage(encodeTaskMessage(zeroMessage({ payload }))).payload).toEqual(payload);
  });

  it('are empty when there are none', () => {
    expect(decodeTaskMessage(Buffer.alloc(0)).payload).toEqual(Buffer.alloc(0));
    expect(decodeTaskMessage(bytesOf('1200')).payload).toEqual(Buffer.alloc(0));
  });
});

describe('headers', () => {
  it('are undefined when there are none', () => {
    expect(decodeTaskMessage(encodeTaskMessage(zeroMessage({ headers: {} }))).headers).toBeUndefined();
  });

  it('may have the names of what every object has', () => {
    const headers = Object.fromEntries(
      ['__proto__', 'constructor', 'toString', 'hasOwnProperty'].map((key) => [key, key]),
    );
    const read = decodeTaskMessage(encodeTaskMessage(zeroMessage({ headers }))).headers!;
    expect(Object.entries(read)).toEqual(Object.entries(headers));
    expect(Object.getPrototypeOf(read)).toBeNull();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    const priorities = decodeServerInfo(bytesOf('2a0d 0a095f5f70726f746f5f5f 1005')).queues;
    expect(Object.entries(priorities)).toEqual([['__proto__', 5]]);
  });
});

describe('times', () => {
  it('are the epoch when absent, not never', () => {
    expect(decodeSchedulerEntry(Buffer.alloc(0))).toMatchObject({ nextEnqueueTime: 0, prevEnqueueTime: 0 });
    expect(decodeWorkerInfo(Buffer.alloc(0))).toMatchObject({ startTime: 0, deadline: 0 });
  });

  it.each<[string, number]>([
    [`08${LARGEST_INT64}`, 8.64e15],
    ['0880808080808080808001', -8.64e15],
    ['10ffffffffffffffffff01', -1],
    ['10c0843d', 1],
    ['0801 08fd0f', 2_045_000],
  ])('%s is a time that a Date can hold', (hex, milliseconds) => {
    const nested = bytesOf(hex);
    const { startTime } = decodeServerInfo(Buffer.concat([Buffer.of(0x42, nested.length), nested]));
    expect(startTime).toBe(milliseconds);
    expect(new Date(startTime).getTime()).toBe(milliseconds);
  });

  it('with a fraction of a millisecond keep it on the way out', () => {
    const info = { ...decodeServerInfo(Buffer.alloc(0)), startTime: 1.5 };
    expect(hexOf(encodeServerInfo(info))).toBe('420410e0c65b');
  });
});

describe('the error', () => {
  it('has the message, the position, the reason and the remedy', () => {
    const decode = () => decodeTaskMessage(Buffer.from('not a message'));
    expect(decode).toThrow(UndecodableMessageError);
    expect(decode).toThrow(
      'not a protobuf asynq.TaskMessage: it has field 13 with the impossible wire type 6 (byte 1 of 13); ' +
        'see what else writes to this key',
    );
  });

  it('shows no bytes, which may be of a payload', () => {
    expect(() => decodeTaskMessage(Buffer.alloc(1000, 0xff))).toThrow(/\(byte 0 of 1000\); see/);
  });
});
