import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../lib/clock.js';
import { Server } from '../../../lib/server/server.js';
import { closeRigs, manualClock, openRig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

/** A handler whose attempts end when the test says so; `most` ran at the same time. */
function workers() {
  const open: (() => void)[] = [];
  const state = { most: 0, started: 0 };
  return {
    state,
    handle: () => {
      state.started++;
      return new Promise<void>((resolve) => {
        open.push(resolve);
        state.most = Math.max(state.most, open.length);
      });
    },
    /** Ends the attempt that began first. */
    endOne: () => open.shift()?.(),
    get running() {
      return open.length;
    },
  };
}

/** Lets time pass in steps, so that every timer runs at its time. */
async function pass(clock: ManualClock, milliseconds: number, step = 50): Promise<void> {
  for (let left = milliseconds; left > 0; left -= step) {
    clock.advance(Math.min(step, left));
    await turn();
  }
}

describe('limits of a queue', () => {
  it('concurrency: counts handlers that run on after their task was given up', async () => {
    const clock = manualClock();
    const work = workers();
    const rig = await startRig({ t: work.handle }, { queues: { default: { concurrency: 2 } } }, clock);
    for (let index = 0; index < 5; index++) await rig.add({ type: 't', timeout: 1, maxRetry: 0 });
    await pass(clock, 5_000);
    expect(rig.outcomes).toHaveLength(2);
    expect(work.state).toEqual({ most: 2, started: 2 });
    for (let ended = 1; ended <= 3; ended++) {
      work.endOne();
      await turn(10);
      expect(work.state).toEqual({ most: 2, started: 2 + ended });
    }
  });

  it('concurrency: bounds one process, and other queues get the other slots', async () => {
    const work = workers();
    const { server, add } = await startRig(
      { t: work.handle },
      { concurrency: 5, queues: { narrow: { concurrency: 2 }, default: 1 } },
      manualClock(),
    );
    for (let index = 0; index < 4; index++) await add({ type: 't', queue: 'narrow' });
    await turn(10);
    expect(server.active).toBe(2);
    for (let index = 0; index < 9; index++) await add({ type: 't' });
    await turn(10);
    expect(server.active).toBe(5);
    work.endOne();
    await turn(10);
    expect(work.state.started).toBe(6); // the third of "narrow"
    while (work.running > 0) {
      work.endOne();
      await turn(10);
    }
    expect([work.state.started, work.state.most]).toEqual([13, 5]);
  });

  it('globalConcurrency: bounds the fleet, and each slot is used again', async () => {
    const clock = manualClock();
    const work = workers();
    const options = { concurrency: 5, queues: { default: { globalConcurrency: 3 } } };
    const { memory, add } = await startRig({ t: work.handle }, options, clock);
    const second = new Server({ broker: memory, handlers: [{ pattern: 't', handle: work.handle }], options });
    await second.start();
    for (let index = 0; index < 20; index++) await add({ type: 't' });
    for (let ended = 0; ended < 20; ended++) {
      await pass(clock, 200);
      expect(work.running).toBe(Math.min(3, 20 - ended));
      work.endOne();
    }
    await pass(clock, 200);
    expect([work.state.started, work.state.most]).toEqual([20, 3]);
    expect(memory.snapshot()['default']).toMatchObject({ processed: 20, failed: 0 });
    const closing = second.shutdown();
    await pass(clock, 3_000, 500);
    await closing;
  });

  it('globalConcurrency: slots of a dead server become free', async () => {
    const clock = manualClock();
    const { memory, add, finished } = await startRig(
      { t: () => undefined },
      { queues: { default: { globalConcurrency: 1 } } },
      clock,
    );
    await add({ type: 't' });
    await finished(1);
    await memory.administration.pauseQueue('default');
    const lost = await add({ type: 't', maxRetry: 5 });
    memory.take('default', lost.id); // and it never settles them
    await memory.administration.resumeQueue('default');
    await add({ type: 't' });
    await pass(clock, 59_000, 500);
    expect(memory.snapshot()['default']?.processed).toBe(1);
    await pass(clock, 10_000, 500);
    expect(memory.snapshot()['default']?.processed).toBeGreaterThanOrEqual(2);
  });

  it('rateLimit: never more starts in any window, and as many as it allows', async () => {
    const clock = manualClock();
    const starts: number[] = [];
    const { add } = await startRig(
      { t: () => void starts.push(clock.now()) },
      { concurrency: 50, queues: { default: { rateLimit: { max: 10, per: '16s' } } } },
      clock,
    );
    for (let index = 0; index < 100; index++) await add({ type: 't' });
    await pass(clock, 170_000, 100);
    expect(starts).toHaveLength(100);
    for (const [index, start] of starts.entries()) {
      const eleventh = starts[index + 10];
      if (eleventh !== undefined) expect(eleventh - start).toBeGreaterThan(16_000);
    }
  });

  it('cost no retry and no busy loop: a queue that is held back is not polled', async () => {
    const clock = manualClock();
    const { calls, add, outcomes, finished } = await startRig(
      { t: () => undefined },
      { queues: { default: { rateLimit: { max: 1, per: '16m' } } } },
      clock,
    );
    for (let index = 0; index < 50; index++) await add({ type: 't' });
    await finished(1);
    await turn(20);
    const before = calls.length;
    await pass(clock, 60_000, 500);
    for (let index = 0; index < 50; index++) await add({ type: 't' });
    await pass(clock, 60_000, 500);
    expect(calls.slice(before).filter((call) => call === 'exchange').length).toBeLessThanOrEqual(4);
    expect(outcomes).toHaveLength(1);
  });

  it('change with addQueue, even while a limit holds tasks back', async () => {
    const clock = manualClock();
    const { server, add, finished, outcomes } = await startRig(
      { t: () => undefined },
      { queues: { default: { rateLimit: { max: 1, per: '1h' } } } },
      clock,
    );
    for (let index = 0; index < 5; index++) await add({ type: 't' });
    await finished(1);
    await turn(20);
    expect(outcomes).toHaveLength(1);
    server.addQueue('default', { priority: 3 });
    await turn(20);
    expect(outcomes).toHaveLength(5);
  });

  it.each([
    [{ concurrency: 0 }, /concurrency of queue "q" must be a whole number from 1/],
    [{ globalConcurrency: 1.5 }, /globalConcurrency of queue "q" must be a whole number from 1/],
    [
      { rateLimit: 5 },
      /rateLimit of queue "q" \(\{ max, per \}, as in \{ max: 100, per: '1m' \}\) must be an object, not 5/,
    ],
    [{ rateLimit: { max: 0, per: '1s' } }, /max of rateLimit of queue "q" must be a whole number from 1/],
    [{ rateLimit: { max: 1 } }, /rateLimit of queue "q" has no per; give \{ max, per \}/],
    [{ rateLimit: { max: 1, per: 0 } }, /per of rateLimit of queue "q" must be from 1 millisecond to 24 hours, not 0/],
    [{ rateLimit: { max: 1, per: '25h' } }, /must be from 1 millisecond to 24 hours, not "25h"/],
    [{ rateLimit: { max: 1, per: '1s', burst: 1 } }, /burst/],
    [{ globalConcurency: 1 }, /globalConcurency.*did you mean.*globalConcurrency/],
    [{ priority: 0 }, /priority of queue "q" must not be 0; leave out a queue that is not to be served/],
    [{ priority: -1 }, /priority of queue "q" must be a whole number from 1/],
    [null, /queue "q" \(a priority, or options\) must be an object, not null/],
  ])('refuses %j at boot', (options, message) => {
    expect(() => openRig({ t: () => undefined }, { queues: { q: options as never } })).toThrow(message);
  });
});
