import { afterEach, beforeEach, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Server } from '../../lib/server/server.js';
import { defineTask } from '../../lib/task/definition.js';
import type { FairnessOptions } from '../../lib/task/fairness.js';
import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

interface Row {
  readonly tenant: string;
}

const rowsOf = (tenant: string, count: number): Row[] => Array.from({ length: count }, () => ({ tenant }));

describeWithGo('Go servers on a fair queue', () => {
  const interop = useInterop();
  let queue: string;
  let broker: RedisBroker;
  let server: Server | undefined;

  beforeEach(() => {
    queue = interop.queue();
    const { host, port } = interop.redis;
    broker = new RedisBroker(new RedisConnections({ host, port }));
    broker.fairQueues.add(queue);
  });
  afterEach(async () => {
    await server?.shutdown();
    server = undefined;
    await broker.close();
  });

  async function enqueue(rows: readonly Row[], limits: Omit<FairnessOptions<Row>, 'key'> = {}): Promise<void> {
    const Import = defineTask<Row>('import', { queue, fairness: { key: ({ tenant }) => tenant, ...limits } });
    const client = new AsynqClient(broker, { queues: { [queue]: { fairness: true } } });
    const results = await client.enqueueMany(Import, rows);
    expect(results.every(({ ok }) => ok)).toBe(true);
    await client.close();
  }

  /** One of ours, which serves another queue, once Go's is known. */
  async function startOurs(): Promise<void> {
    await interop.until(async () => expect(await interop.go.servers()).not.toEqual([]));
    const handlers = [{ pattern: 'import', handle: () => undefined }];
    server = new Server({ broker, handlers, options: { queues: { [`${queue}-other`]: 1 } } });
    await server.start();
  }

  const tenantsOf = (): string[] =>
    interop.go
      .seen('start', { type: 'import' })
      .filter((event) => event.queue === queue)
      .map(({ payload }) => (JSON.parse(Buffer.from(payload!, 'base64').toString()) as Row).tenant);

  it('take tasks in fair order, and lose none, when no other serves it', async () => {
    await enqueue([...rowsOf('noisy', 1_000), ...Array.from({ length: 10 }, (_, i) => rowsOf(`small-${i}`, 5)).flat()]);
    await interop.serve(interop.go, queue, { concurrency: 4, behaviours: { import: [{ do: 'ok' }] } });
    await startOurs();
    await interop.until(async () => expect(tenantsOf()).toHaveLength(1_050));
    const last = tenantsOf().findLastIndex((tenant) => tenant.startsWith('small'));
    expect(last).toBeLessThan(70);
  });

  it('keep the concurrency of a key, also beside one of ours, and go on when a task has ended', async () => {
    const { go, raw } = interop;
    await enqueue(rowsOf('a', 3), { concurrency: 2 });
    await interop.serve(go, queue, { concurrency: 10, behaviours: { import: [{ do: 'hold' }] } });
    await startOurs();
    await interop.until(async () => expect(tenantsOf()).toHaveLength(2));
    await interop.until(async () => expect(await raw.zcard(`asynq:{${queue}}:fair_held`)).toBe(1));
    expect((await broker.consumer.exchange(queue, { settle: [], take: 5 })).tasks).toEqual([]);
    expect(await go.queueInfo(queue)).toMatchObject({ active: 2, pending: 0 });
    const [first] = go.seen('start', { type: 'import', queue });
    await go.release(first!.id);
    await interop.until(async () => expect(tenantsOf()).toHaveLength(3));
    for (const { id } of go.seen('start', { type: 'import', queue }).slice(1)) await go.release(id);
    await interop.until(async () => expect(await raw.keys(`asynq:{${queue}}:fair*`)).toEqual([]));
  });

  it('retry a task in its turn', async () => {
    const flaky = [{ do: 'fail', error: 'x' }, { do: 'ok' }] as const;
    await enqueue([...rowsOf('a', 3), ...rowsOf('b', 3)], { concurrency: 2 });
    const soon = { concurrency: 4, retryDelay: 1, delayedTaskCheckInterval: 50 };
    await interop.serve(interop.go, queue, { ...soon, behaviours: { import: [...flaky] } });
    await startOurs();
    await interop.until(async () => expect(tenantsOf()).toHaveLength(12));
    await interop.until(async () => expect(await interop.raw.keys(`asynq:{${queue}}:t:*`)).toEqual([]));
  });
});
