import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Preparer } from '../../lib/enqueue/preparer.js';
import type { TaskOptions } from '../../lib/task/options.js';
import type { RepeatRequest } from '../../lib/broker/uniqueness.js';
import { readLockName } from '../../lib/wire/lock-names.js';
import { Keyspace } from '../../lib/wire/keys.js';

/* Two tasks that are not the same never share a lock: types, keys and names of fields may look like parts of a name. */

type Options = TaskOptions & { key?: string };

function lockOf(type: string, options: Options, payload: unknown = {}): string {
  const preparer = new Preparer('asynq');
  const request = preparer.prepare(preparer.kindOf(type, options), payload, 0).request as RepeatRequest;
  return request.repeat?.lock ?? request.message.uniqueKey;
}

const byKey = (key: string): Options => ({ key, unique: { for: '1h', by: 'key' } });
const byLast = (key: string): Options => ({ key, latest: true });
const byFields = (...by: string[]): Options => ({ unique: { for: '1h', by } });

const HEX = '0123456789abcdef0123456789abcdef';
const LONG = 'x'.repeat(201);
const LOOKALIKES = ': :: a: :a a:b key last fields :key :last key: last:a a:key a:b:key % %3A %3a %25 %# # , a,b a%2Cb';
const TEXTS = ['a', 'b', 'A', 'ä', 'a\u0308', HEX, `a:${HEX}`, `${HEX}:key`, `${HEX}:last`].concat(
  LOOKALIKES.split(' '),
  [LONG.slice(1), LONG, `${LONG}:`, `%#${createHash('sha256').update(LONG).digest('hex')}`],
);

describe('the name of a lock', () => {
  it('belongs to one type, one key and one way to compare', () => {
    const owners = new Map<string, string>();
    const claim = (name: string, ...owner: unknown[]): void => {
      const text = JSON.stringify(owner);
      expect(owners.get(name) ?? text).toBe(text);
      owners.set(name, text);
    };
    for (const type of TEXTS) {
      claim(lockOf(type, { unique: '1h' }, { n: 1 }), type, 'payload');
      claim(new Keyspace().queue('default').unique(type, undefined), type, 'none');
      for (const text of TEXTS) {
        claim(lockOf(type, byKey(text)), type, 'key', text);
        claim(lockOf(type, byLast(text)), type, 'last', text);
        claim(lockOf(type, byFields(text), { [text]: 1 }), type, 'fields', text);
      }
    }
    expect(owners.size).toBe(TEXTS.length * (2 + 3 * TEXTS.length));
  });

  it('tells lists of fields apart that look alike', () => {
    const payload = { a: 1, b: 1, c: 1, 'a,b': 1, 'b,c': 1 };
    const names = [byFields('a,b', 'c'), byFields('a', 'b,c'), byFields('a', 'b', 'c'), byFields('a,b')];
    expect(new Set(names.map((options) => lockOf('t', options, payload))).size).toBe(names.length);
  });

  it('is short however long the key is', () => {
    expect(lockOf('t', byKey('k'.repeat(1000))).length).toBeLessThan(120);
    expect(lockOf('t', byKey('ü:'.repeat(500)))).not.toBe(lockOf('t', byKey('ü:'.repeat(499) + 'ü;')));
  });

  it('is that of Go for a plain unique task', () => {
    const hash = createHash('md5').update('{"n":1}').digest('hex');
    expect(lockOf('a:key:b', { unique: '1h' }, { n: 1 })).toBe(`asynq:{default}:unique:a:key:b:${hash}`);
  });

  it('can be read again', () => {
    const prefix = 'asynq:{default}:unique:';
    const read = (name: string) => readLockName(name.slice(prefix.length));
    for (const type of TEXTS) {
      for (const text of TEXTS.filter(({ length }) => length <= 100)) {
        expect(read(lockOf(type, byKey(text)))).toEqual({ type, by: 'key', value: text });
        expect(read(lockOf(type, byLast(text)))).toEqual({ type, by: 'last', value: text });
      }
      const payload = read(lockOf(type, { unique: '1h' }, { n: 1 }));
      expect(payload).toEqual({ type, by: 'payload', value: expect.stringMatching(/^[\da-f]{32}$/) as string });
    }
    expect(read(lockOf('t:u', byFields('a'), { a: 1 }))).toMatchObject({ type: 't:u', by: 'fields' });
    expect(readLockName('something:else')).toBeUndefined();
    expect(readLockName(':')).toBeUndefined();
  });
});
