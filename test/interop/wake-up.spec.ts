import { expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

const ROUNDS = 50;
/** So far away that no poll can explain a start. */
const NEVER = 3_600_000;

const quantile = (sorted: readonly number[], share: number): number => sorted[Math.floor((sorted.length - 1) * share)]!;

describeWithGo('our idle server', () => {
  const interop = useInterop();
  const idle = (queue: string) =>
    interop.serve(interop.ours, queue, {
      taskCheckInterval: NEVER,
      delayedTaskCheckInterval: NEVER,
      behaviours: { t: [{ do: 'ok' }] },
    });

  it('starts what Go enqueues without polling', async () => {
    const queue = interop.queue();
    await idle(queue);
    const latencies: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const { id, nextProcessAt } = await interop.go.enqueue({ type: 't', queue });
      // Of a pending task Go says here when the call to Enqueue began.
      latencies.push((await interop.ours.event('start', { id })).at - nextProcessAt!);
      await interop.untilGone(queue, id);
    }
    latencies.sort((a, b) => a - b);
    const [median, p95] = [quantile(latencies, 0.5).toFixed(2), quantile(latencies, 0.95).toFixed(2)];
    console.log(`from Go's Enqueue to the start of our handler: median ${median} ms, p95 ${p95} ms, ${ROUNDS} tasks`);
    expect(latencies).toHaveLength(ROUNDS);
  });

  it('starts what Go schedules when it is due, without polling', async () => {
    const queue = interop.queue();
    await idle(queue);
    const { id } = await interop.go.enqueue({ type: 't', queue, processIn: 1500 });
    const [listed] = await interop.go.list(queue, 'scheduled');
    const late = (await interop.ours.event('start', { id })).at - listed!.nextProcessAt!;
    console.log(`from the due time to the start of our handler: ${late.toFixed(2)} ms`);
    expect(late).toBeGreaterThanOrEqual(0);
  });

  it('hears of tasks that Go runs again and of the end of a pause', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const { id: rerun } = await go.enqueue({ type: 't', queue, processIn: NEVER });
    await idle(queue);
    const { id: first } = await go.enqueue({ type: 't', queue });
    await interop.untilGone(queue, first);
    await go.runTask(queue, rerun);
    await ours.event('start', { id: rerun });
    await interop.untilGone(queue, rerun);
    await go.pause(queue);
    const { id: held } = await go.enqueue({ type: 't', queue });
    await go.unpause(queue);
    await ours.event('start', { id: held });
    await interop.untilGone(queue, held);
    expect(ours.seen('start', { queue }).map(({ id }) => id)).toEqual([first, rerun, held]);
  });
});
