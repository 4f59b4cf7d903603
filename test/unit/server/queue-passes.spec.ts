import { describe, expect, it } from 'vitest';
import { QueuePasses } from '../../../lib/server/loops/queue-passes.js';
import { manualClock, turn } from '../../support/server-rig.js';

describe('QueuePasses', () => {
  it('does not retry at once a queue that failed and now hangs', async () => {
    const clock = manualClock();
    const errors: unknown[] = [];
    let hangs = false;
    const work = (queue: string): Promise<string> => {
      if (queue === 'good') return Promise.resolve(queue);
      return hangs ? new Promise(() => undefined) : Promise.reject(new Error('away'));
    };
    const passes = new QueuePasses(clock, work, (error) => errors.push(error));
    const first = await passes.run(['good', 'bad']);
    expect([...first.results.keys()]).toEqual(['good']);
    expect(first.retryIn).toBeGreaterThan(10);
    expect(errors).toHaveLength(1);
    hangs = true;
    clock.advance(100);
    const second = passes.run(['good', 'bad']);
    await turn();
    clock.advance(1_000);
    expect(await second).toEqual({ results: new Map([['good', 'good']]), retryIn: 1_000 });
    expect((await passes.run(['good', 'bad'])).retryIn).toBe(1_000);
  });
});
