import { expect, test } from 'vitest';
import { FieldPaths, type FieldPosition } from '../../lib/redaction/field-paths.js';

/** Whether the value at the end of these steps is hidden; a number is a member of a list. */
function isHidden(paths: readonly string[], ...steps: (string | number)[]): boolean {
  let position: FieldPosition | undefined = new FieldPaths(paths).start;
  for (const step of steps) {
    position = typeof step === 'number' ? position?.member(step) : position?.at(step);
    if (position?.isHidden) return true;
  }
  return false;
}

test.each<[paths: string, hidden: (string | number)[][], seen: (string | number)[][]]>([
  ['password', [['password'], ['PassWord'], ['pass_word'], ['Pass-Word'], ['pa\u017f\u017fword']], [['a', 'password']]],
  [
    'a.b',
    [
      ['a', 'b'],
      ['a', 0, 'b'],
      [3, 'a', 1, 2, 'b'],
      ['a', 'b', 'c'],
    ],
    [['a'], ['b'], ['a', 'c', 'b']],
  ],
  [
    'a.*.b',
    [
      ['a', 'x', 'b'],
      ['a', 7, 'b'],
      ['a', 7, 8, 'b'],
    ],
    [['a', 'b']],
  ],
  [
    'a.0',
    [
      ['a', 0],
      ['a', '0'],
    ],
    [['a', 1]],
  ],
  ['**.b', [['b'], ['a', 'b'], [0, 'a', 1, 'b']], [['a'], ['a', 0]]],
  [
    'a.**.b.c',
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'b', 'c'],
      ['a', 'x', 0, 'b', 'y', 'b', 'c'],
    ],
    [['b', 'c']],
  ],
  [
    'a.**',
    [
      ['a', 'x'],
      ['a', 0],
    ],
    [['a'], ['b', 'x']],
  ],
  ['_', [['_']], [['a'], ['__']]],
])('the path %s', (path, hidden, seen) => {
  for (const steps of hidden) expect([steps, isHidden([path], ...steps)]).toEqual([steps, true]);
  for (const steps of seen) expect([steps, isHidden([path], ...steps)]).toEqual([steps, false]);
});

test('costs no more for deeply nested lists, whatever the paths', () => {
  const paths = new FieldPaths(['**.a.**.b.**.c.**.d', '**.token', '**.**.x', '*.**.*.y']);
  let position: FieldPosition | undefined = paths.start;
  for (let depth = 0; depth < 100_000; depth++) position = position?.member(depth % 7);
  expect(position?.at('token')?.isHidden).toBe(true);
});

test('caches a bounded number of positions, and follows the paths beyond it', () => {
  const paths = new FieldPaths([`**.a${'.*'.repeat(20)}.b`]);
  let position: FieldPosition | undefined = paths.start;
  let seed = 1;
  for (let step = 0; step < 50_000; step++) {
    seed = (seed * 48_271) % 2_147_483_647;
    position = position!.at(seed % 2 === 0 ? 'a' : 'c') ?? paths.start;
  }
  expect(paths.isCacheFull).toBe(true);
  for (const step of ['a', ...'x'.repeat(20), 'b']) position = position!.at(step);
  expect(position!.isHidden).toBe(true);
});

test('knows whether the last name of a path may be in a text, in any spelling', () => {
  const paths = new FieldPaths(['**.accessToken', 'a.b+c']);
  for (const text of ['{"ACCESS-token":', 'acce\u017fs_token', String.raw`{"\u0061ccess`, 'the B+C']) {
    expect([text, paths.mayBeIn(text)]).toEqual([text, true]);
  }
  expect(paths.mayBeIn('{"access":"token","bbc":1}')).toBe(false);
  expect(new FieldPaths(['a.*']).mayBeIn('')).toBe(true);
});
