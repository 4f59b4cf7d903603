import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Loop } from '../../lib/loop.js';

/** Lets promise callbacks run; no time passes. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('Loop', () => {
  it('runs after the delay the last pass asked for', async () => {
    const clock = new ManualClock(0);
    const at: number[] = [];
    const loop = new Loop({ name: 'x', clock, onError: () => {}, runOnce: async () => (at.push(clock.now()), 100) });
    loop.start(50);
    for (let step = 0; step < 25; step++) {
      clock.advance(10);
      await settle();
    }
    expect(at).toEqual([50, 150, 250]);
    await loop.stop();
    clock.advance(1_000);
    expect(at).toHaveLength(3);
  });

  it('reports its lag, the length of a pass and the number of failures', async () => {
    const clock = new ManualClock(0);
    let end = (_: 'ok' | 'failed'): void => {};
    const runOnce = () =>
      new Promise<number>((resolve, reject) => {
        end = (how) => (how === 'ok' ? resolve(1_000) : reject(new Error('away')));
      });
    let set = 0;
    const delayed = {
      now: () => clock.now() + set,
      elapsed: () => clock.elapsed(),
      after: (delay: number, run: () => void) => clock.after(delay + 7, run),
    };
    const loop = new Loop({ name: 'slow', clock: delayed, onError: () => {}, runOnce });
    expect(loop.stats()).toEqual({ loop: 'slow', lag: 0, overdue: 0, busyFor: 0, failures: 0 });
    loop.start(10);
    clock.advance(12);
    set = 3_600_000; // the system's time is set, or a machine goes on after an hour: nothing is late by that
    expect(loop.stats()).toMatchObject({ lag: 0, overdue: 2, busyFor: 0 });
    clock.advance(100);
    expect(loop.stats()).toMatchObject({ lag: 7, overdue: 0, busyFor: 95 });
    end('failed');
    await settle();
    expect(loop.stats()).toMatchObject({ lag: 7, busyFor: 0, failures: 1 });
    await loop.stop();
    clock.advance(60_000); // a loop that runs once must not be late for ever
    expect(loop.stats()).toMatchObject({ lag: 0, overdue: 0, busyFor: 0 });
  });

  it('runs at once when triggered, and once more when triggered during a pass', async () => {
    const clock = new ManualClock(0);
    let passes = 0;
    let release = (): void => {};
    const loop = new Loop({
      name: 'x',
      clock,
      onError: () => {},
      runOnce: () => {
        passes += 1;
        return new Promise((resolve) => (release = () => resolve(Infinity)));
      },
    });
    loop.start(Infinity);
    loop.trigger();
    clock.advance(0);
    expect(passes).toBe(1);
    loop.trigger();
    loop.trigger();
    release();
    await settle();
    clock.advance(0);
    expect(passes).toBe(2);
    release();
    await loop.stop();
  });

  it('backs off after failures, reports each, and recovers', async () => {
    const clock = new ManualClock(0);
    const failures: unknown[] = [];
    let healthy = false;
    const at: number[] = [];
    const loop = new Loop({
      name: 'flaky',
      clock,
      onError: (name, error) => failures.push([name, (error as Error).message]),
      runOnce: async () => {
        at.push(clock.now());
        if (!healthy) throw new Error('away');
        return 1_000;
      },
    });
    loop.start();
    clock.advance(0);
    await settle();
    clock.advance(100);
    await settle();
    expect(failures).toEqual([
      ['flaky', 'away'],
      ['flaky', 'away'],
    ]);
    healthy = true;
    clock.advance(200);
    await settle();
    const passes = at.length;
    const recovered = clock.now();
    clock.moveTo(recovered + 999);
    await settle();
    expect(at).toHaveLength(passes);
    clock.moveTo(recovered + 1_000);
    expect(at.at(-1)).toBe(recovered + 1_000);
    await loop.stop();
  });

  it('stop waits for the pass under way', async () => {
    const clock = new ManualClock(0);
    let release = (): void => {};
    const loop = new Loop({
      name: 'x',
      clock,
      onError: () => {},
      runOnce: () => new Promise((resolve) => (release = () => resolve(1))),
    });
    loop.start();
    clock.advance(0);
    let stopped = false;
    const stopping = loop.stop().then(() => (stopped = true));
    await settle();
    expect(stopped).toBe(false);
    release();
    await stopping;
    expect(stopped).toBe(true);
    expect(clock.nextDue()).toBeUndefined();
  });

  it('stop does not wait long for a pass that hangs, whose result is not reported', async () => {
    const clock = new ManualClock(0);
    const errors: unknown[] = [];
    let fail = (): void => {};
    const loop = new Loop({
      name: 'x',
      clock,
      onError: (_, error) => errors.push(error),
      runOnce: () => new Promise((_, reject) => (fail = () => reject(new Error('closed meanwhile')))),
    });
    loop.start();
    clock.advance(0);
    const stopping = loop.stop();
    clock.advance(2_000);
    await stopping;
    fail();
    await settle();
    expect(errors).toEqual([]);
    expect(clock.nextDue()).toBeUndefined();
  });

  it('by time of day runs a pass when the time is set back, which decides again', async () => {
    const clock = new ManualClock(0);
    let set = 0;
    const seen = {
      now: () => clock.now() + set,
      elapsed: () => clock.elapsed(),
      after: (delay: number, run: () => void) => clock.after(delay, run),
    };
    const at: number[] = [];
    const runOnce = async () => (at.push(clock.now()), 10_000);
    const loop = new Loop({ name: 'x', clock: seen, byTimeOfDay: true, onError: () => {}, runOnce });
    loop.start();
    clock.advance(0);
    await settle();
    set = -3_600_000;
    clock.advance(10_000);
    await settle();
    set -= 1_000; // less than the delay: it is only later
    clock.advance(10_000);
    await settle();
    clock.advance(1_000);
    await settle();
    expect(at).toEqual([0, 10_000, 21_000]);
    await loop.stop();
  });

  it('by time of day follows the time that is set', async () => {
    const clock = new ManualClock(0);
    let ahead = 0;
    const set = {
      now: () => clock.now() + ahead,
      elapsed: () => clock.elapsed(),
      after: (delay: number, run: () => void) => clock.after(delay, run),
    };
    const at: number[] = [];
    const runOnce = async () => (at.push(set.now()), 3_600_000);
    const loop = new Loop({ name: 'x', clock: set, byTimeOfDay: true, onError: () => {}, runOnce });
    loop.start(600_000);
    clock.advance(100_000);
    expect(at).toEqual([]);
    ahead = 540_000; // a machine goes on after nine minutes of sleep
    clock.advance(60_000);
    expect(at).toEqual([660_000]);
    await loop.stop();
  });

  it('has a pass begin sooner, and no later, with runWithin', async () => {
    const clock = new ManualClock(0);
    const at: number[] = [];
    const runOnce = async () => (at.push(clock.now()), 1_000);
    const loop = new Loop({ name: 'x', clock, onError: () => {}, runOnce });
    loop.runWithin(10);
    clock.advance(10);
    expect(at).toEqual([]); // it has not started
    loop.start(100);
    loop.runWithin(200);
    loop.runWithin(50);
    clock.advance(50);
    await settle();
    expect(at).toEqual([60]);
    expect(loop.dueAt).toBe(1_060);
    await loop.stop();
  });

  it('is driven by hand while it is not started', async () => {
    const clock = new ManualClock(1_000);
    const errors: unknown[] = [];
    const replies = [Promise.resolve(500), Promise.reject(new Error('away'))];
    const onError = (_: string, error: unknown) => errors.push((error as Error).message);
    const loop = new Loop({ name: 'x', clock, onError, runOnce: () => replies.shift()! });
    expect(loop.dueAt).toBe(0);
    const pass = loop.run();
    expect(loop.dueAt).toBe(Infinity);
    expect(loop.run()).toBe(pass);
    await pass;
    expect(loop.dueAt).toBe(1_500);
    await loop.run();
    expect(errors).toEqual(['away']);
    expect(loop.dueAt).toBeLessThanOrEqual(1_100);
    expect(clock.nextDue()).toBeUndefined();
  });
});
