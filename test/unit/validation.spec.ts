import { describe, expect, it } from 'vitest';
import { InvalidOptionError, InvalidTaskError } from '../../lib/errors.js';
import {
  describe as show,
  isBlank,
  nearest,
  rejectUnknownKeys,
  requireFunction,
  requireInteger,
  requireNonBlank,
  requireObject,
  requirePositiveInteger,
} from '../../lib/validation.js';

describe('isBlank', () => {
  // Go's unicode.IsSpace, in full.
  const spaces = [0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000];
  for (let code = 0x2000; code <= 0x200a; code++) spaces.push(code);

  it('holds for exactly the white space of Go', () => {
    const found: number[] = [];
    for (let code = 0; code <= 0xffff; code++) if (isBlank(String.fromCharCode(code))) found.push(code);
    expect(found).toEqual(spaces.sort((a, b) => a - b));
  });

  it('holds for the empty text and for white space throughout', () => {
    expect(isBlank('')).toBe(true);
    expect(isBlank(' \t\u0085\u00a0')).toBe(true);
    expect(isBlank(' a')).toBe(false);
    expect(isBlank('\ufeff')).toBe(false);
    expect(isBlank('😀')).toBe(false);
  });
});

describe('nearest', () => {
  const known = ['queue', 'maxRetry', 'timeout', 'deadline', 'processIn', 'processAt', 'taskId', 'unique'];

  it.each([
    ['maxretry', 'maxRetry'],
    ['max_retry', 'maxRetry'],
    ['MaxRetries', 'maxRetry'],
    ['quue', 'queue'],
    ['qeueu', 'queue'],
    ['timeuot', 'timeout'],
    ['procesIn', 'processIn'],
    ['TaskID', 'taskId'],
    ['processOn', 'processIn'],
  ])('reads %s as %s', (name, meant) => {
    expect(nearest(name, known)).toBe(meant);
  });

  it('finds nothing when nothing is near', () => {
    expect(nearest('attempts', known)).toBeUndefined();
    expect(nearest('x', known)).toBeUndefined();
    expect(nearest('queue', [])).toBeUndefined();
  });
});

describe('rejectUnknownKeys', () => {
  it('names the nearest known key, or all', () => {
    const check = (options: object) =>
      rejectUnknownKeys(options, ['queue', 'timeout'], 'task option', InvalidTaskError);
    expect(() => check({ queue: 'a', timeout: undefined })).not.toThrow();
    expect(() => check({ quue: 'a' })).toThrow('unknown task option "quue"; did you mean "queue"?');
    expect(() => check({ colour: 1 })).toThrow('unknown task option "colour"; known are queue, timeout');
    expect(() => check({ colour: 1 })).toThrow(InvalidTaskError);
  });
});

describe('checks', () => {
  it('requireInteger holds to its bounds', () => {
    const check = (value: unknown, bounds?: { least?: number; most?: number }) =>
      requireInteger(value, 'limit', InvalidOptionError, bounds);
    expect(check(-3)).toBe(-3);
    expect(check(5, { least: 5, most: 5 })).toBe(5);
    expect(() => check(1.5)).toThrow('limit must be a whole number, not 1.5');
    expect(() => check(4, { least: 5 })).toThrow('limit must be a whole number of at least 5, not 4');
    expect(() => check(6, { least: 1, most: 5 })).toThrow('limit must be a whole number from 1 to 5, not 6');
    expect(() => check('5')).toThrow('not "5"');
    for (const wrong of [Number.NaN, Infinity, 2 ** 53, null, undefined, 5n]) {
      expect(() => check(wrong)).toThrow(InvalidOptionError);
    }
  });

  it('requirePositiveInteger starts at 1', () => {
    expect(requirePositiveInteger(1, 'concurrency', InvalidOptionError)).toBe(1);
    expect(() => requirePositiveInteger(0, 'concurrency', InvalidOptionError)).toThrow(
      'concurrency must be a whole number of at least 1, not 0',
    );
  });

  it('requireNonBlank refuses white space and other types', () => {
    expect(requireNonBlank(' a ', 'name', InvalidOptionError)).toBe(' a ');
    expect(() => requireNonBlank('\u0085', 'name', InvalidOptionError)).toThrow(
      'name must contain one or more characters',
    );
    expect(() => requireNonBlank(7, 'name', InvalidOptionError)).toThrow('name must be a string, not 7');
  });

  it('requireObject and requireFunction', () => {
    expect(requireObject({ a: 1 }, 'options', InvalidOptionError)).toEqual({ a: 1 });
    expect(() => requireObject([], 'options', InvalidOptionError)).toThrow('options must be an object, not an array');
    expect(() => requireObject(null, 'options', InvalidOptionError)).toThrow('options must be an object, not null');
    expect(() => requireFunction({}, 'isFailure', InvalidOptionError)).toThrow(
      'isFailure must be a function, not an object',
    );
    expect(() => requireFunction(() => 1, 'isFailure', InvalidOptionError)).not.toThrow();
  });
});

describe('describe', () => {
  it('shows any value on one short line', () => {
    const shown = [undefined, null, 5, 5n, 'a\nb', new Date(Number.NaN), new Date(0), [], {}, () => 1, Symbol('s')].map(
      show,
    );
    expect(shown).toEqual([
      'undefined',
      'null',
      '5',
      '5n',
      '"a\\nb"',
      'an invalid Date',
      '1970-01-01T00:00:00.000Z',
      'an array',
      'an object',
      'a function',
      'Symbol(s)',
    ]);
    expect(show('x'.repeat(500)).length).toBeLessThan(70);
  });
});
