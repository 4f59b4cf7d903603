import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseFilter } from '../../../lib/cli/dash/filter.js';
import { excerpt, formatCount, formatDistance, formatSpan, textOf } from '../../../lib/cli/dash/format.js';
import { type GridColumn, layOut } from '../../../lib/cli/dash/grid.js';
import { prettyJson } from '../../../lib/cli/dash/pretty-json.js';
import { paint } from '../../../lib/cli/dash/styled-line.js';
import { wrap } from '../../../lib/cli/dash/task-text.js';
import { plain, widthOf } from '../../../lib/cli/output/text.js';

describe('prettyJson', () => {
  it('changes only white space in any JSON', () => {
    fc.assert(
      fc.property(fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue())), (value) => {
        expect(prettyJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });

  it('keeps numbers and names as they are', () => {
    expect(prettyJson('{ "a":12345678901234567890,"a" : 1.50e+3, "b":[ ] }')).toBe(
      '{\n  "a": 12345678901234567890,\n  "a": 1.50e+3,\n  "b": []\n}',
    );
  });

  it.each(['', '17', '"text"', 'null', '{', '[1,]', 'hello {world}'])('leaves %j alone', (text) => {
    expect(prettyJson(text)).toBeUndefined();
  });

  it('handles deep nesting', () => {
    const depth = 5_000;
    expect(prettyJson('['.repeat(depth) + ']'.repeat(depth))!.length).toBeLessThan(depth * 130);
  });
});

describe('wrap', () => {
  it('loses nothing; no line is too wide or contains control characters', () => {
    const text = fc.string({ unit: fc.oneof(fc.constantFrom('日', '\u001b', '\n', '\u202e', '👍', ' '), fc.string()) });
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 30 }), (text, width) => {
        const lines = wrap(text, width);
        expect(lines.join('')).toBe(
          text
            .split(/\r?\n/)
            .map((line) => plain(line.replaceAll('\t', '  ')))
            .join(''),
        );
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
      }),
    );
  });
});

describe('layOut', () => {
  const columns: GridColumn<{ id: string; note: string; size: number }>[] = [
    { title: 'ID', rank: 0, least: 4, cell: ({ id }) => id },
    { title: 'SIZE', rank: 2, right: true, cell: ({ size }) => String(size) },
    { title: 'NOTE', rank: 1, least: 4, cell: ({ note }) => note },
  ];
  const rows = [
    { id: 'a-long-id', note: '日本語 text', size: 5 },
    { id: 'b', note: '', size: 12345 },
  ];
  const show = (width: number): string[] => {
    const { head, rows: lines } = layOut(columns, rows, width);
    return [head, ...lines].map((segments) => segments.map(({ text }) => text).join(''));
  };

  it('aligns columns, and leaves out the least important ones without room', () => {
    expect(show(80)).toEqual([
      'ID          SIZE  NOTE       ',
      'a-long-id      5  日本語 text',
      'b          12345             ',
    ]);
    expect(show(22)).toEqual(['ID          SIZE  NOTE', 'a-long-id      5  日… ', 'b          12345      ']);
    expect(show(14)).toEqual(['ID        NOTE', 'a-long-…  日… ', 'b             ']);
    expect(show(9)).toEqual(['ID       ', 'a-long-id', 'b        ']);
    expect(show(3)).toEqual(['ID ', 'a-…', 'b  ']);
  });
});

describe('paint', () => {
  const line = { segments: [{ text: 'one ', style: 'bad' as const }, { text: '日本' }] };

  it('cuts to the width, with and without colors', () => {
    expect(paint(line, 20, false)).toBe('one 日本');
    expect(paint(line, 7, false)).toBe('one 日…');
    expect(paint(line, 20, true)).toBe('\u001b[31mone \u001b[0m日本');
    expect(paint(line, 7, true)).toBe('\u001b[31mone \u001b[0m日…');
    expect(paint(line, 4, true)).toBe('\u001b[31mone \u001b[0m');
  });

  it('fills an inverted line to the edge', () => {
    expect(paint({ ...line, inverted: true }, 10, true)).toBe('\u001b[7mone 日本  \u001b[0m');
  });
});

describe('formats', () => {
  it.each([
    [0, '0s'],
    [1, '1ms'],
    [999.9, '999ms'],
    [59_999, '59s'],
    [60_000, '1m00s'],
    [3_599_999, '59m59s'],
    [3_600_000, '1h00m'],
    [90_061_000, '1d1h'],
  ])('shows %d ms as %s', (milliseconds, text) => expect(formatSpan(milliseconds)).toBe(text));

  it('shows counts and distances', () => {
    expect([0, 999, 1000, 1234567].map(formatCount)).toEqual(['0', '999', '1,000', '1,234,567']);
    const at = (time: number) => formatDistance(new Date(time), 1_000_000);
    expect([at(1_000_400), at(1_005_000), at(930_000), formatDistance(undefined, 0)]).toEqual([
      'now',
      'in 5s',
      '1m10s ago',
      '',
    ]);
  });

  it.each([
    ['{"a": 1}', '{"a": 1}'],
    ['{\n  "a": 1\n}\n', '{ "a": 1 }'],
    ['\u001b[31m', '\\x1b[31m'],
    ['', ''],
    ['x'.repeat(500), `${'x'.repeat(400)}…`],
    ['é'.repeat(500), `${'é'.repeat(200)}…`],
  ])('shows %j in a cell as %j', (payload, text) => expect(excerpt(Buffer.from(payload))).toBe(text));

  it('shows the number of bytes that are not text', () => {
    expect(excerpt(Buffer.alloc(1234, 0xff))).toBe('(1,234 bytes)');
    expect(excerpt(undefined)).toBe('');
  });

  it('cuts text between characters', () => {
    for (let most = 1; most < 12; most++)
      expect(Buffer.from('aé日👍b日')).toSatisfy((all: Buffer) => {
        const text = textOf(all, most);
        return text !== undefined && all.toString().startsWith(text) && Buffer.byteLength(text) > most - 4;
      });
  });
});

describe('parseFilter', () => {
  it.each([
    ['', undefined],
    ['  ', undefined],
    ['id=', undefined],
    ['email:', { type: 'email:' }],
    ['type=email:', { type: 'email:' }],
    ['id=abc', { id: 'abc' }],
    ['email: error=timed out', { type: 'email:', error: 'timed out' }],
    ['payload={"a": 1} id=x', { payload: '{"a": 1}', id: 'x' }],
    ['grid=5', { type: 'grid=5' }],
  ])('reads %j as %j', (text, criteria) => expect(parseFilter(text)).toEqual(criteria));
});
