import { describe, expect, it } from 'vitest';
import { type AttemptEntry, decodeAttempt, encodeAttempt, readAttempts } from '../../lib/task/attempts.js';

const entry = (fields: Partial<AttemptEntry> = {}): AttemptEntry => ({
  outcome: 'failed',
  startedAt: 1_000,
  endedAt: 1_250,
  duration: 250,
  retried: 0,
  counts: true,
  server: 'host:1:id',
  error: 'boom',
  stack: 'Error: boom\nat x',
  ...fields,
});

const stored = (...entries: readonly Partial<AttemptEntry>[]) =>
  entries.map((fields, n) => ({ n, text: encodeAttempt(entry(fields)) }));

const numbers = (list: ReturnType<typeof readAttempts>) => [
  list.attempts.map(({ number }) => number).join(),
  list.total,
];

describe('an entry', () => {
  it.each<[string, AttemptEntry, string]>([
    ['of a failure', entry(), '["failed",1250,250,0,1,"host:1:id","boom","Error: boom\\nat x"]'],
    ['without a stack', entry({ stack: undefined }), '["failed",1250,250,0,1,"host:1:id","boom"]'],
    [
      'of a success',
      entry({ outcome: 'completed', counts: false, error: '', stack: undefined }),
      '["completed",1250,250,0,0,"host:1:id"]',
    ],
    [
      'of a crash',
      entry({ outcome: 'crashed', startedAt: undefined, duration: undefined, server: undefined, stack: undefined }),
      '["crashed",1250,null,0,1,"","boom"]',
    ],
  ])('%s is read as it was written', (_, given, text) => {
    expect(encodeAttempt(given)).toBe(text);
    expect(decodeAttempt(text)).toEqual(given);
  });

  it.each(['', '{}', 'null', '[]', '["failed"]', '["lost",1,1,0,1]', '["failed",-1,1,0,1]', '["failed",1,1,0,1,5]'])(
    'is none when it is %j',
    (text) => {
      expect(decodeAttempt(text)).toBeUndefined();
      expect(readAttempts([{ n: 0, text }], 0)).toEqual({ attempts: [], total: 0 });
    },
  );
});

describe('the numbers of attempts', () => {
  it('are those of the retries', () => {
    expect(numbers(readAttempts(stored({}, { retried: 1 }, { retried: 2, counts: false }), 2))).toEqual(['1,2,3', 3]);
  });

  it('count failures that do not count, too', () => {
    expect(numbers(readAttempts(stored({ counts: false }, { counts: false }, {}), 1))).toEqual(['1,2,3', 3]);
  });

  it('leave out attempts of servers without a history: before, between and after', () => {
    expect(numbers(readAttempts(stored({ retried: 2 }, { retried: 5 }), 8))).toEqual(['3,6', 8]);
  });

  it('go on when older entries are dropped', () => {
    const [, ...rest] = stored({ counts: false }, { counts: false }, { counts: false });
    expect(numbers(readAttempts(rest, 0))).toEqual(['2,3', 3]);
  });

  it('rise even where the retries do not', () => {
    expect(numbers(readAttempts(stored({ retried: 3 }, { retried: 0 }), 1))).toEqual(['4,5', 5]);
  });

  it('are those of the retries where there is no entry', () => {
    expect(readAttempts([], 4)).toEqual({ attempts: [], total: 4 });
  });
});
