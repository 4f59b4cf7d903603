import { afterEach, describe, expect, it } from 'vitest';
import { closeRigs, manualClock, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

const noop = (): void => undefined;

describe('the profile of a server', () => {
  it('names its handlers, their limits and versions, and the limits of its queues', async () => {
    const clock = manualClock();
    const limits = { globalConcurrency: 3, rateLimit: { max: 5, per: '1m' }, limitScope: 'mail' } as const;
    const { memory } = await startRig(
      {
        plain: noop,
        'email:': { pattern: 'email:', handle: noop, version: 2, limits },
        local: { pattern: 'local', handle: noop, limits: { concurrency: 1 } },
        llm: { pattern: 'llm', handle: noop, limits: { rateLimit: { max: 9, per: '1s' } }, cost: () => 2 },
      },
      { queues: { default: 1, slow: { concurrency: 2, rateLimit: { max: 1, per: '1s' } } } },
      clock,
    );
    clock.advance(1);
    await turn(20);
    const [server] = await memory.obstacles.observeServers();
    expect(server?.profile).toEqual({
      handlers: [
        { pattern: 'plain' },
        { pattern: 'email:', version: 2, scope: 'mail', globalConcurrency: 3, rate: 5, window: 60_000 },
        { pattern: 'local', scope: 'local', concurrency: 1 },
        { pattern: 'llm', scope: 'llm', rate: 9, window: 1_000, costs: true },
      ],
      queues: { slow: { concurrency: 2, rate: 1, window: 1_000 } },
      aggregates: false,
    });
  });

  it('is published once in five minutes while it stays the same, and at once when a queue changes', async () => {
    const clock = manualClock();
    const { memory, calls, server } = await startRig({ plain: noop }, {}, clock);
    const published = () => calls.filter((call) => call.includes('writeServerProfile')).length;
    for (let second = 0; second < 250; second += 5) {
      clock.advance(5_000);
      await turn(20);
    }
    expect(published()).toBe(1);
    server.addQueue('other', { concurrency: 7 });
    clock.advance(1);
    await turn(20);
    expect(published()).toBe(2);
    for (let second = 0; second < 310; second += 5) {
      clock.advance(5_000);
      await turn(20);
    }
    expect(published()).toBe(3);
    const [seen] = await memory.obstacles.observeServers();
    expect(seen?.profile?.queues).toEqual({ other: { concurrency: 7 } });
  });
});
