import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { InvalidOptionError } from '../../lib/errors.js';
import { formatUnixDate } from '../../lib/wire/go-time.js';
import { formatOption, parseOption, type EnqueueOption } from '../../lib/wire/options.js';
import { GO_STATE_NUMBERS, STORED_STATES } from '../../lib/wire/states.js';
import { anyText } from './any-text.js';
import { readGolden } from './golden.js';

const go = readGolden<{ Written: Record<string, string>; Read: { Text: string; Read: string }[] }>('option-strings');
const { Headers: goHeaders } = readGolden<{ Headers: [pair: [string, string], encoded: string][] }>('texts');

const instant = new Date('2024-01-02T03:04:05.678Z');

const written: Record<string, EnqueueOption> = {
  Deadline: { name: 'Deadline', value: instant },
  'Deadline never': { name: 'Deadline', value: new Date('0001-01-01T00:00:00Z') },
  'Group g': { name: 'Group', value: 'g' },
  'MaxRetry -3': { name: 'MaxRetry', value: -3 },
  'MaxRetry 3': { name: 'MaxRetry', value: 3 },
  ProcessAt: { name: 'ProcessAt', value: instant },
  'ProcessIn 1m': { name: 'ProcessIn', value: 60_000 },
  'Queue default': { name: 'Queue', value: 'default' },
  'Queue odd': { name: 'Queue', value: 'a"b\n é \0 \u2028' },
  'Retention 24h': { name: 'Retention', value: 86_400_000 },
  'TaskID x': { name: 'TaskID', value: 'x' },
  'Timeout -1s': { name: 'Timeout', value: -1000 },
  'Timeout 0': { name: 'Timeout', value: 0 },
  'Timeout 1.5s': { name: 'Timeout', value: 1500 },
  'Timeout 15ns': { name: 'Timeout', value: 0.000015 },
  'Timeout 36h': { name: 'Timeout', value: 36 * 3_600_000 },
  'Timeout 90s': { name: 'Timeout', value: 90_000 },
  'Unique 1h': { name: 'Unique', value: 3_600_000 },
};

describe('formatOption', () => {
  it.each(Object.entries(written))('%s is written as Go writes it', (name, option) => {
    expect(formatOption(option)).toBe(go.Written[name]);
  });

  it('is tested with all captured options', () => {
    const { 'Deadline New York': newYork, ...rest } = go.Written;
    expect(Object.keys(written).sort()).toEqual(Object.keys(rest).sort());
    expect(`Deadline(${formatUnixDate(instant, 'America/New_York')})`).toBe(newYork);
  });

  it.each(goHeaders)('Header %j', (pair, encoded) => {
    expect(formatOption({ name: 'Header', value: pair })).toBe(`Header(${encoded})`);
  });

  it('Header of appendix A.4', () => {
    expect(formatOption({ name: 'Header', value: ['k<', 'v"&'] })).toBe('Header(["k\\u003c","v\\"\\u0026"])');
  });

  it('writes no lone surrogate', () => {
    expect(formatOption({ name: 'Header', value: ['\ud800', 'v'] })).toBe('Header(["\ufffd","v"])');
  });

  it('refuses an invalid date', () => {
    expect(() => formatOption({ name: 'ProcessAt', value: new Date(NaN) })).toThrow(InvalidOptionError);
  });
});

describe('parseOption', () => {
  it.each(go.Read)('$Text is read as Go reads it', ({ Text, Read }) => {
    const option = parseOption(Text);
    const stillInItsZone = Read.replace('Mon Jan  1 22:04:05 EST', 'Mon Jan  1 22:04:05 UTC');
    expect(option ? formatOption(option) : '').toBe(stillInItsZone.replaceAll('\\xff', '\ufffd'));
  });

  it('ignores a text on which Go panics', () => {
    expect(parseOption('Queue')).toBeUndefined();
    expect(parseOption('')).toBeUndefined();
  });

  it.each<[string, readonly [string, string] | undefined]>([
    ['Header(["k","v"])', ['k', 'v']],
    ['Header(["k\\u003c","v\\"\\u0026"])', ['k<', 'v"&']],
    ['Header(["k"])', ['k', '']],
    ['Header([])', ['', '']],
    ['Header(["k",null,"more"])', ['k', '']],
    ['Header(["k",1])', undefined],
    ['Header({"k":"v"})', undefined],
    ['Header(["k","a)b"])', undefined],
    ['Header()', undefined],
  ])('%s', (text, pair) => {
    expect(parseOption(text)).toEqual(pair && { name: 'Header', value: pair });
  });

  const text = anyText.filter((value) => !value.includes(')'));
  const date = fc
    .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
    .map((value) => new Date(Math.floor(value.getTime() / 1000) * 1000));
  const option: fc.Arbitrary<EnqueueOption> = fc.oneof(
    fc.record({ name: fc.constant('Queue' as const), value: text }),
    fc.record({ name: fc.constant('MaxRetry' as const), value: fc.nat() }),
    fc.record({
      name: fc.constantFrom('Timeout' as const, 'Unique' as const, 'ProcessIn' as const, 'Retention' as const),
      value: fc.integer({ min: -(10 ** 12), max: 10 ** 12 }),
    }),
    fc.record({ name: fc.constantFrom('Deadline' as const, 'ProcessAt' as const), value: date }),
    fc.record({ name: fc.constant('Header' as const), value: fc.tuple(text, text) }),
  );

  it('reads what formatOption wrote', () => {
    fc.assert(
      fc.property(option, (one) => {
        expect(parseOption(formatOption(one))).toEqual(one);
      }),
    );
  });

  it('never throws', () => {
    const names = fc.constantFrom('Queue', 'MaxRetry', 'Timeout', 'Deadline', 'ProcessAt', 'Header', 'x');
    fc.assert(
      fc.property(names, anyText, fc.constantFrom(')', ''), (name, argument, end) => {
        const read = parseOption(`${name}(${argument}${end}`);
        expect(read === undefined || read.name === name).toBe(true);
      }),
    );
  });
});

describe('GO_STATE_NUMBERS', () => {
  it('numbers every state once, from 1', () => {
    expect(STORED_STATES.map((state) => GO_STATE_NUMBERS[state]).sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(GO_STATE_NUMBERS).toMatchObject({ active: 1, pending: 2, aggregating: 7 });
  });
});
