import { expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import { useGo } from './fixture.js';

describeWithGo('the Go peer', () => {
  const peer = useGo();

  it('enqueues, runs and inspects', async () => {
    const payload = Buffer.from([0, 255, 128]);
    const { id, state } = await peer.go.enqueue({
      type: 'a:b',
      payload,
      queue: 'q',
      retention: 60_000,
      headers: { k: 'v' },
    });
    expect(state).toBe('pending');
    const server = await peer.go.serve({
      queues: { q: 1 },
      behaviours: { 'a:': [{ do: 'ok', result: Buffer.from('r') }] },
    });
    const start = await peer.go.event('start', { id });
    expect(start).toMatchObject({ type: 'a:b', queue: 'q', payload: payload.toString('base64'), headers: { k: 'v' } });
    await peer.go.event('end', { id });
    await server.shutdown();
    expect(await peer.go.taskInfo('q', id)).toMatchObject({
      state: 'completed',
      result: Buffer.from('r').toString('base64'),
    });
    expect(await peer.go.queueInfo('q')).toMatchObject({ processed: 1, failed: 0, completed: 1, size: 1 });
  });

  it('answers errors with the kind of asynq', async () => {
    await peer.go.enqueue({ type: 't', taskId: 'twice', queue: 'errors' });
    await expect(peer.go.enqueue({ type: 't', taskId: 'twice', queue: 'errors' })).rejects.toMatchObject({
      kind: 'conflict',
    });
    await expect(peer.go.taskInfo('errors', 'none')).rejects.toMatchObject({ kind: 'task not found' });
  });
});
