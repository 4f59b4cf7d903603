import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { SystemClock } from '../../lib/clock.js';
import { Server } from '../../lib/server/server.js';
import { defineTask } from '../../lib/task/definition.js';
import type { TaskContext } from '../../lib/task/context.js';
import type { FairnessOptions } from '../../lib/task/fairness.js';
import { fairHeader, request } from '../support/messages.js';
import { RedisFleet } from '../support/redis-fleet.js';

interface Row {
  readonly tenant: string;
  readonly number: number;
}

describe('a fair queue of several servers', () => {
  let fleet: RedisFleet;

  beforeAll(async () => {
    fleet = await RedisFleet.start();
  });
  afterAll(() => fleet.stop());
  beforeEach(() => fleet.client.flushall());
  afterEach(() => fleet.end());

  const makeBroker = (): RedisBroker => {
    const broker = fleet.makeBroker();
    broker.fairQueues.add('imports');
    return broker;
  };

  /** Enqueues rows, starts servers, and resolves when all have run. Returns the tenants in the order of their starts. */
  async function run(
    rows: readonly Row[],
    fairness: Omit<FairnessOptions<Row>, 'key'>,
    handle: (row: Row) => unknown,
    { count = 2, concurrency = 5 } = {},
  ): Promise<string[]> {
    const ImportRow = defineTask<Row>('import:row', {
      queue: 'imports',
      fairness: { key: ({ tenant }) => tenant, ...fairness },
    });
    const enqueuing = new AsynqClient(makeBroker(), { queues: { imports: { fairness: true } } });
    const results = await enqueuing.enqueueMany(ImportRow, rows);
    expect(results.every(({ ok }) => ok)).toBe(true);
    const order: string[] = [];
    let ended = 0;
    await new Promise<void>((resolve) => {
      const handlers = [
        {
          pattern: 'import:row',
          handle: async ({ payload }: TaskContext) => {
            const row = JSON.parse(payload.toString()) as Row;
            order.push(row.tenant);
            await handle(row);
            if (++ended === rows.length) resolve();
          },
        },
      ];
      for (let index = 0; index < count; index++) {
        const options = { concurrency, queues: { imports: 1 } };
        const server = new Server({ broker: makeBroker(), handlers, options });
        fleet.servers.push(server);
        void server.start();
      }
    });
    await enqueuing.close();
    return order;
  }

  const rowsOf = (tenant: string, count: number): Row[] =>
    Array.from({ length: count }, (_, number) => ({ tenant, number }));

  it('lets no tenant delay the others', async () => {
    const small = Array.from({ length: 10 }, (_, index) => rowsOf(`small-${index}`, 5)).flat();
    const order = await run([...rowsOf('noisy', 2_000), ...small], {}, () => undefined);
    const last = order.findLastIndex((tenant) => tenant.startsWith('small'));
    // 50 small ones and as many turns of the noisy one, what two servers hold at once, and one round more.
    expect(last).toBeLessThan(150);
    expect(order).toHaveLength(2_050);
  });

  it('never exceeds the concurrency of a key, and uses it', async () => {
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    const rows = ['a', 'b', 'c'].flatMap((tenant) => rowsOf(tenant, 60));
    const limits = { concurrency: (key: string) => (key === 'a' ? 4 : 2) };
    await run(rows, limits, async ({ tenant }) => {
      running.set(tenant, (running.get(tenant) ?? 0) + 1);
      most.set(tenant, Math.max(most.get(tenant) ?? 0, running.get(tenant)!));
      await fleet.client.ping();
      running.set(tenant, running.get(tenant)! - 1);
    });
    expect(Object.fromEntries(most)).toEqual({ a: 4, b: 2, c: 2 });
  });

  it('never exceeds the rate of a key, and goes on when there is room', async () => {
    const starts = new Map<string, number[]>();
    const rows = ['a', 'b'].flatMap((tenant) => rowsOf(tenant, 15));
    await run(rows, { rate: { max: 5, per: 160 } }, ({ tenant }) => {
      starts.set(tenant, [...(starts.get(tenant) ?? []), performance.now()]);
    });
    for (const times of starts.values()) {
      expect(times).toHaveLength(15);
      // A handler begins a moment after the script has counted it.
      for (let index = 10; index < 15; index++) expect(times[index]! - times[index - 10]!).toBeGreaterThan(160);
    }
  });

  it('leaves no key behind but its counters', async () => {
    await run([...rowsOf('a', 20), ...rowsOf('b', 3)], { concurrency: 2, weight: 3 }, () => undefined);
    await Promise.all(fleet.servers.splice(0).map((server) => server.shutdown()));
    const last = makeBroker();
    await last.consumer.exchange('imports', { settle: [], take: 10 });
    expect(
      (await fleet.client.keys('asynq:{imports}:*')).filter((key) => !/:(processed|failed)(:|$)/.test(key)),
    ).toEqual([]);
  });

  it('lets a key go on at its rate that a server has held back whose clock is an hour ahead, and that is gone', async () => {
    const at = (skew: number): RedisBroker => {
      const real = new SystemClock();
      const clock = { now: () => real.now() + skew, elapsed: () => real.elapsed(), after: real.after.bind(real) };
      const broker = fleet.makeBroker({ clock });
      broker.fairQueues.add('default');
      return broker;
    };
    const share = { rate: 2, window: 100 };
    const tasks = [1, 2, 3, 4, 5, 6].map((number) => request({ id: `a-${number}`, headers: fairHeader('a', share) }));
    const hourly = [1, 2].map((number) =>
      request({ id: `b-${number}`, headers: fairHeader('b', { rate: 1, window: 3_600_000 }) }),
    );
    const ahead = at(3_600_000);
    await ahead.producer.enqueue('default', [...tasks, ...hourly]);
    const take = async (broker: RedisBroker) =>
      (await broker.consumer.exchange('default', { settle: [], take: 9 })).tasks;
    expect((await take(ahead)).map(({ lease }) => lease.id).sort()).toEqual(['a-1', 'a-2', 'b-1']);
    const right = at(0);
    const taken: string[] = [];
    await vi.waitFor(async () => {
      taken.push(...(await take(right)).map(({ lease }) => lease.id));
      expect(taken).toEqual(['a-3', 'a-4', 'a-5', 'a-6']);
    });
  });

  it('is served, and said to be fair, by a server that was not told so', async () => {
    const tasks = [1, 2, 3].map((number) => request({ id: `a-${number}`, queue: 'imports', headers: fairHeader('a') }));
    await makeBroker().producer.enqueue('imports', tasks);
    const ran: string[] = [];
    const handlers = [{ pattern: 'test:task', handle: ({ id }: TaskContext) => void ran.push(id) }];
    const options = { queues: { imports: 1 }, janitorInterval: 20 };
    const server = new Server({ broker: fleet.makeBroker(), handlers, options });
    fleet.servers.push(server);
    const found = new Promise((resolve) => server.events.on('linesFound', resolve));
    await server.start();
    expect(await found).toEqual({ queue: 'imports' });
    await vi.waitFor(() => expect(ran).toEqual(['a-1', 'a-2', 'a-3']), { timeout: 10_000 });
  });
});
