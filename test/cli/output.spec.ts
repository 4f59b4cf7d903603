import { describe, expect, it } from 'vitest';
import { parseInfo } from '../../lib/cli/commands/stats.js';
import { bytesAsJson, toJson } from '../../lib/cli/output/json.js';
import { type Column, renderFields, renderTable } from '../../lib/cli/output/table.js';
import { cut, describeBytes, plain, widthOf } from '../../lib/cli/output/text.js';
import { duration, time } from '../../lib/cli/tree/values.js';
import { formatDistance, formatMoment, formatTime } from '../../lib/words/when.js';

const ESC = '\u001b';

describe('text from Redis', () => {
  it.each([
    ['plain', 'plain'],
    ['né 日本 🙂', 'né 日本 🙂'],
    [`${ESC}[2J${ESC}]0;x\u0007`, '\\x1b[2J\\x1b]0;x\\a'],
    ['a\tb\r\nc', 'a\\tb\\r\\nc'],
    ['\u009b31m', '\\u009b31m'],
    ['\u202egpj.exe', '\\u202egpj.exe'],
    ['\u00a0\u2028\ud800', '\\u00a0\\u2028\ufffd'],
  ])('%j is shown as %s', (text, shown) => expect(plain(text)).toBe(shown));

  it.each<[string | Buffer, string]>([
    ['{"a":"日本"}', '{"a":"日本"}'],
    ['', ''],
    ['   ', 'non-printable bytes'],
    ['a\nb', 'non-printable bytes'],
    [`${ESC}[31m`, 'non-printable bytes'],
    [Buffer.from([0xff, 0xfe]), 'non-printable bytes'],
  ])('a payload %j is shown as %j', (payload, shown) => expect(describeBytes(Buffer.from(payload))).toBe(shown));

  it('is cut by columns, not characters', () => {
    expect(cut('abcdef', 6)).toBe('abcdef');
    expect(cut('abcdefg', 6)).toBe('abcde…');
    expect(cut('日本語日本語', 6)).toBe('日本…');
    expect(widthOf(cut('日本語日本語', 6))).toBeLessThanOrEqual(6);
    expect(cut('e\u0301e\u0301e\u0301e\u0301', 3)).toBe('e\u0301e\u0301…');
  });

  it('is safe in JSON, and parses back unchanged', () => {
    const value = { text: `${ESC}[2J\u009b\u007f\u202e\ufeff\u2028 é 日本` };
    const json = toJson(value);
    expect(json.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028]/u);
    expect(JSON.parse(json)).toEqual(value);
    expect(json).toContain('é 日本');
    expect(bytesAsJson(Buffer.from([0xff]))).toEqual({ text: '/w==', encoding: 'base64' });
    expect(bytesAsJson(undefined)).toEqual({ text: null, encoding: 'utf8' });
  });
});

interface Row {
  readonly id: string;
  readonly size: number;
  readonly text: string;
}

describe('a table', () => {
  const columns: Column<Row>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'Size', cell: ({ size }) => size },
    { title: 'Text', cell: ({ text }) => text, shrinks: true },
  ];
  const rows: Row[] = [
    { id: 'one', size: 5, text: '日本語 text' },
    { id: 'twenty-two', size: 1234, text: `a${ESC}[2J and a very long text that does not fit` },
  ];
  const screen = (width: number) => ({ width, bold: (text: string) => `<${text}>` });

  it('is aligned, numbers to the right, without trailing spaces', () => {
    expect(renderTable(columns, rows, screen(Infinity))).toEqual([
      '<ID          Size  Text>',
      'one            5  日本語 text',
      'twenty-two  1234  a\\x1b[2J and a very long text that does not fit',
    ]);
  });

  it('cuts the columns that may shrink on a narrow screen', () => {
    const lines = renderTable(columns, rows, screen(40));
    expect(lines[2]).toBe('twenty-two  1234  a\\x1b[2J and a very l…');
    for (const line of lines) expect(widthOf(line.replace(/[<>]/g, ''))).toBeLessThanOrEqual(40);
  });

  it('becomes complete blocks where cutting is not enough', () => {
    expect(renderTable(columns, rows, screen(25))).toEqual([
      '<ID:   >one',
      '<Size: >5',
      '<Text: >日本語 text',
      '',
      '<ID:   >twenty-two',
      '<Size: >1234',
      '<Text: >a\\x1b[2J and a very long text that does not fit',
    ]);
  });

  it('narrows the widest columns evenly', () => {
    const wide = { title: 'x'.repeat(60), cell: () => '', shrinks: true };
    const [head] = renderTable([wide, wide], [rows[0]!], screen(80));
    expect(head).toBe(`<${'x'.repeat(38)}…  ${'x'.repeat(38)}…>`);
  });

  it('of fields aligns the values', () => {
    expect(
      renderFields(
        [
          ['A', 1],
          ['Bcd', `x\n${ESC}`],
        ],
        screen(80),
      ),
    ).toEqual(['<A:   >1', '<Bcd: >x\\n\\x1b']);
  });
});

describe('times and durations', () => {
  const now = Date.UTC(2030, 0, 1);
  it('are shown as a distance from now', () => {
    expect(formatDistance(new Date(now + 3_605_400), now)).toBe('in 1h0m5s');
    expect(formatDistance(new Date(now - 90_000), now)).toBe('1m30s ago');
    expect(formatDistance(new Date(now + 400), now)).toBe('now');
    expect(formatDistance(undefined, now)).toBe('');
    expect(formatMoment(new Date(now + 60_000), now)).toBe('2030-01-01T00:01:00Z (in 1m0s)');
    expect(formatTime(undefined)).toBe('');
  });

  it('are parsed as Go parses them', () => {
    expect(duration('1h30m')).toBe(5_400_000);
    expect(duration('1.5s')).toBe(1_500);
    expect(time('2026-11-21T09:00:00+01:00')).toEqual(new Date('2026-11-21T08:00:00Z'));
    expect(time('2026-11-21t09:00:00.25z')).toEqual(new Date('2026-11-21T09:00:00.250Z'));
  });
});

it('INFO is parsed as asynq parses it', () => {
  const text = '# Server\r\nredis_version:7.0.15\r\nexecutable:/a:b\r\n\r\nos:Linux\r\n';
  expect(parseInfo(text)).toEqual({ redis_version: '7.0.15', os: 'Linux' });
});
