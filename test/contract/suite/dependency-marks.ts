import { describe, expect } from 'vitest';
import type { DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';

const MARK = { type: 'pay', key: 'k' };

export function exerciseMarks(it: DriverTest): void {
  describe('a task that waits for a key', () => {
    it('finds the end of its prerequisite for as long as it is remembered', async ({ driver }) => {
      const session = new LinkSession(driver);
      await session.enqueue(session.marked('a', 'k', {}, 60));
      await session.runNext();
      await session.relay();
      driver.clock.advance(59_000);
      await session.enqueue(session.waiting('b', [MARK]));
      await session.relay();
      expect(await session.stateOf('b')).toBe('pending');
      driver.clock.advance(1_000);
      await session.enqueue(session.waiting('c', [MARK]));
      await session.relay();
      expect(await session.stateOf('c')).toBe('waiting');
    });

    it('takes a remembered success, although a later task of that key failed', async ({ driver }) => {
      const session = new LinkSession(driver);
      await session.enqueue(session.marked('a1', 'k'), session.marked('a2', 'k'));
      await session.runNext();
      await session.runNext('archive');
      await session.relay();
      await session.enqueue(session.waiting('b', [MARK]));
      await session.relay();
      expect(await session.stateOf('b')).toBe('pending');
    });

    it('is told a remembered failure, and the success of the next task of that key', async ({ driver }) => {
      const session = new LinkSession(driver);
      await session.enqueue(session.marked('a1', 'k'));
      await session.runNext('archive');
      await session.relay();
      await session.enqueue(session.waiting('b', [MARK]), session.waiting('c', [MARK], { onFailure: 'wait' }));
      await session.relay();
      expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual(['archived', 'waiting']);
      await session.enqueue(session.marked('a2', 'k', { queue: 'other' }));
      await session.relay();
      await session.runNext('done', 'other');
      await session.relay();
      expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual(['pending', 'pending']);
    });
  });
}
