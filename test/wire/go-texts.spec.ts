import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { InvalidOptionError } from '../../lib/errors.js';
import { formatGoDuration, millisecondsOf, nanosecondsOf, parseGoDuration } from '../../lib/wire/go-duration.js';
import { goQuote, goUnquote } from '../../lib/wire/go-quote.js';
import { isBlank } from '../../lib/wire/go-space.js';
import { formatUnixDate, parseUnixDate } from '../../lib/wire/go-time.js';
import { anyText } from './any-text.js';
import { readGolden } from './golden.js';

/** How Go writes and reads durations, quoted strings, dates and space. */
interface Texts {
  Durations: [nanoseconds: string, text: string][];
  ParsedDurations: [text: string, result: string][];
  Quoted: [text: string, quoted: string][];
  ParsedDates: [text: string, rfc3339: string][];
  Space: number[];
}

const go = readGolden<Texts>('texts');

describe('durations', () => {
  it.each(go.Durations)('%s ns is written %s', (nanoseconds, text) => {
    expect(formatGoDuration(BigInt(nanoseconds))).toBe(text);
  });

  it.each(go.ParsedDurations)('%j is read as %s', (text, result) => {
    if (result.startsWith('error: ')) {
      expect(() => parseGoDuration(text)).toThrow(new InvalidOptionError(result.slice('error: '.length)));
    } else {
      expect(parseGoDuration(text)).toBe(BigInt(result));
    }
  });

  it('are read as they were written', () => {
    fc.assert(
      fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (nanoseconds) => {
        expect(parseGoDuration(formatGoDuration(nanoseconds))).toBe(nanoseconds);
      }),
    );
  });

  it('only fail with InvalidOptionError', () => {
    const text = fc
      .array(fc.constantFrom('1', '9', '.', '-', '+', 'h', 'ms', 'µs', 's', 'x', ' '))
      .map((p) => p.join(''));
    fc.assert(
      fc.property(text, (duration) => {
        try {
          expect(typeof parseGoDuration(duration)).toBe('bigint');
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidOptionError);
        }
      }),
    );
  });

  it.each<[number, bigint]>([
    [0, 0n],
    [1.5, 1_500_000n],
    [0.000015, 15n],
    [-1000, -1_000_000_000n],
    [3_153_600_000_000, 3_153_600_000_000_000_000n],
    [9_007_199_254.5, 9_007_199_254_500_000n],
  ])('%s ms are %s ns', (milliseconds, nanoseconds) => {
    expect(nanosecondsOf(milliseconds)).toBe(nanoseconds);
    expect(millisecondsOf(nanoseconds)).toBe(milliseconds);
  });
});

describe('quoted strings', () => {
  it.each(go.Quoted)('%j', (text, quoted) => {
    expect(goQuote(text)).toBe(quoted);
    expect(goUnquote(quoted)).toBe(text);
  });

  it('a lone surrogate is U+FFFD', () => {
    expect(goQuote('a\ud800b\udc00')).toBe('"a\ufffdb\ufffd"');
  });

  it('are read as they were written', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(goUnquote(goQuote(text))).toBe(text);
      }),
    );
  });
});

describe('dates', () => {
  it.each(go.ParsedDates)('%j is read as %s', (text, rfc3339) => {
    expect(parseUnixDate(text)?.toISOString().replace('.000', '') ?? '').toBe(rfc3339);
  });

  it('are read as they were written, without milliseconds', () => {
    const date = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(date, (written) => {
        const read = parseUnixDate(formatUnixDate(written))!;
        expect(read.getTime()).toBe(Math.floor(written.getTime() / 1000) * 1000);
      }),
    );
  });

  it('are written in another zone on request', () => {
    const instant = new Date('2024-01-02T03:04:05Z');
    expect(formatUnixDate(instant, 'America/New_York')).toBe('Mon Jan  1 22:04:05 EST 2024');
    expect(formatUnixDate(instant, 'Etc/UTC')).toBe(formatUnixDate(instant));
  });

  it('must be valid', () => {
    expect(() => formatUnixDate(new Date(NaN))).toThrow(InvalidOptionError);
  });
});

describe('isBlank', () => {
  it('knows exactly the white space that Go knows', () => {
    const ours: number[] = [];
    for (let point = 0; point <= 0x10ffff; point++) {
      if (isBlank(String.fromCodePoint(point))) ours.push(point);
    }
    expect(ours).toEqual(go.Space);
  });

  it.each<[string, boolean]>([
    ['', true],
    [' \t\r\n\v\f', true],
    ['\u0085\u00a0\u2003\u3000', true],
    ['\ufeff', false],
    ['\u200b', false],
    [' a ', false],
    ['\0', false],
  ])('%j: %s', (text, blank) => {
    expect(isBlank(text)).toBe(blank);
  });
});
