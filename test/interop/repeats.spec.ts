import { afterAll, beforeAll, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import type { EnqueueOptions } from '../../lib/client/types.js';
import type { TaskInfo } from '../../lib/task/info.js';
import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

type Options = EnqueueOptions<unknown>;

/** The lines of the table "Beside Go" in docs/uniqueness.md. */
const FREED_BY_SUCCESS: readonly (readonly [string, Options])[] = [
  ['unique by key', { key: 'k', unique: { for: '1h', by: 'key' } }],
  ['unique by fields', { unique: { for: '1h', by: ['n'] } }],
  ['unique until it starts', { unique: { for: '1h', until: 'started' } }],
  ['latest', { key: 'k', latest: true }],
  ['supersede', { key: 'k', supersede: true }],
  ['debounce', { key: 'k', debounce: { wait: '1s' } }],
];

const FREED_BY_TIME: readonly (readonly [string, Options])[] = [
  ['throttle', { key: 'k', throttle: '1h' }],
  ['unique until it expires', { unique: { for: '1h', until: 'expired' } }],
];

describeWithGo('Go and the same task twice', () => {
  const interop = useInterop();
  let broker!: RedisBroker;
  let client!: AsynqClient;

  beforeAll(async () => {
    broker = new RedisBroker(new RedisConnections({ url: interop.redis.url }));
    client = new AsynqClient(broker);
    // A server of ours for another queue keeps the links of all.
    await interop.ours.serve({ queues: { keeping: 1 }, behaviours: { none: [{ do: 'ok' }] } });
  });
  afterAll(async () => {
    await client?.close();
    await broker?.close();
  });

  const enqueue = (queue: string, type: string, options: Options, n = 1): Promise<TaskInfo> =>
    client.enqueue(type, { n }, { queue, ...options });

  const holders = async (queue: string): Promise<string[]> =>
    (await broker.uniqueness.list(queue, undefined)).locks.map(({ owner }) => owner.id);

  it.each(FREED_BY_SUCCESS)('a Go server frees the lock at a success: %s', async (_, options) => {
    const queue = interop.queue();
    const { id } = await enqueue(queue, 'hold', options);
    expect(await holders(queue)).toEqual([id]);
    await interop.serve(interop.go, queue, { behaviours: { hold: [{ do: 'hold' }] }, delayedTaskCheckInterval: 100 });
    await interop.go.event('start', { id });
    expect(await holders(queue)).toEqual([id]);
    await interop.go.release(id);
    await interop.untilGone(queue, id);
    expect(await holders(queue)).toEqual([]);
  });

  it.each(FREED_BY_TIME)('a Go server leaves a lock that only time ends: %s', async (_, options) => {
    const queue = interop.queue();
    const { id } = await enqueue(queue, 'ok', options);
    await interop.serve(interop.go, queue, { behaviours: { ok: [{ do: 'ok' }] } });
    await interop.untilGone(queue, id);
    expect(await holders(queue)).toEqual([id]);
    const again = enqueue(queue, 'ok', options);
    if ('throttle' in options) expect(await again).toMatchObject({ id, created: false });
    else await expect(again).rejects.toMatchObject({ holder: { id, state: undefined } });
  });

  it.each([...FREED_BY_SUCCESS, ...FREED_BY_TIME])('Go’s deletion frees the lock: %s', async (_, options) => {
    const queue = interop.queue();
    const { id } = await enqueue(queue, 'ok', options);
    await interop.go.archiveTask(queue, id);
    expect(await holders(queue)).toEqual([id]);
    await interop.go.deleteTask(queue, id);
    expect(await holders(queue)).toEqual([]);
  });

  it('a Go server gets the last payload of a debounced task, under the first id', async () => {
    const queue = interop.queue();
    const debounce = { key: 'k', debounce: { wait: '1s', maxWait: '1s' } } as const;
    const { id } = await enqueue(queue, 'ok', debounce, 1);
    for (const n of [2, 3]) expect(await enqueue(queue, 'ok', debounce, n)).toMatchObject({ id, created: false });
    expect((await interop.go.taskInfo(queue, id)).payload).toBe(Buffer.from('{"n":3}').toString('base64'));
    await interop.serve(interop.go, queue, { behaviours: { ok: [{ do: 'ok' }] }, delayedTaskCheckInterval: 100 });
    const { payload } = await interop.go.event('start', { id });
    expect(payload).toBe(Buffer.from('{"n":3}').toString('base64'));
    await interop.untilGone(queue, id);
    expect(await interop.raw.keys(`asynq:{${queue}}:t:*`)).toEqual([]);
  });

  it('a Go command that runs, archives or deletes a debounced task lets the next call make a new one', async () => {
    const queue = interop.queue();
    const debounce = { key: 'k', debounce: { wait: '1h' } } as const;
    const first = await enqueue(queue, 'ok', debounce);
    await interop.go.runTask(queue, first.id);
    expect(await enqueue(queue, 'ok', debounce, 2)).toMatchObject({ id: first.id, created: false, state: 'pending' });
    await interop.go.archiveTask(queue, first.id);
    const second = await enqueue(queue, 'ok', debounce, 3);
    expect(second.created).toBe(true);
    await interop.go.deleteTask(queue, first.id); // holds the lock no more
    expect(await holders(queue)).toEqual([second.id]);
    await interop.go.deleteTask(queue, second.id);
    expect((await enqueue(queue, 'ok', debounce, 4)).created).toBe(true);
  });

  it('what follows a task on a Go server runs after it, with the last payload', async () => {
    const queue = interop.queue();
    const options = { key: 'k', latest: true } as const;
    await interop.serve(interop.go, queue, { behaviours: { hold: [{ do: 'hold' }] }, concurrency: 5 });
    const first = await enqueue(queue, 'hold', options, 1);
    await interop.go.event('start', { id: first.id });
    const second = await enqueue(queue, 'hold', options, 2);
    expect(await enqueue(queue, 'hold', options, 3)).toMatchObject({ id: second.id, created: false, state: 'waiting' });
    await interop.go.release(first.id);
    const { payload } = await interop.go.event('start', { id: second.id });
    expect(payload).toBe(Buffer.from('{"n":3}').toString('base64'));
    await interop.go.release(second.id);
    await interop.until(async () => expect(await holders(queue)).toEqual([]));
  });

  it.each(['deleteTask', 'archiveTask'] as const)(
    'what Go’s command moves is followed all the same: %s',
    async (move) => {
      const queue = interop.queue();
      const options = { key: 'k', latest: true } as const;
      await interop.serve(interop.go, queue, { behaviours: { hold: [{ do: 'hold' }] }, concurrency: 5 });
      const first = await enqueue(queue, 'hold', options, 1);
      await interop.go.event('start', { id: first.id });
      const second = await enqueue(queue, 'hold', options, 2);
      await interop.go[move](queue, second.id);
      const third = await enqueue(queue, 'hold', options, 3);
      expect(third).toMatchObject({ created: true, state: 'waiting' });
      await interop.go.release(first.id);
      await interop.go.event('start', { id: third.id });
    },
  );

  it('a Go server stops a superseded task, and retries it', async () => {
    const queue = interop.queue();
    const options = { key: 'k', supersede: true } as const;
    await interop.serve(interop.go, queue, {
      behaviours: { hang: [{ do: 'hang' }] },
      retryDelay: 3_600_000,
      concurrency: 1,
      shutdownTimeout: 100,
    });
    const first = await enqueue(queue, 'hang', options, 1);
    await interop.go.event('start', { id: first.id });
    // This server, and the one that keeps the links.
    await interop.until(async () =>
      expect(await interop.raw.pubsub('NUMSUB', 'asynq:cancel')).toEqual(['asynq:cancel', 2]),
    );
    const second = await enqueue(queue, 'hang', options, 2);
    expect(second.created).toBe(true);
    await interop.untilState(queue, first.id, 'retry');
    expect(await holders(queue)).toEqual([second.id]);
  });

  it('a task that is to run once is refused to Go, too', async () => {
    const queue = interop.queue();
    const { id } = await enqueue(queue, 'ok', { key: 'k', once: '1h' });
    await interop.serve(interop.go, queue, { behaviours: { ok: [{ do: 'ok' }] } });
    await interop.untilState(queue, id, 'completed');
    await expect(interop.go.enqueue({ type: 'ok', queue, taskId: id })).rejects.toMatchObject({ kind: 'conflict' });
    expect(await enqueue(queue, 'ok', { key: 'k', once: '1h' })).toMatchObject({
      id,
      created: false,
      state: 'completed',
    });
  });
});
