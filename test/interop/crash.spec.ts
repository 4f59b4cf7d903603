import { expect, it, onTestFinished } from 'vitest';

import { describeWithGo } from '../support/go.js';
import { startGoPeer } from '../support/go-peer.js';
import { startOurPeer } from '../support/our-peer.js';
import type { Peer } from '../support/peer.js';
import { base64, PAIRS, useInterop } from './fixture.js';

const CONCURRENCY = 10;
const TASKS = 30;
const LEASE_EXPIRED = 'asynq: task lease expired';

describeWithGo('a worker is killed with kill -9', () => {
  const interop = useInterop();
  const start = { go: startGoPeer, ours: startOurPeer };

  const enqueueAll = (peer: Peer, queue: string) =>
    Promise.all(
      Array.from({ length: TASKS }, (_, i) =>
        peer.enqueue({ type: 't', queue, retention: 3_600_000, maxRetry: i % 2 }),
      ),
    );

  /** Starts a worker process and kills it while it runs as many tasks as it can. Answers the ids of those. */
  const crash = async (side: 'go' | 'ours', queue: string): Promise<string[]> => {
    const victim = await start[side](interop.redis);
    onTestFinished(() => victim.kill());
    await victim.serve({ queues: { [queue]: 1 }, concurrency: CONCURRENCY, behaviours: { t: [{ do: 'hang' }] } });
    await interop.until(async () => expect(victim.seen('start')).toHaveLength(CONCURRENCY));
    await victim.kill();
    return victim.seen('start').map(({ id }) => id);
  };

  it.each(PAIRS)('%s dies, %s takes over', async (dying, surviving) => {
    const [survivor, queue] = [interop[surviving], interop.queue()];
    const all = await enqueueAll(interop[dying], queue);
    const lost = await crash(dying, queue);
    expect(await interop.go.queueInfo(queue)).toMatchObject({ active: CONCURRENCY, pending: TASKS - CONCURRENCY });
    expect((await interop.go.list(queue, 'active')).map(({ id }) => id).sort()).toEqual(lost.sort());
    expect(await interop.expireLeases(queue)).toBe(CONCURRENCY);
    expect((await interop.go.list(queue, 'active')).every(({ isOrphaned }) => isOrphaned)).toBe(true);

    await interop.serve(survivor, queue, { behaviours: { t: [{ do: 'ok' }] } });
    await interop.until(async () => {
      const { completed, archived, size } = await interop.go.queueInfo(queue);
      expect([completed + archived, size]).toEqual([TASKS, TASKS]);
    });
    for (const { id } of all) {
      const task = await interop.go.taskInfo(queue, id);
      const [retries, wasLost] = [task.maxRetry, lost.includes(id)];
      if (!wasLost) expect(task).toMatchObject({ state: 'completed', retried: 0, lastErr: '' });
      else if (retries > 0) expect(task).toMatchObject({ state: 'completed', retried: 1, lastErr: LEASE_EXPIRED });
      else expect(task).toMatchObject({ state: 'archived', retried: 0, lastErr: LEASE_EXPIRED });
      expect(survivor.seen('start', { id })).toHaveLength(wasLost && retries === 0 ? 0 : 1);
    }
  });

  it('leaves alone what has not expired for long enough', async () => {
    const queue = interop.queue();
    await enqueueAll(interop.go, queue);
    const lost = await crash('go', queue);
    const recently = String(Math.floor(Date.now() / 1000) - 20);
    await interop.raw.zadd(`asynq:{${queue}}:lease`, 'XX', ...lost.flatMap((id) => [recently, id]));
    await interop.serve(interop.ours, queue, { behaviours: { t: [{ do: 'ok' }] } });
    await interop.until(async () =>
      expect(await interop.go.queueInfo(queue)).toMatchObject({ pending: 0, completed: TASKS - CONCURRENCY }),
    );
    expect((await interop.go.list(queue, 'active')).map(({ id }) => id).sort()).toEqual(lost.sort());
  });

  it('is taken over once when servers of both sides are there', async () => {
    const queue = interop.queue();
    await enqueueAll(interop.go, queue);
    const lost = await crash('ours', queue);
    await interop.expireLeases(queue);
    const both = [interop.go, interop.ours];
    await Promise.all(both.map((peer) => interop.serve(peer, queue, { behaviours: { t: [{ do: 'ok', ms: 2 }] } })));
    await interop.until(async () => {
      const { completed, archived } = await interop.go.queueInfo(queue);
      expect(completed + archived).toBe(TASKS);
    });
    const { archived } = await interop.go.queueInfo(queue);
    const runs = both.flatMap((peer) => peer.seen('start', { queue })).map(({ id }) => id);
    expect(new Set(runs).size).toBe(runs.length);
    expect(runs).toHaveLength(TASKS - archived);
    expect(await interop.go.queueInfo(queue)).toMatchObject({
      processed: TASKS + lost.length - archived,
      failed: lost.length,
    });
  });

  it('lets nothing come of the work of one that was only thought dead', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const result = (text: string): Buffer => Buffer.from(text);
    const server = await interop.serve(ours, queue, { behaviours: { t: [{ do: 'hold', result: result('late') }] } });
    const { id } = await go.enqueue({ type: 't', queue, retention: 3_600_000 });
    await ours.event('start', { id });
    await server.stop();
    await interop.expireLeases(queue);
    await interop.serve(go, queue, { behaviours: { t: [{ do: 'hold', result: result('right') }] } });
    await go.event('start', { id, retried: 1 });
    // The lease had ended long before Go took the task; so Go's lease cannot really be as old as ours.
    await interop.postponeLeases(queue);

    await ours.release(id);
    await ours.event('end', { id });
    await server.shutdown();
    expect(await go.taskInfo(queue, id)).toMatchObject({ state: 'active', retried: 1, result: null });
    await go.release(id);
    expect((await interop.untilState(queue, id, 'completed')).result).toBe(base64('right'));
    expect(await go.queueInfo(queue)).toMatchObject({ processed: 2, failed: 1, size: 1 });
  });
});
