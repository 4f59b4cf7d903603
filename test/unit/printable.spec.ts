import { describe, expect, it } from 'vitest';
import { printable, printableStack } from '../../lib/printable.js';

describe('printable', () => {
  it.each([
    ['né 日本 🙂 "quoted" \\', 'né 日本 🙂 "quoted" \\'],
    ['a\tb\r\nc\0', 'a\\tb\\r\\nc\\x00'],
    ['\u001b[31m\u009b31m', '\\x1b[31m\\u009b31m'],
    ['\u202egpj.exe\u2066\u200b\ufeff', '\\u202egpj.exe\\u2066\\u200b\\ufeff'],
    ['\u{e0041}', '\\U000e0041'],
    ['\u2028\u0085\ud800', '\\u2028\\u0085\ufffd'],
  ])('%j is %s', (text, shown) => expect(printable(text)).toBe(shown));
});

describe('the stack of an error', () => {
  const stackOf = (message: string, stack?: string) =>
    printableStack(Object.assign(new Error(message), stack && { stack }));

  it('has its message on the first line and frames on the others', () => {
    const [first, ...frames] = stackOf('one\ntwo\u001b[1m').split('\n');
    expect(first).toBe('Error: one\\ntwo\\x1b[1m');
    expect(frames.length).toBeGreaterThan(0);
    for (const frame of frames) expect(frame).toMatch(/^ {4}at /);
  });

  it('has no line that looks like another line of the log, though its message was changed', () => {
    expect(stackOf('new', 'Error: old\nforged\n    at x')).toBe('Error: old\n    forged\n    at x');
    expect(stackOf('m', 'Error: m\nforged\n    at x')).toBe('Error: m\n    forged\n    at x');
  });
});
