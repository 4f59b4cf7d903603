import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { describeWithGo } from '../support/go.js';
import { PAIRS, useInterop } from './fixture.js';

/** asynq polls paused queues; ours is to hear of the end of the pause, so it gets no chance to poll. */
const HOUR = 3_600_000;
const pollOf = (side: 'go' | 'ours'): number => (side === 'ours' ? HOUR : 20);

describeWithGo('one side steers, one side runs', () => {
  const interop = useInterop();

  describe.each(PAIRS)('%s steers, %s runs', (steering, running) => {
    it('a pause holds from the next task on, and its end continues at once', async () => {
      const [control, worker, queue, open] = [interop[steering], interop[running], interop.queue(), interop.queue()];
      await interop.serve(worker, [queue, open], {
        taskCheckInterval: pollOf(running),
        behaviours: { t: [{ do: 'ok' }] },
      });
      const before = await control.enqueue({ type: 't', queue });
      await interop.untilGone(queue, before.id);

      await control.pause(queue);
      expect(await interop.go.queueInfo(queue)).toMatchObject({ paused: true });
      const held = await control.enqueue({ type: 't', queue });
      // The server goes on serving its other queue, and looks at both each time.
      for (let round = 0; round < 5; round++) {
        const { id } = await control.enqueue({ type: 't', queue: open });
        await interop.untilGone(open, id);
      }
      expect((await interop.go.list(queue, 'pending')).map(({ id }) => id)).toEqual([held.id]);
      expect(worker.seen('start', { id: held.id })).toEqual([]);

      await control.unpause(queue);
      await worker.event('start', { id: held.id });
      await interop.untilGone(queue, held.id);
    });

    it('a task that runs when its queue is paused comes to its end', async () => {
      const [control, worker, queue] = [interop[steering], interop[running], interop.queue()];
      await interop.serve(worker, queue, { behaviours: { t: [{ do: 'hold' }] } });
      const { id } = await control.enqueue({ type: 't', queue });
      await worker.event('start', { id });
      await control.pause(queue);
      await worker.release(id);
      await interop.untilGone(queue, id);
      expect(await interop.go.queueInfo(queue)).toMatchObject({ paused: true, processed: 1, failed: 0, size: 0 });
    });

    it('a cancelled task fails with the text of asynq, and is retried', async () => {
      const [control, worker, queue] = [interop[steering], interop[running], interop.queue()];
      await interop.serve(worker, queue, { retryDelay: HOUR, behaviours: { t: [{ do: 'hang' }] } });
      const { id } = await control.enqueue({ type: 't', queue });
      const other = await control.enqueue({ type: 't', queue, taskId: `${id}x` });
      await worker.event('start', { id });
      await worker.event('start', { id: other.id });
      await interop.untilSubscribed();
      await control.cancel(id);
      expect((await worker.event('end', { id })).error).toBe('context canceled');
      expect(await interop.untilState(queue, id, 'retry')).toMatchObject({ retried: 1, lastErr: 'context canceled' });
      expect((await interop.go.taskInfo(queue, other.id)).state).toBe('active');
      await control.cancel(other.id);
      await interop.untilState(queue, other.id, 'retry');
    });

    it('the last cancellation archives', async () => {
      const [control, worker, queue] = [interop[steering], interop[running], interop.queue()];
      await interop.serve(worker, queue, { behaviours: { t: [{ do: 'hang' }] } });
      const { id } = await control.enqueue({ type: 't', queue, maxRetry: 0 });
      await worker.event('start', { id });
      await interop.untilSubscribed();
      await control.cancel(id);
      expect((await interop.untilState(queue, id, 'archived')).lastErr).toBe('context canceled');
    });
  });

  it.each([
    ['go', { state: 'retry', retried: 1, lastErr: 'context canceled' }],
    ['ours', { state: 'archived', retried: 0, lastErr: 'withdrawn' }],
  ] as const)('a reason and an outcome of ours, for a task that runs on %s', async (running, expected) => {
    const { host, port } = interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }));
    onTestFinished(() => broker.close());
    const [worker, queue] = [interop[running], interop.queue()];
    await interop.serve(worker, queue, { retryDelay: HOUR, behaviours: { t: [{ do: 'hang' }] } });
    const { id } = await interop.go.enqueue({ type: 't', queue });
    await worker.event('start', { id });
    await interop.untilSubscribed();
    await new AsynqInspector(broker).cancelProcessing(id, { reason: 'withdrawn', outcome: 'archive' });
    expect((await worker.event('end', { id })).error).toBe(expected.lastErr);
    expect(await interop.untilState(queue, id, expected.state)).toMatchObject(expected);
  });

  it.each(['go', 'ours'] as const)('Go runs an archived task again, on %s', async (running) => {
    const [worker, queue] = [interop[running], interop.queue()];
    const { id } = await interop.ours.enqueue({ type: 't', queue, maxRetry: 1, retention: HOUR });
    await interop.go.archiveTask(queue, id);
    await interop.serve(worker, queue, { behaviours: { t: [{ do: 'fail', error: 'once' }, { do: 'ok' }] } });
    await interop.go.runTask(queue, id);
    expect(await interop.untilState(queue, id, 'completed')).toMatchObject({ retried: 1, lastErr: 'once' });
    await interop.go.runTask(queue, id);
    await interop.until(async () => expect(worker.seen('start', { id })).toHaveLength(3));
  });
});
