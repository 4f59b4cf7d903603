import { describe, expect, it } from 'vitest';
import { hasCode } from '../../../lib/error-code.js';
import { DeadlineExceededError, PostponeTask, RevokeTask, SkipRetry } from '../../../lib/index.js';
import { seal, unseal } from '../../../lib/threads/sealed-error.js';

const sent = (error: unknown): unknown => unseal(structuredClone(seal(error)));

describe('an error between threads', () => {
  it('keeps its class where it is one of ours or of JavaScript', () => {
    for (const error of [new SkipRetry('no'), new RevokeTask(), new DeadlineExceededError(), new RangeError('far')]) {
      const got = sent(error) as Error;
      expect(got).toBeInstanceOf(error.constructor);
      expect([got.name, got.message, got.stack]).toEqual([error.name, error.message, error.stack]);
      expect((got as { code?: unknown }).code).toBe((error as { code?: unknown }).code);
    }
    expect(sent(new PostponeTask('2s'))).toMatchObject({ code: 'ASYNQ_POSTPONE_TASK', delay: 2_000 });
  });

  it('keeps the name of another class, its code and its simple fields, and no others', () => {
    class CardRefused extends Error {
      readonly code = 'E_CARD';
      readonly attempt = 2;
      readonly socket = { open: () => undefined };
    }
    const got = sent(new CardRefused('no money')) as Error;
    expect(got).toMatchObject({ name: 'CardRefused', message: 'no money', code: 'E_CARD', attempt: 2 });
    expect(got).not.toHaveProperty('socket');
    expect(Object.keys(got).sort()).toEqual(['attempt', 'code']);
  });

  it('keeps its causes, however deep, and ends where they are a circle', () => {
    const outer = new Error('outer', { cause: new TypeError('inner', { cause: new SkipRetry() }) });
    expect(hasCode(sent(outer), 'ASYNQ_SKIP_RETRY')).toBe(true);
    const circle: Error = new Error('circle');
    circle.cause = circle;
    expect(sent(circle)).toMatchObject({ message: 'circle', cause: { message: 'circle' } });
  });

  it('may be anything that was thrown', () => {
    for (const thrown of ['text', 7, null, undefined, false]) expect(sent(thrown)).toBe(thrown);
    expect(sent({ a: [() => 1] })).toContain('a: [ [Function');
    expect(sent(Symbol('s'))).toBe('Symbol(s)');
  });

  it.each(['constructor', '__proto__', 'toString', 'SchedulerStateError', 'eval'])('may have the name %s', (name) => {
    const got = sent(Object.assign(new Error('odd'), { name })) as Error;
    expect([got instanceof Error, got.message]).toEqual([true, 'odd']);
  });
});
