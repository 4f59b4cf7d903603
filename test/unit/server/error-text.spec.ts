import { describe, expect, it } from 'vitest';
import { RevokeTask, SkipRetry } from '../../../lib/errors.js';
import { hasCode } from '../../../lib/error-code.js';
import { errorText } from '../../../lib/server/attempt/error-text.js';

describe('errorText', () => {
  const hostile = {
    get message(): string {
      throw new Error('no');
    },
  };

  it.each([
    ['an error', new Error('boom'), 'boom'],
    ['an error without a message', new TypeError(), 'TypeError'],
    ['a string', 'plain', 'plain'],
    ['an empty string', '', 'an empty string was thrown'],
    ['undefined', undefined, 'undefined was thrown'],
    ['null', null, 'null'],
    ['an object', { a: 1 }, '{ a: 1 }'],
    ['a number', 42, '42'],
  ])('says what was thrown: %s', (_, thrown, text) => expect(errorText(thrown)).toBe(text));

  it('returns a text for an error that cannot be shown', () => {
    const error = Object.defineProperty(
      new Error('x'),
      'message',
      Object.getOwnPropertyDescriptor(hostile, 'message')!,
    );
    expect(errorText(error)).toBe('an error that cannot be shown');
  });

  it('cuts megabytes of text and states their length', () => {
    const text = errorText(new Error('x'.repeat(3_000_000)));
    expect(text.length).toBeLessThan(4_200);
    expect(text).toMatch(/… \(3000000 characters\)$/);
  });
});

describe('hasCode', () => {
  it('follows the cause chain, and recognises another copy of the class', () => {
    expect(hasCode(new SkipRetry(), 'ASYNQ_SKIP_RETRY')).toBe(true);
    expect(hasCode(new Error('x', { cause: new RevokeTask('gone') }), 'ASYNQ_REVOKE_TASK')).toBe(true);
    expect(hasCode({ code: 'ASYNQ_SKIP_RETRY' }, 'ASYNQ_SKIP_RETRY')).toBe(true);
    expect(hasCode(new Error('x'), 'ASYNQ_SKIP_RETRY')).toBe(false);
    expect(hasCode(undefined, 'ASYNQ_SKIP_RETRY')).toBe(false);
  });

  it('ends on a chain of causes that is a circle', () => {
    const error: { cause?: unknown } = {};
    error.cause = error;
    expect(hasCode(error, 'ASYNQ_SKIP_RETRY')).toBe(false);
  });
});
