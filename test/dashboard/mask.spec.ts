import { expect, test } from 'vitest';
import { mask } from '../../lib/dashboard/payload/mask.js';
import { plainJson } from '../../lib/dashboard/payload/plain-value.js';
import { FieldPaths } from '../../lib/redaction/field-paths.js';

const masked = (value: unknown, ...paths: string[]) => mask(value, new FieldPaths(paths).start);
const nested = (value: unknown, times: number): unknown =>
  times === 0 ? value : nested(JSON.stringify(value), times - 1);

test('masks JSON within texts, however deeply encoded', () => {
  const value = { body: nested({ a: [{ password: 'x' }], b: 1 }, 1), other: nested({ password: 'x' }, 4) };
  expect(masked(value, '**.password')).toEqual({
    body: '{"a":[{"password":"[redacted]"}],"b":1}',
    other: nested({ password: '[redacted]' }, 4),
  });
  expect(masked(value, 'body.a.password')).toEqual({ ...value, body: '{"a":[{"password":"[redacted]"}],"b":1}' });
});

test.each([
  '{"password":"x","password":{"a":1}}',
  '{"a":{"password":"x"},"a":1}',
  String.raw`{"a":{"p\u0061ssword":"x"},"a":1}`,
  `{"a":${'['.repeat(200)}{"password":"x"}${']'.repeat(200)}}`,
])('shows nothing that is not in the value a text stands for: %s', (text) => {
  expect(JSON.stringify(masked({ text }, '**.password'))).not.toMatch(/x"/);
});

test.each([{ a: '{"b": 1}' }, { a: '[not JSON]' }, { a: '"' }, null, 5])(
  'is the value itself where nothing is hidden: %j',
  (value) => expect(masked(value, '**.password')).toBe(value),
);

test('hides texts that look like JSON after too many failed attempts to parse', () => {
  const texts = Array.from({ length: 150 }, (_, index) => `[text ${index}`);
  const shown = masked(texts, '**.password') as string[];
  expect(shown.slice(0, 100)).toEqual(texts.slice(0, 100));
  expect(new Set(shown.slice(100))).toEqual(new Set(['[redacted]']));
});

test('takes `__proto__` for a name like any other', () => {
  const value: unknown = JSON.parse('{"__proto__":{"password":"x"},"a":1}');
  expect(JSON.stringify(masked(value, '**.password'))).toBe('{"__proto__":{"password":"[redacted]"},"a":1}');
});

test('copies deep values once, not once per level', () => {
  let reads = 0;
  const deepest = {
    number: Infinity,
    get counted() {
      reads++;
      return 1;
    },
  };
  const nestedIn = (value: object, levels: number): object =>
    levels === 0 ? value : nestedIn(levels % 2 ? [value] : { a: value }, levels - 1);
  expect(JSON.stringify(plainJson(nestedIn(deepest, 90)))).toContain('{"number":"Infinity","counted":1}');
  expect(reads).toBeLessThan(5);
});
