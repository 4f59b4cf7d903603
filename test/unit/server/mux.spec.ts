import { describe, expect, it } from 'vitest';
import { InvalidHandlerError } from '../../../lib/errors.js';
import { Mux } from '../../../lib/server/attempt/mux.js';

const entry = (pattern: string) => ({ pattern, handle: () => undefined });

describe('Mux', () => {
  it('prefers the exact pattern, then the longest prefix, without any separator', () => {
    const mux = new Mux([entry('img'), entry('img:resize'), entry('img:resize:large')]);
    expect(mux.find('img:resize')?.pattern).toBe('img:resize');
    expect(mux.find('img:resize:small')?.pattern).toBe('img:resize');
    expect(mux.find('img:resize:large:x')?.pattern).toBe('img:resize:large');
    expect(mux.find('imgX')?.pattern).toBe('img');
    expect(mux.find('im')).toBeUndefined();
    expect(mux.find('im')).toBeUndefined();
  });

  it('finds handlers for more types than its cache holds', () => {
    const mux = new Mux([entry('user:')]);
    for (let id = 0; id < 2_500; id++) expect(mux.find(`user:${id}`)?.pattern).toBe('user:');
    expect(mux.find('other')).toBeUndefined();
  });

  it("refuses a blank and a repeated pattern with asynq's texts", () => {
    expect(() => new Mux([entry(' \u0085')])).toThrow(/asynq: invalid pattern/);
    expect(() => new Mux([entry('a'), entry('a')])).toThrow('asynq: multiple registrations for a');
    expect(() => new Mux([entry('')])).toThrow(InvalidHandlerError);
  });
});
