import { describe, expect, it } from 'vitest';
import type { QueueOverview } from '../../lib/dashboard/queue-overview.js';
import { Sampler } from '../../lib/dashboard/sampler.js';

const HOUR = 3_600_000;
const START = Date.parse('2024-03-01T00:00:00Z');

/** A sampler of no queues, on a clock that is set. */
function setUp() {
  let now = START;
  const overview = { all: async () => [] } as unknown as QueueOverview;
  const sampler = new Sampler(overview, { now: () => now } as never, 1_000);
  const after = async (since: number) => (await sampler.after(since)).map(({ at }) => at - START);
  return { after, set: (time: number) => (now = START + time) };
}

describe('samples when the clock is set back', () => {
  it('go on at once, also for a page that has seen later ones', async () => {
    const { after, set } = setUp();
    expect(await after(0)).toEqual([0]);
    set(2 * HOUR);
    expect(await after(START)).toEqual([2 * HOUR]);
    set(HOUR);
    expect(await after(START + 2 * HOUR)).toEqual([HOUR]);
    set(HOUR + 1_000);
    expect(await after(START + HOUR)).toEqual([HOUR + 1_000]);
    expect(await after(0)).toEqual([HOUR, HOUR + 1_000]);
  });

  it('keep to what was asked for when clocks differ a little', async () => {
    const { after, set } = setUp();
    expect(await after(START + 59_000)).toEqual([]); // of a process whose clock is ahead
    set(1_000);
    expect(await after(START)).toEqual([1_000]);
  });

  it('have none of a time that has not come', async () => {
    const { after, set } = setUp();
    set(5_000);
    await after(0);
    set(3_000);
    expect(await after(0)).toEqual([3_000]);
  });
});
