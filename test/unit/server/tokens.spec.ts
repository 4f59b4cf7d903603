import { describe, expect, it, vi } from 'vitest';
import { LEASE_SECONDS } from '../../../lib/broker/broker.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ActiveTask } from '../../../lib/server/attempt/active-task.js';
import { Tokens } from '../../../lib/server/attempt/tokens.js';
import { manualClock } from '../../support/server-rig.js';

const task = (id: string): ActiveTask => ({ queue: 'default', id }) as ActiveTask;

function setup(max = 2) {
  const clock = manualClock();
  const broker = new MemoryBroker(clock);
  return { clock, broker, tokens: new Tokens('scope', max, { broker, clock }) };
}

describe('Tokens of a server that stood still', () => {
  it('lets no task run with a spare one that others may have by now', async () => {
    const { clock, broker, tokens } = setup();
    expect(await tokens.seek(2)).toBe(2);
    clock.advance((LEASE_SECONDS + 5) * 1_000);
    const until = Math.floor(clock.now() / 1_000) + LEASE_SECONDS;
    expect(await broker.limiting.acquireTokens('scope', 2, until, ['one', 'other'])).toEqual([true, true]);
    expect(tokens.give(task('late'))).toBe(false);
    expect(tokens.has(task('late'))).toBe(false);
    expect(tokens.spare).toBe(0);
  });

  it('uses one that does not end soon, though another has ended', async () => {
    const { clock, tokens } = setup();
    await tokens.seek(1);
    clock.advance((LEASE_SECONDS - 5) * 1_000);
    await tokens.seek(1);
    const next = task('next');
    expect(tokens.give(next)).toBe(true);
    expect(tokens.has(next)).toBe(true);
    expect(tokens.give(task('late'))).toBe(false);
  });

  it('lets no task run with one whose reply has come too late, and gives it back', async () => {
    const { clock, broker, tokens } = setup(1);
    const acquire = broker.limiting.acquireTokens.bind(broker.limiting);
    const slow = vi.spyOn(broker.limiting, 'acquireTokens').mockImplementation(async (...args) => {
      const got = await acquire(...args);
      clock.advance((LEASE_SECONDS - 5) * 1_000);
      return got;
    });
    const late = task('late');
    await tokens.acquire([late]);
    expect(tokens.has(late)).toBe(false);
    expect(await tokens.seek(1)).toBe(0);
    expect(tokens.count).toBe(0);
    slow.mockRestore();
    await tokens.release(0);
    const until = Math.floor(clock.now() / 1_000) + LEASE_SECONDS;
    expect(await broker.limiting.acquireTokens('scope', 1, until, ['other'])).toEqual([true]);
  });

  it('takes none for another task before those that run have theirs again', async () => {
    const { clock, tokens } = setup(1);
    const running = task('running');
    await tokens.acquire([running]);
    clock.advance((LEASE_SECONDS + 5) * 1_000);
    expect(await tokens.seek(1)).toBe(0);
    const next = task('next');
    await tokens.acquire([next]);
    expect([tokens.has(running), tokens.has(next)]).toEqual([true, false]);
  });
});
