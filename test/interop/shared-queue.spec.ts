import { expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import type { Peer, PeerStep } from '../support/peer.js';
import { useInterop } from './fixture.js';

const TASKS = 5_000;
const WORK: PeerStep[] = [{ do: 'ok', ms: 2 }];

const idsOf = (peer: Peer, event: 'start' | 'end'): string[] =>
  peer.seen(event, { error: undefined }).map(({ id }) => id);

describeWithGo('both sides serve one queue', () => {
  const interop = useInterop();

  it(`does each of ${TASKS} tasks once, some here and some there`, async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const one = async (peer: Peer) => (await peer.enqueue({ type: 'load', queue })).id;
    const many = (peer: Peer, count: number) => Promise.all(Array.from({ length: count }, () => one(peer)));
    const servers = await Promise.all(
      [go, ours].map((peer) => interop.serve(peer, queue, { behaviours: { load: WORK } })),
    );
    const share = TASKS / 4;
    const work = [many(go, 2 * share), many(ours, share), ours.enqueueMany(share, 'load', queue)];
    const enqueued = (await Promise.all(work)).flat();
    await interop.until(async () => expect(await go.queueInfo(queue)).toMatchObject({ size: 0, processed: TASKS }));
    await Promise.all(servers.map((server) => server.shutdown()));

    const [byGo, byUs] = [idsOf(go, 'start'), idsOf(ours, 'start')];
    console.log(`shared queue: Go ran ${byGo.length}, we ran ${byUs.length} of ${TASKS}`);
    expect([...byGo, ...byUs].sort()).toEqual(enqueued.sort());
    expect([...idsOf(go, 'end'), ...idsOf(ours, 'end')].sort()).toEqual(enqueued);
    expect(Math.min(byGo.length, byUs.length)).toBeGreaterThan(TASKS / 20);
    expect(await interop.raw.keys(`asynq:{${queue}}:*`)).toEqual(
      expect.not.arrayContaining([expect.stringMatching(/:(t:|active|lease|pending)/)]),
    );
  });

  it('does tasks that fail on one side on either side in the end', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const flaky: PeerStep[] = [
      { do: 'fail', error: 'x' },
      { do: 'fail', error: 'y' },
      { do: 'ok', ms: 1 },
    ];
    await Promise.all([go, ours].map((peer) => interop.serve(peer, queue, { behaviours: { flaky } })));
    await Promise.all(
      Array.from({ length: 300 }, (_, i) => [go, ours][i % 2]!.enqueue({ type: 'flaky', queue, retention: 3_600_000 })),
    );
    await interop.until(async () => expect(await go.queueInfo(queue)).toMatchObject({ size: 300, completed: 300 }));
    expect(await go.queueInfo(queue)).toMatchObject({ processed: 900, failed: 600 });
    expect((await go.list(queue, 'completed')).every(({ retried }) => retried === 2)).toBe(true);
    const attempts = [...go.seen('start', { type: 'flaky' }), ...ours.seen('start', { type: 'flaky' })];
    expect(attempts.map(({ id, retried }) => `${id} ${retried}`)).toHaveLength(900);
    expect(new Set(attempts.map(({ id, retried }) => `${id} ${retried}`)).size).toBe(900);
  });

  it('hands back what a shut down server had not finished, in front of the queue', async () => {
    const { go, ours } = interop;
    for (const [leaving, staying] of [
      [go, ours],
      [ours, go],
    ] as const) {
      const queue = interop.queue();
      const options = { concurrency: 1, shutdownTimeout: 50 };
      const server = await interop.serve(leaving, queue, { ...options, behaviours: { t: [{ do: 'hang' }] } });
      const { id: first } = await go.enqueue({ type: 't', queue });
      await leaving.event('start', { id: first });
      const { id: second } = await ours.enqueue({ type: 't', queue });
      await server.shutdown();
      expect((await go.list(queue, 'pending')).map(({ id, retried }) => [id, retried])).toEqual([
        [first, 0],
        [second, 0],
      ]);
      await interop.serve(staying, queue, { concurrency: 1, behaviours: { t: [{ do: 'ok' }] } });
      await interop.untilGone(queue, second);
      await interop.untilGone(queue, first);
    }
  });
});
