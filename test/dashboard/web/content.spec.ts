import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nodeAt, parseJson, printJson } from '../../../lib/dashboard/web/json/parse.js';
import { EMPTY_FORM, parseHeaders, printHeaders, toInput } from '../../../lib/dashboard/web/task/form.js';
import { editable, payloadOf } from '../../../lib/dashboard/web/task/payload.js';
import { asText, fromBase64, hexLines } from '../../../lib/dashboard/web/text/bytes.js';
import { chosenFilters, filtersOf, isSearch } from '../../../lib/dashboard/web/list/filters.js';

describe('JSON of a payload', () => {
  it('keeps the digits of numbers, the order of keys, and repeated keys', () => {
    const text = '{"id":9007199254740993,"price":12.50,"e":1E400,"__proto__":{"a":1},"k":1,"k":2}';
    const tree = parseJson(text)!;
    expect(printJson(tree).replaceAll(/\s/g, '')).toBe(text);
    expect(nodeAt(tree, 'k')).toEqual({ kind: 'number', text: '2' });
    expect(nodeAt(tree, '__proto__', 'a')).toEqual({ kind: 'number', text: '1' });
    expect(nodeAt(tree, 'id', 'deeper')).toBeUndefined();
  });

  it('prints as JSON.stringify does', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(printJson(parseJson(text)!)).toBe(JSON.stringify(JSON.parse(text), null, 2));
      }),
    );
  });

  it.each(['', '{', '[1,]', '{"a"}', 'nul', '01', '[1] x', '"\n"', '['.repeat(5000) + ']'.repeat(5000)])(
    'is not %j',
    (text) => expect(parseJson(text)).toBeUndefined(),
  );
});

describe('bytes of a payload', () => {
  it('are text only if they are UTF-8', () => {
    expect(asText(fromBase64(Buffer.from('grüß 😀').toString('base64')))).toBe('grüß 😀');
    expect(asText(new Uint8Array([0xef, 0xbb, 0xbf, 0x41]))).toBe('\ufeffA');
    expect(asText(new Uint8Array([0xff, 0xfe]))).toBeUndefined();
  });

  it('are shown in lines of sixteen', () => {
    const lines = hexLines(
      Uint8Array.from({ length: 40 }, (_, index) => index + 60),
      20,
    );
    expect(lines.map(({ offset }) => offset)).toEqual(['00000000', '00000010']);
    expect(lines[1]).toMatchObject({ hex: '4c 4d 4e 4f', text: 'LMNO' });
    expect(hexLines(new Uint8Array([0, 127, 128]), 16)[0]).toMatchObject({ hex: '00 7f 80', text: '···' });
  });
});

describe('the form of a task', () => {
  it('sends only what was typed', () => {
    expect(toInput({ ...EMPTY_FORM, type: 'a' })).toEqual({ type: 'a' });
    const form = {
      ...EMPTY_FORM,
      type: 'a',
      max_retry: '0',
      timeout_seconds: '1.5',
      expires_in_seconds: '60',
      on_expiry: 'drop',
      headers: 'x-a: 1:2\n\n',
      payload: { as: 'text' as const, text: '{"n":9007199254740993}' },
      when: { how: 'in' as const, amount: '2', unit: '3600', at: '' },
    };
    expect(toInput(form)).toEqual({
      type: 'a',
      max_retry: 0,
      timeout_seconds: 1.5,
      expires_in_seconds: 60,
      on_expiry: 'drop',
      headers: { 'x-a': '1:2' },
      payload_text: '{"n":9007199254740993}',
      process_in_seconds: 7200,
    });
    expect(toInput({ ...form, group: 'g' }, form)).toEqual({ group: 'g', process_in_seconds: 7200 });
  });

  it('sends base64 as base64, and times in UTC', () => {
    const form = { ...EMPTY_FORM, payload: { as: 'base64' as const, text: ' /wA= ' } };
    const when = { how: 'at' as const, amount: '', unit: '1', at: '2030-01-02T03:04:05' };
    expect(toInput({ ...form, when })).toEqual({
      payload_base64: '/wA=',
      process_at: new Date('2030-01-02T03:04:05').toISOString(),
    });
  });

  it.each([
    [{ max_retry: 'many' }, 'max retry: “many” is not a number.'],
    [{ headers: 'nothing' }, '“nothing” is not a header'],
    [{ when: { how: 'in' as const, amount: '', unit: '1', at: '' } }, 'is not a duration'],
    [{ when: { how: 'at' as const, amount: '', unit: '1', at: '' } }, 'Choose a date'],
  ])('refuses %j', (typed, message) => expect(() => toInput({ ...EMPTY_FORM, ...typed })).toThrow(message));

  it('reads every header that it printed, also after a text field has changed the line breaks', () => {
    const headers = { traceparent: '00-a:b-01', 'x-y': '' };
    expect(printHeaders(headers)).toBe('traceparent: 00-a:b-01\nx-y: ');
    expect(parseHeaders(printHeaders(headers))).toEqual(headers);
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom('a', ':', ' ', '"', '\\', '\n', '\r', '\t', '\0', '\u2028', '\ufeff') }),
    );
    fc.assert(
      fc.property(fc.dictionary(text, text), (any) => {
        const typed = printHeaders(any).replaceAll(/\r\n?/g, '\n');
        expect(parseHeaders(typed)).toEqual({ ...any });
      }),
    );
  });

  it.each([
    ['a: 1\na: 2', 'is repeated'],
    ['"a: 1', 'is not a header'],
    ['"a": 1', 'is not a header'],
    [': 1', 'is not a header'],
  ])('refuses headers such as %j', (text, message) => expect(() => parseHeaders(text)).toThrow(message));

  it('edits as text only what a text field leaves unchanged, and nothing that was not fully loaded', () => {
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const task = (payload_base64: string | null) => ({ payload_base64, payload_sha256: payload_base64 && 'sum' });
    expect(editable(task(base64('{"n":9007199254740993}\n')))).toEqual({
      payload: { as: 'text', text: '{"n":9007199254740993}\n' },
      replaces: 'sum',
    });
    for (const text of ['a\r\nb', 'a\rb'])
      expect(payloadOf(task(base64(text)))).toEqual({ as: 'base64', text: base64(text) });
    expect(payloadOf(task('//4='))).toEqual({ as: 'base64', text: '//4=' });
    expect(editable(task(null))).toBeUndefined();
    expect(editable({ payload_base64: 'AA==', payload_sha256: null })).toBeUndefined();
  });
});

describe('filters of a list', () => {
  it('come from the address', () => {
    const filters = chosenFilters({ type: 'a', id: '', size: '50', error: 'x' });
    expect(filters).toEqual({ type: 'a', error: 'x' });
    expect([isSearch(filters), isSearch({})]).toEqual([true, false]);
    expect(filtersOf('completed')).not.toContain('error');
  });
});
