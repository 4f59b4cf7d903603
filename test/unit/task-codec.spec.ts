import { describe, expect, it } from 'vitest';
import { bytesCodec, jsonCodec } from '../../lib/task/codec.js';

const text = (value: unknown) => jsonCodec.encode(value)?.toString();

describe('jsonCodec', () => {
  it('distinguishes undefined, null and empty bytes', () => {
    expect(jsonCodec.encode(undefined)).toBeUndefined();
    expect(text(null)).toBe('null');
    expect(jsonCodec.encode(Buffer.alloc(0))).toEqual(Buffer.alloc(0));
  });

  it.each<[unknown, string]>([
    [{ a: 1, b: undefined }, '{"a":1}'],
    ['text', '"text"'],
    [0, '0'],
    [false, 'false'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [{ toJSON: () => ({ kind: 'custom' }) }, '{"kind":"custom"}'],
    ['half \ud83d', '"half \\ud83d"'],
    [new Map([[1, 2]]), '{}'],
  ])('writes %o as JSON does', (value, json) => {
    expect(text(value)).toBe(json);
  });

  it('leaves bytes as they are, in any view', () => {
    const floats = new Float32Array([1.5, 2.5]);
    const inner = new Uint8Array([9, 1, 2, 3, 9]).subarray(1, 4);
    expect(jsonCodec.encode(Buffer.from([0xff, 0x00]))).toEqual(Buffer.from([0xff, 0x00]));
    expect(jsonCodec.encode(inner)).toEqual(Buffer.from([1, 2, 3]));
    expect(jsonCodec.encode(inner.buffer)).toEqual(Buffer.from([9, 1, 2, 3, 9]));
    expect(jsonCodec.encode(floats)).toEqual(Buffer.from(floats.buffer));
  });

  it('copies bytes, so that their owner may use the buffer again', () => {
    const scratch = Buffer.from('first');
    const encoded = jsonCodec.encode(scratch)!;
    scratch.fill(0);
    expect(encoded.toString()).toBe('first');
  });

  it('reports where the BigInt is', () => {
    expect(() => jsonCodec.encode({ user: { ids: [1, 5n] } })).toThrow(
      '$.user.ids[1] is a BigInt, which JSON cannot hold; convert it to a string or a number',
    );
    expect(() => jsonCodec.encode(5n)).toThrow('$ is a BigInt');
  });

  it('reports where the circle is, and accepts a value that appears twice', () => {
    const shared = { n: 1 };
    const circle: Record<string, unknown> = { first: shared, again: shared };
    expect(text(circle)).toBe('{"first":{"n":1},"again":{"n":1}}');
    circle.list = [{ back: circle }];
    expect(() => jsonCodec.encode(circle)).toThrow('$.list[0].back refers back to an object that holds it');
  });

  it.each<[unknown, string]>([
    [() => 1, 'a function has no JSON form'],
    [Promise.resolve({ a: 1 }), 'a promise has no JSON form; await it first'],
    [Symbol('s'), 'a symbol has no JSON form'],
    [{ toJSON: () => undefined }, 'an object whose toJSON() returns nothing has no JSON form'],
  ])('refuses a value without a JSON form: %o', (value, message) => {
    expect(() => jsonCodec.encode(value)).toThrow(message);
  });

  it('passes on what toJSON throws', () => {
    const failing = {
      toJSON() {
        throw new RangeError('not today');
      },
    };
    expect(() => jsonCodec.encode(failing)).toThrow('not today');
  });

  it('reads back what it wrote', () => {
    for (const value of [null, 0, '', [], { a: [1, { b: 'é😀' }] }]) {
      expect(jsonCodec.decode(jsonCodec.encode(value)!)).toEqual(value);
    }
    expect(jsonCodec.decode(Buffer.alloc(0))).toBeUndefined();
    expect(() => jsonCodec.decode(Buffer.from('{'))).toThrow(SyntaxError);
    for (const text of [
      'hunter2',
      '{"a":hunter2}',
      `["${'x'.repeat(50)}",hunter2,"${'y'.repeat(50)}"]`,
      '"hunter2',
      '{"a":1}, hunter2',
    ]) {
      const decode = () => jsonCodec.decode(Buffer.from(text));
      expect(decode).toThrow(SyntaxError);
      expect(decode).not.toThrow(/hunter/);
    }
  });
});

describe('bytesCodec', () => {
  it('passes bytes both ways and refuses the rest', () => {
    const bytes = Buffer.from([1, 2]);
    expect(bytesCodec.encode(bytes)).toEqual(bytes);
    expect(bytesCodec.decode(bytes)).toBe(bytes);
    expect(bytesCodec.encode(undefined)).toBeUndefined();
    expect(() => bytesCodec.encode('text')).toThrow('a value of type string is not bytes; give a Buffer or Uint8Array');
  });
});
