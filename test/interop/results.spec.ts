import { afterAll, beforeAll, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { describeWithGo } from '../support/go.js';
import { rejection } from '../nest/support.js';
import { useInterop } from './fixture.js';

describeWithGo('results of tasks that Go runs', () => {
  const interop = useInterop();
  let client!: AsynqClient;
  let broker!: RedisBroker;

  beforeAll(() => {
    broker = new RedisBroker(new RedisConnections({ url: interop.redis.url }));
    client = new AsynqClient(broker);
  });
  afterAll(async () => {
    await client?.close();
    await broker?.close();
  });

  it('are those of its ResultWriter', async () => {
    const queue = interop.queue();
    const json = client.call('json', undefined, { queue });
    const bytes = client.call('bytes', undefined, { queue });
    const nothing = client.call('nothing', undefined, { queue });
    await interop.serve(interop.go, queue, {
      behaviours: {
        json: [{ do: 'ok', result: Buffer.from('{"pages":3}') }],
        bytes: [{ do: 'ok', result: Buffer.from([255, 0, 1]) }],
        nothing: [{ do: 'ok' }],
      },
    });
    expect(await json).toEqual({ pages: 3 });
    expect(await bytes).toEqual(Buffer.from([255, 0, 1]));
    expect(await nothing).toBeUndefined();
  });

  it('come after its retries, and are errors when it archives the task', async () => {
    const queue = interop.queue();
    await interop.serve(interop.go, queue, {
      retryDelay: 0,
      delayedTaskCheckInterval: 100,
      behaviours: {
        flaky: [
          { do: 'fail', error: 'once' },
          { do: 'ok', result: Buffer.from('2') },
        ],
        broken: [{ do: 'fail', error: 'no paper' }],
        skipped: [{ do: 'skipRetry', error: 'wrong' }],
      },
    });
    expect(await client.call('flaky', undefined, { queue })).toBe(2);
    const broken = await rejection(client.call('broken', undefined, { queue, maxRetry: 0 }));
    expect(broken).toMatchObject({ code: 'ASYNQ_TASK_FAILED', reason: 'no paper' });
    expect(await rejection(client.call('skipped', undefined, { queue }))).toMatchObject({
      code: 'ASYNQ_TASK_FAILED',
      reason: expect.stringContaining('wrong'),
    });
  });

  it('are not kept when the task that Go enqueued has no retention; deleted tasks are not found', async () => {
    const queue = interop.queue();
    const { id } = await interop.go.enqueue({ type: 'hold', queue });
    const kept = await interop.go.enqueue({ type: 'hold', queue, retention: 60_000 });
    const deleted = await interop.go.enqueue({ type: 'later', queue, processIn: 3_600_000 });
    const waits = [
      client.result({ queue, id }),
      client.result({ queue, id: kept.id }),
      client.result({ queue, id: deleted.id }),
    ];
    const outcomes = waits.map((wait) => wait.catch((error: { code: string }) => error.code));
    await interop.serve(interop.go, queue, { behaviours: { hold: [{ do: 'hold', result: Buffer.from('1') }] } });
    await interop.go.deleteTask(queue, deleted.id);
    for (const one of [id, kept.id]) {
      await interop.go.event('start', { id: one });
      await interop.go.release(one);
    }
    expect(await Promise.all(outcomes)).toEqual(['ASYNQ_RESULT_NOT_KEPT', 1, 'ASYNQ_RESULT_NOT_KEPT']);
  });

  it('are read by nobody who sees a task of ours: Go keeps it as it is told', async () => {
    const queue = interop.queue();
    await interop.serve(interop.ours, queue, { behaviours: { ok: [{ do: 'ok', result: Buffer.from('7') }] } });
    expect(await client.call('ok', undefined, { queue, taskId: 'a' })).toBe(7);
    const task = await interop.go.taskInfo(queue, 'a');
    expect(task).toMatchObject({ state: 'completed' });
  });
});
