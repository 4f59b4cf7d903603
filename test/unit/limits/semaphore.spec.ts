import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../../lib/clock.js';
import { BrokerUnavailableError, InvalidOptionError } from '../../../lib/errors.js';
import { AsynqSemaphores } from '../../../lib/limits/semaphores.js';
import { PostponeTask } from '../../../lib/task/postpone.js';
import { rig } from '../../support/server-rig.js';

const START = 1_700_000_000_000;

describe('a semaphore', () => {
  let clock: ManualClock;
  let broker: MemoryBroker;
  let semaphores: AsynqSemaphores;
  const task = (id: string) => ({ id, deadline: new Date(START + 1_500) });

  beforeEach(() => {
    clock = new ManualClock(START);
    broker = new MemoryBroker(clock);
    semaphores = new AsynqSemaphores(broker);
  });
  afterEach(() => vi.restoreAllMocks());

  it('holds a token while the work runs, and releases it after any end', async () => {
    const semaphore = semaphores.get('api', 1);
    const inside = await semaphore.run(task('a'), async () => semaphore.acquire(task('b')));
    expect(inside).toBe(false);
    await expect(
      semaphore.run(task('b'), () => {
        throw new Error('boom');
      }),
    ).rejects.toThrow('boom');
    expect(await semaphore.acquire(task('c'))).toBe(true);
    expect([await semaphore.release(task('c')), await semaphore.release(task('c'))]).toEqual([true, false]);
  });

  it('postpones a task without a token, by about the given time', async () => {
    const semaphore = semaphores.get('api', 1);
    await semaphore.acquire(task('a'));
    const work = vi.fn();
    for (const [random, delay] of [
      [0, 5_000],
      [0.5, 10_000],
    ]) {
      vi.spyOn(Math, 'random').mockReturnValue(random!);
      const refused = await semaphore.run(task('b'), work, { wait: '10s' }).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(PostponeTask);
      expect(refused).toMatchObject({ delay, message: 'all 1 tokens of "api" are taken' });
    }
    expect(work).not.toHaveBeenCalled();
  });

  it('keeps a token until the deadline of its task, rounded up, when the holder is gone', async () => {
    const semaphore = semaphores.get('api', 1);
    await semaphore.acquire(task('crashed'));
    clock.moveTo(START + 2_999);
    expect(await semaphore.acquire(task('b'))).toBe(false);
    clock.moveTo(START + 3_000);
    expect(await semaphore.acquire(task('b'))).toBe(true);
  });

  it('does not fail finished work when the token cannot be released', async () => {
    vi.spyOn(broker.limiting, 'releaseTokens').mockRejectedValue(new BrokerUnavailableError('gone'));
    expect(await semaphores.get('api', 1).run(task('a'), () => 42)).toBe(42);
  });

  it('does not run the work without a reply about the token', async () => {
    vi.spyOn(broker.limiting, 'acquireTokens').mockRejectedValue(new BrokerUnavailableError('gone'));
    const work = vi.fn();
    await expect(semaphores.get('api', 1).run(task('a'), work)).rejects.toThrow(BrokerUnavailableError);
    expect(work).not.toHaveBeenCalled();
  });

  it.each([
    ['', 1],
    [' ', 1],
    [undefined, 1],
    ['api', 0],
    ['api', 1.5],
    ['api', '3'],
    ['api', NaN],
  ])('is refused for scope %o with %o tokens', (scope, max) => {
    expect(() => semaphores.get(scope as string, max as number)).toThrow(InvalidOptionError);
  });

  it.each([[-1], ['soon']])('refuses a wait of %o, before it takes a token', async (wait) => {
    const semaphore = semaphores.get('api', 1);
    await expect(semaphore.run(task('a'), () => 1, { wait: wait as never })).rejects.toThrow(InvalidOptionError);
    expect(await semaphore.acquire(task('b'))).toBe(true);
  });

  it('runs all tasks of a queue in the end, never more than it has tokens, without using up retries', async () => {
    const state = { running: 0, most: 0 };
    const { server, memory, add, outcomes } = rig(
      {
        t: (context) =>
          new AsynqSemaphores(memory).get('api', 2).run(context, async () => {
            state.most = Math.max(state.most, ++state.running);
            await Promise.resolve();
            state.running--;
          }),
      },
      { concurrency: 10 },
      clock,
    );
    for (let index = 0; index < 30; index++) await add({ type: 't', maxRetry: 0 });
    for (let pass = 0; pass < 200 && (memory.snapshot().default?.processed ?? 0) < 30; pass++) {
      await server.runOnce();
      clock.advance(1_000);
    }
    expect(memory.snapshot().default).toMatchObject({ processed: 30, failed: 0, tasks: {} });
    expect(state.most).toBe(2);
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['done', 'postponed']));
  });
});
