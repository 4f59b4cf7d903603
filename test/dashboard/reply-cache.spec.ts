import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { ReplyCache } from '../../lib/dashboard/reply-cache.js';

describe('cached replies', () => {
  const REFRESH = 1_000;
  const make = (maxEntries = 3, maxSize = 100) => {
    const clock = new ManualClock();
    const sizeOf = (reply: string) => reply.length;
    return { clock, cache: new ReplyCache(clock, REFRESH, { maxEntries, maxSize, sizeOf }) };
  };
  const never = (): Promise<string> => Promise.reject(new Error('asked again'));
  const ask = (cache: ReplyCache<string>, key: string, text = key) => cache.get(key, () => Promise.resolve(text));

  it('are kept for the period of their request', async () => {
    const { cache, clock } = make();
    expect(await ask(cache, 'a', 'first')).toBe('first');
    expect(await cache.get('a', never)).toBe('first');
    clock.advance(REFRESH);
    expect(await ask(cache, 'a', 'second')).toBe('second');
  });

  it('are bounded in number; the oldest are dropped first', async () => {
    const { cache } = make();
    for (const key of ['a', 'b', 'c', 'd']) await ask(cache, key);
    expect(cache.fresh('a')).toBeUndefined();
    expect(await cache.get('b', never)).toBe('b');
  });

  it('are bounded in total size, and one that is larger is not kept', async () => {
    const { cache } = make(100, 100);
    await ask(cache, 'huge', 'x'.repeat(101));
    expect(cache.fresh('huge')).toBeUndefined();
    for (const key of ['a', 'b', 'c']) await ask(cache, key, 'x'.repeat(40));
    expect(['a', 'b', 'c'].map((key) => cache.fresh(key) !== undefined)).toEqual([false, true, true]);
    cache.clear();
    for (const key of ['d', 'e']) await ask(cache, key, 'x'.repeat(50));
    expect(['d', 'e'].map((key) => cache.fresh(key) !== undefined)).toEqual([true, true]);
  });

  it('are shared while pending, even if not kept; failures are not kept', async () => {
    const { cache } = make();
    let resolveReply!: (text: string) => void;
    const first = cache.get('a', () => new Promise<string>((resolve) => (resolveReply = resolve)), false);
    const second = cache.get('a', never, false);
    resolveReply('once');
    expect(await Promise.all([first, second])).toEqual(['once', 'once']);
    expect(cache.fresh('a')).toBeUndefined();
    await expect(cache.get('b', never)).rejects.toThrow('asked again');
    expect(await ask(cache, 'b')).toBe('b');
  });
});
