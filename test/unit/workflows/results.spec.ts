import { expect, it } from 'vitest';
import { decodeResult } from '../../../lib/task/codec.js';
import { decodeResults } from '../../../lib/workflows/outcome.js';

it('decodes a result that is text as it does its bytes', () => {
  const values = [{ n: 1 }, 'Straße \u{1f680} \ud800', null, 0, [], ''];
  for (const value of values) {
    const text = JSON.stringify(value);
    expect(decodeResult(text)).toEqual(value);
    expect(decodeResult(Buffer.from(text))).toEqual(value);
  }
  expect(decodeResult(undefined)).toBeUndefined();
  expect(decodeResult('no JSON')).toEqual(Buffer.from('no JSON'));
  expect(decodeResult(Buffer.from('no JSON'))).toEqual(Buffer.from('no JSON'));
});

it('gives each result a property of its own, in order', () => {
  const names = ['b', '__proto__', 'constructor', 'a'];
  const results = decodeResults(new Map(names.map((name, n) => [name, `${n}`])));
  expect(Object.entries(results)).toEqual(names.map((name, n) => [name, n]));
  expect(Object.getPrototypeOf(results)).toBe(Object.prototype);
});
