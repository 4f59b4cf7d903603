import { describe, expect, it } from 'vitest';
import { ClosedError } from '../../../lib/errors.js';
import type { Driver } from '../driver.js';

export function exerciseLimiting(current: () => Driver): void {
  describe('semaphore tokens', () => {
    it('are as many as there are, and come back when they are released', async () => {
      const { broker, now } = current();
      const acquire = (id: string): Promise<boolean> => broker.acquireToken('scope', id, 2, now + 60);
      expect([await acquire('a'), await acquire('b'), await acquire('c')]).toEqual([true, true, false]);
      expect(await broker.releaseToken('scope', 'b')).toBe(true);
      expect(await broker.releaseToken('scope', 'b')).toBe(false);
      expect([await acquire('c'), await acquire('d')]).toEqual([true, false]);
    });

    it('are kept by who has one and asks again, with the new deadline', async () => {
      const { broker, clock, now } = current();
      expect(await broker.acquireToken('scope', 'a', 1, now + 5)).toBe(true);
      expect(await broker.acquireToken('scope', 'a', 1, now + 9)).toBe(true);
      clock.advance(9_000);
      expect(await broker.acquireToken('scope', 'b', 1, now + 60)).toBe(false);
      clock.advance(1_000);
      expect(await broker.acquireToken('scope', 'b', 1, now + 60)).toBe(true);
    });

    it('come back when the deadline has passed, not at it', async () => {
      const { broker, clock, now } = current();
      await broker.acquireToken('scope', 'crashed', 1, now + 5);
      clock.advance(5_999);
      expect(await broker.acquireToken('scope', 'a', 1, now + 60)).toBe(false);
      clock.advance(1);
      expect(await broker.acquireToken('scope', 'a', 1, now + 60)).toBe(true);
      expect(await broker.releaseToken('scope', 'crashed')).toBe(false);
    });

    it('belong to their scope, whatever its name', async () => {
      const { broker, now } = current();
      const scopes = ['scope', 'Scope', 'ü {b}:c', ' '];
      for (const scope of scopes) expect(await broker.acquireToken(scope, 'a', 1, now + 60)).toBe(true);
      for (const scope of scopes) expect(await broker.acquireToken(scope, 'b', 1, now + 60)).toBe(false);
      expect(await broker.releaseToken('other', 'a')).toBe(false);
    });

    it('count against the number of the caller', async () => {
      const { broker, now } = current();
      for (const id of ['a', 'b', 'c']) await broker.acquireToken('scope', id, 3, now + 60);
      expect(await broker.acquireToken('scope', 'd', 2, now + 60)).toBe(false);
      expect(await broker.acquireToken('scope', 'd', 4, now + 60)).toBe(true);
    });

    it('are never more than there are, however many ask at once', async () => {
      const { broker, now } = current();
      const ids = Array.from({ length: 50 }, (_, index) => `t${index}`);
      const got = await Promise.all(ids.map((id) => broker.acquireToken('scope', id, 7, now + 60)));
      expect(got.filter(Boolean)).toHaveLength(7);
    });

    it('are not to be had from a closed broker', async () => {
      const { broker, now } = current();
      await broker.close();
      await expect(broker.acquireToken('scope', 'a', 1, now)).rejects.toThrow(ClosedError);
      await expect(broker.releaseToken('scope', 'a')).rejects.toThrow(ClosedError);
    });
  });
}
