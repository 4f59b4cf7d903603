import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../lib/duration.js';
import { InvalidOptionError, InvalidTaskError } from '../../lib/errors.js';

describe('parseDuration', () => {
  it.each<[number | string, number]>([
    [0, 0],
    [1500, 1500],
    [0.25, 0.25],
    [-5, -5],
    ['0', 0],
    ['+0', 0],
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['10m', 600_000],
    ['2d', 172_800_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['-90s', -90_000],
    ['+90s', 90_000],
    ['-1m30s', -90_000],
    ['1s1s', 2000],
    ['1us', 0.001],
    ['1\u00b5s', 0.001],
    ['1\u03bcs', 0.001],
    ['1ns', 0.000001],
    ['1h0m0.5s', 3_600_500],
    ['1.234567ms', 1.234567],
  ])('reads %j as %d ms', (value, milliseconds) => {
    expect(parseDuration(value, 'timeout')).toBe(milliseconds);
  });

  it.each(['1.005s', '2.3s', '4.35s', '1.1s', '8.03s', '16.1m'])('reads %s to the exact millisecond', (text) => {
    const milliseconds = parseDuration(text, 'timeout');
    expect(Number.isInteger(milliseconds)).toBe(true);
  });

  it.each<[unknown, string]>([
    ['', "timeout: \"\" is not a duration; give milliseconds as a number, or text such as '90s', '1h30m' or '500ms'"],
    ['90', 'timeout: duration "90" has no unit; give \'90s\' for seconds, or a number for milliseconds'],
    ['-1.5', 'has no unit'],
    ['soon', '"soon" is not a duration'],
    ['1 h', '"1 h" is not a duration'],
    ['1h ', '"1h " is not a duration'],
    ['--1h', 'is not a duration'],
    ['1h-5m', 'is not a duration'],
    ['.s', 'is not a duration'],
    ['1h30', 'is not a duration'],
    ['5min', 'timeout: unknown unit "min" in duration "5min"; did you mean \'5m\'?'],
    ['5parsecs', 'timeout: unknown unit "parsecs" in duration "5parsecs"; the units are ns, us, ms, s, m, h and d'],
    ['5H', 'unknown unit "H"'],
    [Number.NaN, 'timeout: NaN is not a duration'],
    [Infinity, 'timeout: Infinity is not a duration'],
    [-Infinity, 'timeout: -Infinity is not a duration'],
    ['9'.repeat(400) + 'h', 'is not a duration'],
    [null, 'timeout: null is not a duration'],
    [undefined, 'timeout: undefined is not a duration'],
    [new Date(0), 'timeout: object is not a duration'],
    [5n, 'timeout: bigint is not a duration'],
  ])('refuses %s', (value, text) => {
    expect(() => parseDuration(value, 'timeout')).toThrow(InvalidOptionError);
    expect(() => parseDuration(value, 'timeout')).toThrow(text);
  });

  it('refuses what a Go duration cannot represent', () => {
    expect(parseDuration('106751d', 'retention')).toBe(106_751 * 86_400_000);
    expect(() => parseDuration('106752d', 'retention')).toThrow('retention: 106752d is too long');
    expect(() => parseDuration(-1e13, 'retention')).toThrow('too long');
  });

  it('throws the class it is given', () => {
    expect(() => parseDuration('x', 'timeout', InvalidTaskError)).toThrow(InvalidTaskError);
  });
});
