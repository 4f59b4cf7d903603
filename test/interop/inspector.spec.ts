import { hostname } from 'node:os';

import { expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import { base64, useInterop } from './fixture.js';

/** Field 200 of a message to come, as protobuf: three bytes. */
const UNKNOWN_FIELD = Buffer.from([0xc2, 0x0c, 3, 1, 2, 255]);

describeWithGo("Go's inspector and what we write", () => {
  const interop = useInterop();
  const taskKey = (queue: string, id: string): string => `asynq:{${queue}}:t:${id}`;

  it('lists our server with its workers, until it is shut down', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const before = Date.now();
    const server = await ours.serve({
      queues: { [queue]: 6, another: 3 },
      concurrency: 7,
      strictPriority: true,
      behaviours: { t: [{ do: 'hold' }] },
    });
    const payload = Buffer.from([0, 255]);
    const { id } = await go.enqueue({ type: 't', queue, payload, timeout: 60_000 });
    await ours.event('start', { id });
    const [seen] = await interop.until(async () => {
      const servers = await go.servers();
      expect(servers[0]?.workers).toHaveLength(1);
      return servers;
    });
    expect(seen).toMatchObject({
      host: hostname(),
      pid: ours.pid,
      concurrency: 7,
      queues: { [queue]: 6, another: 3 },
      strictPriority: true,
      status: 'active',
      workers: [{ taskId: id, taskType: 't', taskPayload: base64(payload), queue }],
    });
    const { started, deadline } = seen!.workers[0]!;
    expect(seen!.started).toBeGreaterThanOrEqual(before - 1);
    expect(started).toBeGreaterThanOrEqual(seen!.started);
    expect(Math.abs(deadline - started - 60_000)).toBeLessThanOrEqual(1000);

    await server.stop();
    await interop.until(async () => expect((await go.servers())[0]).toMatchObject({ status: 'stopped' }));
    await ours.release(id);
    await interop.untilGone(queue, id);
    await server.shutdown();
    expect(await go.servers()).toEqual([]);
    expect(await interop.raw.keys('asynq:{servers,workers}*')).toEqual([]);
  });

  it('keeps fields of a newer asynq through retry, archive and completion', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const add = async (type: string, maxRetry: number): Promise<string> => {
      const { id } = await go.enqueue({ type, queue, maxRetry, retention: 3_600_000, headers: { k: 'v' } });
      const key = taskKey(queue, id);
      await interop.raw.hset(key, {
        msg: Buffer.concat([(await interop.raw.hgetBuffer(key, 'msg'))!, UNKNOWN_FIELD]),
        own: 'x',
      });
      return id;
    };
    const [retried, archived, completed] = [await add('fail', 9), await add('fail', 0), await add('ok', 0)];
    await interop.serve(ours, queue, {
      retryDelay: 3_600_000,
      behaviours: { fail: [{ do: 'fail', error: 'no' }], ok: [{ do: 'ok' }] },
    });
    for (const [id, state] of [
      [retried, 'retry'],
      [archived, 'archived'],
      [completed, 'completed'],
    ] as const) {
      expect(await interop.untilState(queue, id, state)).toMatchObject({ headers: { k: 'v' } });
      const stored = await interop.raw.hgetallBuffer(taskKey(queue, id));
      expect(stored['msg']!.includes(UNKNOWN_FIELD)).toBe(true);
      expect(stored['own']?.toString()).toBe('x');
    }
  });

  it('can read what we store of an error that is not valid text', async () => {
    const queue = interop.queue();
    const { id } = await interop.go.enqueue({ type: 't', queue });
    await interop.serve(interop.ours, queue, {
      retryDelay: 3_600_000,
      behaviours: { t: [{ do: 'fail', error: '\ud800 half' }] },
    });
    expect((await interop.untilState(queue, id, 'retry')).lastErr).toBe('\ufffd half');
    expect(await interop.go.list(queue, 'retry')).toHaveLength(1);
  });

  it('is not disturbed by a damaged message that we put out of the way', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const { id: damaged } = await go.enqueue({ type: 't', queue });
    const bytes = Buffer.from([0x0a, 0xff, 0x01]);
    await interop.raw.hset(taskKey(queue, damaged), { msg: bytes });
    const { id } = await go.enqueue({ type: 't', queue });
    await interop.serve(ours, queue, { behaviours: { t: [{ do: 'ok' }] } });
    await interop.untilGone(queue, id);
    await interop.until(async () => expect(await go.queueInfo(queue)).toMatchObject({ size: 1, archived: 1 }));
    expect(await interop.raw.hgetBuffer(taskKey(queue, damaged), 'msg')).toEqual(bytes);
    expect(await go.list(queue, 'archived')).toEqual([]);
    expect(ours.seen('start', { id: damaged })).toEqual([]);
  });

  it('counts the attempts of both sides alike', async () => {
    const queue = interop.queue();
    const sides = [interop.go, interop.ours];
    const behaviours = { ok: [{ do: 'ok' }], fail: [{ do: 'fail', error: 'x' }], revoke: [{ do: 'revoke' }] } as const;
    for (const [index, peer] of sides.entries()) {
      const server = await interop.serve(peer, queue, { behaviours: structuredClone(behaviours) as never });
      for (const type of ['ok', 'ok', 'fail', 'revoke']) await sides[1 - index]!.enqueue({ type, queue, maxRetry: 2 });
      const [processed, failed, archived] = [6, 3, 1].map((count) => count * (index + 1));
      await interop.until(async () =>
        expect(await interop.go.queueInfo(queue)).toMatchObject({ processed, failed, archived, size: archived }),
      );
      await server.shutdown();
    }
    const today = new Date().toISOString().slice(0, 10);
    expect(await interop.go.history(queue, 1)).toEqual([{ date: today, processed: 12, failed: 6 }]);
    expect(await interop.go.queueInfo(queue)).toMatchObject({ processedTotal: 12, failedTotal: 6 });
  });
});
