import { afterEach, describe, expect, it } from 'vitest';
import { Turns } from '../../../lib/server/loops/turns.js';
import { closeRigs, manualClock, startRig, turn } from '../../support/server-rig.js';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `q${index}`);

describe('turns', () => {
  it('take few queues all at once', () => {
    const turns = new Turns(5_000);
    expect(turns.take(names(125))).toEqual({ queues: names(125), delay: 5_000 });
    expect(turns.laps).toBe(1);
  });

  it('take each of many queues once a lap, in small numbers after the first', () => {
    const turns = new Turns(5_000);
    const all = names(1_234);
    const lap = (): { taken: string[]; most: number } => {
      const { laps } = turns;
      const [taken, sizes]: [string[], number[]] = [[], []];
      while (turns.laps === laps) {
        const { queues } = turns.take(all);
        taken.push(...queues);
        sizes.push(queues.length);
      }
      return { taken, most: Math.max(...sizes) };
    };
    expect(lap()).toEqual({ taken: all, most: 100 });
    expect(lap()).toEqual({ taken: all, most: 10 });
  });
});

describe('the forwarder of many queues', () => {
  afterEach(closeRigs);

  it('moves each task when it is due, in whatever queue and whenever it came', async () => {
    const clock = manualClock();
    const current = await startRig({ t: () => undefined }, { queues: names(1_000) }, clock);
    const pass = async (milliseconds: number): Promise<void> => {
      for (let left = milliseconds; left > 0; left -= 100) {
        clock.advance(100);
        await turn(3);
      }
    };
    await current.add({ queue: 'q999', type: 't' }, { processAt: clock.now() / 1000 + 2 });
    await pass(8_000); // the first lap
    for (const [index, seconds] of [3, 1, 2, 5].entries()) {
      await current.add({ queue: `q${index * 300}`, type: 't' }, { processAt: clock.now() / 1000 + seconds });
    }
    await pass(7_000);
    expect(current.outcomes).toHaveLength(5);
  });
});
