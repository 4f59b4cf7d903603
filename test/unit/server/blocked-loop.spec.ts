import { afterEach, describe, expect, it } from 'vitest';
import { Server } from '../../../lib/server/server.js';
import { closeRigs, gate, manualClock, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

/** Keeps the event loop busy. */
function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

describe('an event loop that stands still', () => {
  it('leaves a claim to others whose reply it reads too late', async () => {
    const clock = manualClock();
    const ran: string[] = [];
    const made = await startRig({ 'test:task': ({ id }) => void ran.push(id) }, {}, clock);
    const { consumer } = made.memory;
    const exchange = consumer.exchange.bind(consumer);
    let late = 0;
    consumer.exchange = async (queue, request) => {
      const reply = await exchange(queue, request);
      if (reply.tasks.length > 0 && late++ === 0) clock.advance(55_000); // less than the recoverer waits
      return reply;
    };
    await made.add({ id: 'late', maxRetry: 3 });
    await turn(20);
    expect([late, ran]).toEqual([1, []]);
    expect(made.server.stats()).toMatchObject({ active: 0, free: 10 });
    for (let second = 0; second < 20; second++) {
      clock.advance(1_000);
      await turn(3);
    }
    expect(ran).toEqual(['late']);
    expect(made.outcomes).toMatchObject([{ outcome: 'done', retried: 1 }]);
  });

  it('is reported with the types of the tasks that were here, when it took a second', async () => {
    const held = gate();
    const made = await startRig({
      'test:held': held.handle,
      'test:block': () => block(1_600),
      'test:short': () => block(50),
    });
    await made.add({ type: 'test:held' });
    await held.entered;
    await made.add({ type: 'test:short' });
    await made.finished(1);
    const blocked = made.next('loopBlocked');
    await made.add({ type: 'test:block' });
    const { milliseconds, types } = await blocked;
    expect(milliseconds).toBeGreaterThanOrEqual(1_000);
    expect(types).toEqual(expect.arrayContaining(['test:held']));
    expect(made.server.stats().loopDelay.max).toBeGreaterThanOrEqual(1_000);
    held.open();
  });

  it('is not watched by a server that was not started', async () => {
    const made = await startRig({ t: () => undefined });
    const other = new Server({ broker: made.memory, handlers: [{ pattern: 't', handle: () => undefined }] });
    expect(other.stats().loopDelay).toEqual({ p50: 0, p99: 0, max: 0 });
    await other.shutdown();
  });
});
