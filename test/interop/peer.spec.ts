import { afterAll, beforeAll, expect, it } from 'vitest';

import { BUILD_TIMEOUT, describeWithGo } from '../support/go.js';
import { type GoPeer, startGoPeer } from '../support/go-peer.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

describeWithGo('the Go peer', () => {
  let redis: RedisProcess;
  let go: GoPeer;

  beforeAll(async () => {
    redis = await startRedis();
    go = await startGoPeer(redis);
  }, BUILD_TIMEOUT);

  afterAll(async () => {
    await go?.kill();
    await redis?.stop();
  });

  it('enqueues, runs and inspects', async () => {
    const payload = Buffer.from([0, 255, 128]);
    const { id, state } = await go.enqueue({
      type: 'a:b',
      payload,
      queue: 'q',
      retention: 60_000,
      headers: { k: 'v' },
    });
    expect(state).toBe('pending');
    const server = await go.serve({ queues: { q: 1 }, behaviours: { 'a:': [{ do: 'ok', result: Buffer.from('r') }] } });
    const start = await go.event('start', { id });
    expect(start).toMatchObject({ type: 'a:b', queue: 'q', payload: payload.toString('base64'), headers: { k: 'v' } });
    await go.event('end', { id });
    await server.shutdown();
    expect(await go.taskInfo('q', id)).toMatchObject({
      state: 'completed',
      result: Buffer.from('r').toString('base64'),
    });
    expect(await go.queueInfo('q')).toMatchObject({ processed: 1, failed: 0, completed: 1, size: 1 });
  });

  it('answers errors with the kind of asynq', async () => {
    await go.enqueue({ type: 't', taskId: 'twice', queue: 'errors' });
    await expect(go.enqueue({ type: 't', taskId: 'twice', queue: 'errors' })).rejects.toMatchObject({
      kind: 'conflict',
    });
    await expect(go.taskInfo('errors', 'none')).rejects.toMatchObject({ kind: 'task not found' });
  });
});
