import { describe, expect, test } from 'vitest';
import { Redactor } from '../../lib/redaction/redactor.js';
import { checkRedaction, type Redaction } from '../../lib/redaction/rules.js';

const task = { type: 'user:created', queue: 'low' };
const hiddenBy = (...sources: Redaction[]) => new Redactor(sources).of(task);

describe('a redactor', () => {
  test('hides nothing of tasks without a rule', () => {
    const redactor = new Redactor([[{ type: 'order:' }], () => undefined]);
    expect([redactor.of(task), redactor.hidesErrors(task)]).toEqual([undefined, false]);
  });

  test.each<[rule: object, fields: unknown, header: boolean]>([
    [{}, 'all', true],
    [{ errors: 'show' }, 'all', true],
    [{ fields: ['a'] }, ['a'], false],
    [{ headers: ['X-Key'] }, undefined, true],
    [{ headers: ['*'] }, undefined, true],
    [{ headers: ['other'] }, undefined, false],
  ])('reads %j', (rule, fields, header) => {
    const hidden = hiddenBy([{ type: 'user:', ...rule }])!;
    expect(hidden.fields instanceof Object ? hidden.fields.paths : hidden.fields).toEqual(fields);
    expect(hidden.hidesHeader('xKEY')).toBe(header);
  });

  test('hides errors unless every rule about the task shows them', () => {
    const show = [{ type: 'user:', fields: ['a'], errors: 'show' as const }];
    expect([hiddenBy(show)!.errors, new Redactor([show]).hidesErrors(task)]).toEqual([false, false]);
    expect([hiddenBy(show, [{ type: '', headers: ['x'] }])!.errors, hiddenBy(show, () => ['b'])!.errors]).toEqual([
      true,
      true,
    ]);
  });

  test('hides everything when a function fails, and calls it with type and queue only', () => {
    const asked: unknown[] = [];
    const redactor = new Redactor([
      (about) => {
        asked.push(about);
        throw new Error('no rule');
      },
    ]);
    const hidden = redactor.of({ ...task, payload: 'x' } as typeof task)!;
    expect([hidden.fields, hidden.hidesHeader('any'), hidden.errors]).toEqual(['all', true, true]);
    expect(asked).toEqual([task]);
  });

  test.each<[before: object, after: object, covers: boolean]>([
    [{}, { fields: ['a'] }, false],
    [{}, {}, true],
    [{ fields: ['a'] }, {}, true],
    [{ fields: ['a'] }, { fields: ['A', 'b'] }, true],
    [{ fields: ['a', 'c'] }, { fields: ['a', 'b'] }, false],
    [{ fields: ['a'] }, { headers: ['a'] }, false],
    [{ headers: ['x'] }, { headers: ['a'] }, true],
  ])('of fields like %j is covered by %j: %j', (before, after, covers) => {
    const [one, other] = [before, after].map((rule) => hiddenBy([{ type: '', ...rule }])!);
    expect(other!.coversFieldsOf(one!)).toBe(covers);
  });

  test.each<[unknown, RegExp]>([
    [{}, /option redact must be an array of rules, or a function, not an object/],
    [async () => true, /option redact must be a function that returns at once, not an async function/],
    [[{}], /option redact\[0\]\.type must be the beginning of a task type, not undefined/],
    [[{ type: '', field: [] }], /unknown key of option redact\[0\] "field"; did you mean "fields"/],
    [[{ type: '', fields: ['a..b'] }], /option redact\[0\]\.fields must be an array of names/],
    [[{ type: '', headers: [''] }], /option redact\[0\]\.headers must be an array of names/],
    [[{ type: '', errors: false }], /option redact\[0\]\.errors must be "hide" or "show", not false/],
  ])('refuses %j', (redaction, message) => {
    expect(() => checkRedaction(redaction, 'option redact')).toThrow(message);
  });
});
