import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { PacedClock } from '../../lib/scheduler/paced-clock.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Until all that is due has fired. */
async function rest(fired: readonly unknown[]): Promise<void> {
  for (let before = -1; before < fired.length;) {
    before = fired.length;
    await turn();
  }
}

describe('PacedClock', () => {
  it('fires each timer that is not cancelled once, when it is due and in the order of the times', async () => {
    const step = fc.oneof(
      fc.record({ delay: fc.integer({ min: -5, max: 50 }) }),
      fc.record({ cancel: fc.nat(40) }),
      fc.record({ advance: fc.nat(30) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const base = new ManualClock(0);
        const clock = new PacedClock(base);
        const timers: { due: number; cancel: () => void; over: boolean }[] = [];
        const fired: number[] = [];
        for (const one of steps) {
          if ('delay' in one) {
            const timer = { due: clock.elapsed() + Math.max(one.delay, 0), cancel: () => undefined, over: false };
            const index = timers.push(timer) - 1;
            timer.cancel = clock.after(one.delay, () => {
              expect(timer.over).toBe(false);
              expect(clock.elapsed()).toBeGreaterThanOrEqual(timer.due);
              timer.over = true;
              fired.push(index);
            }).cancel as () => undefined;
          } else if ('cancel' in one) {
            const timer = timers[one.cancel];
            timer?.cancel();
            if (timer) timer.over = true;
          } else {
            const from = fired.length;
            base.advance(one.advance);
            await rest(fired);
            const times = fired.slice(from).map((index) => timers[index]!.due);
            expect(times).toEqual([...times].sort((a, b) => a - b));
            expect(timers.every(({ over, due }) => over || due > base.now())).toBe(true);
          }
        }
        base.advance(100);
        await rest(fired);
        expect(timers.every(({ over }) => over)).toBe(true);
      }),
    );
  });

  it('fires one timer at once, and many that are due together in several turns of the event loop', async () => {
    const base = new ManualClock(0);
    const clock = new PacedClock(base);
    let fired = 0;
    clock.after(10, () => fired++);
    base.advance(10);
    expect(fired).toBe(1);

    for (let n = 0; n < 1_000; n++) clock.after(10, () => fired++);
    base.advance(10);
    let [most, before] = [fired - 1, fired];
    for (let turns = 0; turns < 1_000; turns++, before = fired) {
      await turn();
      most = Math.max(most, fired - before);
    }
    expect(fired).toBe(1_001);
    expect(most).toBeLessThanOrEqual(50);
  });

  it('has one timer below for all, and none for a delay without end', () => {
    const base = new ManualClock(0);
    const clock = new PacedClock(base);
    clock.after(Infinity, () => expect.unreachable());
    expect(base.nextDue()).toBeUndefined();
    clock.after(20, () => undefined);
    expect(base.nextDue()).toBe(20);
    clock.after(5, () => undefined);
    expect(base.nextDue()).toBe(5);
    base.advance(5);
    expect(base.nextDue()).toBe(20);
  });
});
