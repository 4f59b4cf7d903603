import { setTimeout as passes } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { describeWithGo } from '../support/go.js';
import { startOurPeer } from '../support/our-peer.js';
import { useInterop } from './fixture.js';

/** Real time, as a Go server is there. The clock of the server is behind, so that its leases end soon. */
const BEHIND_MS = 40_000;
const BLOCKED_MS = 45_000;
const UNTIL_LOST_MS = 25_000;

describeWithGo('a handler that keeps the event loop busy', () => {
  const interop = useInterop();

  it('is run once, and so are its neighbours, while servers of both sides wait to recover them', async () => {
    const { ours, go } = interop;
    const queue = interop.queue();
    const blocked = await startOurPeer(interop.redis, -BEHIND_MS);
    onTestFinished(() => blocked.kill());
    const options = { queue, retention: 3_600_000, maxRetry: 5, timeout: 600_000 };
    const neighbour = await ours.enqueue({ type: 'hold', ...options });
    await blocked.serve({
      queues: { [queue]: 1 },
      concurrency: 2,
      behaviours: { hold: [{ do: 'hold' }], block: [{ do: 'block', ms: BLOCKED_MS }] },
    });
    await blocked.event('start', { id: neighbour.id });
    const { id } = await ours.enqueue({ type: 'block', ...options });
    await blocked.event('start', { id });
    const behaviours = { hold: [{ do: 'ok' as const }], block: [{ do: 'ok' as const }] };
    await interop.serve(ours, queue, { behaviours });
    await passes(UNTIL_LOST_MS); // without a thread both would be recoverable by now
    await interop.serve(go, queue, { behaviours }); // looks for lost leases as it starts
    await blocked.event('end', { id });
    await blocked.release(neighbour.id);
    await blocked.event('end', { id: neighbour.id });
    for (const task of [id, neighbour.id]) {
      expect(await interop.untilState(queue, task, 'completed')).toMatchObject({ retried: 0, lastErr: '' });
      expect([...ours.seen('start', { id: task }), ...go.seen('start', { id: task })]).toEqual([]);
      expect(blocked.seen('start', { id: task })).toHaveLength(1);
    }
  }, 120_000);
});
