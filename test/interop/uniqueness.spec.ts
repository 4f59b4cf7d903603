import { describe, expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import { PAIRS, useInterop } from './fixture.js';

describeWithGo('locks and ids across the border', () => {
  const interop = useInterop();

  /** Here the second side first competes for the lock, then runs the task. */
  describe.each(PAIRS)('%s first, %s second', (producer, worker) => {
    const payloads = { 'some bytes': Buffer.from([1, 255]), 'empty bytes': Buffer.alloc(0), nothing: undefined };

    it.each(Object.keys(payloads) as (keyof typeof payloads)[])('a unique task with %s is one task', async (name) => {
      const [first, second, queue] = [interop[producer], interop[worker], interop.queue()];
      const task = { type: 'once', payload: payloads[name], queue, unique: 600_000 };
      const { id } = await first.enqueue(task);
      await expect(first.enqueue(task)).rejects.toMatchObject({ kind: 'duplicate' });
      await expect(second.enqueue(task)).rejects.toMatchObject({ kind: 'duplicate' });
      await second.enqueue({ ...task, payload: Buffer.from('another'), processIn: 3_600_000 });

      const server = await interop.serve(second, queue, {
        behaviours: { once: [{ do: 'fail', error: 'x' }, { do: 'hold' }] },
      });
      await second.event('start', { id, retried: 1 });
      await expect(first.enqueue(task)).rejects.toMatchObject({ kind: 'duplicate' });
      await second.release(id);
      await interop.untilGone(queue, id);
      await server.shutdown();
      await second.enqueue(task);
      await expect(first.enqueue(task)).rejects.toMatchObject({ kind: 'duplicate' });
    });

    it('the lock of a scheduled task covers the wait', async () => {
      const [first, second, queue] = [interop[producer], interop[worker], interop.queue()];
      const task = { type: 'once', queue, unique: 10_000 };
      const { id } = await first.enqueue({ ...task, processIn: 60_000 });
      await expect(second.enqueue(task)).rejects.toMatchObject({ kind: 'duplicate' });
      const ttl = await interop.raw.ttl(`asynq:{${queue}}:unique:once:`);
      expect(ttl).toBeGreaterThan(60);
      expect(ttl).toBeLessThanOrEqual(71);
      await interop.go.deleteTask(queue, id);
      await expect(second.enqueue(task)).resolves.toMatchObject({ state: 'pending' });
    });

    it('a revoked task gives its lock back, an archived one keeps it', async () => {
      const [first, second, queue] = [interop[producer], interop[worker], interop.queue()];
      const revoked = { type: 'revoked', queue, unique: 600_000 };
      const archived = { type: 'archived', queue, unique: 600_000 };
      const { id } = await first.enqueue(revoked);
      const { id: kept } = await first.enqueue(archived);
      await interop.serve(second, queue, {
        behaviours: { revoked: [{ do: 'revoke', error: 'x' }], archived: [{ do: 'skipRetry', error: 'x' }] },
      });
      await interop.untilGone(queue, id);
      await interop.untilState(queue, kept, 'archived');
      await expect(first.enqueue(archived)).rejects.toMatchObject({ kind: 'duplicate' });
      await expect(first.enqueue({ ...revoked, processIn: 60_000 })).resolves.toMatchObject({ state: 'scheduled' });
    });

    it('an id is taken as long as the task exists, in whatever state', async () => {
      const [first, second, queue] = [interop[producer], interop[worker], interop.queue()];
      const task = { type: 't', taskId: `id:${queue} é`, queue, retention: 600_000 };
      await first.enqueue({ ...task, processIn: 3_600_000 });
      await expect(second.enqueue(task)).rejects.toMatchObject({ kind: 'conflict' });
      await interop.go.runTask(queue, task.taskId);
      await expect(second.enqueue({ ...task, group: 'g' })).rejects.toMatchObject({ kind: 'conflict' });
      await interop.serve(second, queue, { behaviours: { t: [{ do: 'ok' }] } });
      await interop.untilState(queue, task.taskId, 'completed');
      await expect(first.enqueue(task)).rejects.toMatchObject({ kind: 'conflict' });
      await interop.go.deleteTask(queue, task.taskId);
      await expect(second.enqueue({ ...task, retention: 0 })).resolves.toMatchObject({ id: task.taskId });
      await interop.untilGone(queue, task.taskId);
    });
  });
});
