import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  AsynqServer,
  defineTask,
  DuplicateTaskError,
  InjectTasks,
  type TaskContext,
  TaskHandler,
  type TasksOf,
} from 'nestjs-asynq';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { quiet } from './support.js';

interface Order {
  orderId: string;
  n: number;
}
const options = { key: (order: Order) => order.orderId };
const Sync = defineTask<Order, string>('order:sync', { ...options, latest: true });
const Recount = defineTask<Order>('order:recount', { ...options, supersede: true });
const Started = defineTask<Order>('order:started', {
  ...options,
  unique: { for: '1h', by: 'key', until: 'started', onDuplicate: 'existing' },
});
const Charge = defineTask<Order>('order:charge', { ...options, once: '14d' });

/** A handler that runs until it is told to end. */
class Gate {
  readonly runs: { readonly n: number; readonly signal: AbortSignal; end(): void }[] = [];
  private waiting: (() => void)[] = [];

  async run({ n }: Order, { signal }: TaskContext): Promise<string> {
    await new Promise<void>((resolve) => {
      this.runs.push({ n, signal, end: resolve });
      signal.addEventListener('abort', () => resolve());
      for (const wake of this.waiting.splice(0)) wake();
    });
    return `done ${n}`;
  }

  /** The run of this number, once it has begun. */
  async begun(index: number) {
    while (this.runs.length <= index) await new Promise<void>((wake) => this.waiting.push(wake));
    return this.runs[index]!;
  }
}

const gate = new Gate();

class OrderTasks {
  @TaskHandler(Sync)
  sync(order: Order, task: TaskContext): Promise<string> {
    return gate.run(order, task);
  }

  @TaskHandler(Recount)
  async recount(order: Order, task: TaskContext): Promise<void> {
    await gate.run(order, task);
  }

  @TaskHandler(Started)
  async started(order: Order, task: TaskContext): Promise<void> {
    await gate.run(order, task);
  }

  @TaskHandler(Charge)
  charge(_order: Order): void {}
}

class Shop {
  constructor(@InjectTasks(OrderTasks) readonly tasks: TasksOf<OrderTasks>) {}
}

let redis: RedisProcess;
let app: INestApplicationContext;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
afterEach(async () => {
  for (const run of gate.runs.splice(0)) run.end();
  await app.close();
});

async function boot(kind: string) {
  const connection = kind === 'memory' ? ('memory' as const) : { url: redis.url };
  const settings = { connection, keyPrefix: `t${Math.random()}`, server: { concurrency: 4 } };
  app = await Test.createTestingModule({
    imports: [AsynqModule.forRoot(settings)],
    providers: [OrderTasks, Shop],
  })
    .setLogger(quiet)
    .compile();
  await app.init();
  return {
    client: app.get(AsynqClient),
    inspector: app.get(AsynqInspector),
    shop: app.get(Shop),
    server: app.get(AsynqServer),
  };
}

describe.each(['memory', 'redis'])('a repeat with %s', (kind) => {
  it('follows the one that runs with the last payload, and there is never a third', async () => {
    const { client, inspector } = await boot(kind);
    const one = await client.enqueue(Sync, { orderId: 'a', n: 1 });
    expect(one.created).toBe(true);
    const running = await gate.begun(0);
    const two = await client.enqueue(Sync, { orderId: 'a', n: 2 });
    const three = await client.enqueue(Sync, { orderId: 'a', n: 3 });
    expect([two.created, two.state, three.created, three.id]).toEqual([true, 'waiting', false, two.id]);
    expect(JSON.stringify(three)).toContain('"created":false');
    const { locks } = await inspector.locks('default');
    expect(locks).toMatchObject([
      { name: 'order:sync:a:last', holder: { id: two.id, state: 'waiting', type: 'order:sync' } },
    ]);
    running.end();
    const follower = await gate.begun(1);
    expect(follower.n).toBe(3);
    const other = await client.enqueue(Sync, { orderId: 'b', n: 4 });
    expect(other.created).toBe(true); // of another key
    expect((await gate.begun(2)).n).toBe(4);
  });

  it('cancels the one that runs', async () => {
    const { client, inspector } = await boot(kind);
    const one = await client.enqueue(Recount, { orderId: 'a', n: 1 });
    const running = await gate.begun(0);
    const two = await client.enqueue(Recount, { orderId: 'a', n: 2 });
    expect(two.created).toBe(true);
    expect((await gate.begun(1)).n).toBe(2);
    if (!running.signal.aborted) await new Promise((wake) => running.signal.addEventListener('abort', wake));
    expect(String(running.signal.reason)).toContain(`superseded by task "${two.id}"`);
    await deletionOf(inspector, one.id);
  });

  it('frees a lock before the handler begins', async () => {
    const { client, inspector } = await boot(kind);
    await client.enqueue(Started, { orderId: 'a', n: 1 });
    await gate.begun(0);
    expect((await inspector.locks('default')).locks).toEqual([]);
    const two = await client.enqueue(Started, { orderId: 'a', n: 2 });
    expect(two.created).toBe(true);
    expect((await gate.begun(1)).n).toBe(2);
  });

  it('of method calls and of many tasks gets the existing task', async () => {
    const { client, shop, server } = await boot(kind);
    server.pauseFetching();
    const first = await shop.tasks.charge({ orderId: 'a', n: 1 });
    const results = await client.enqueueMany(Charge, [
      { orderId: 'a', n: 2 },
      { orderId: 'b', n: 3 },
      { orderId: 'b', n: 4 },
    ]);
    expect(results.map(({ info }) => [info?.id, info?.created])).toEqual([
      [first.id, false],
      ['order:charge~once~b', true],
      ['order:charge~once~b', false],
    ]);
    const again = await shop.tasks.with({ key: 'c' }).charge({ orderId: 'a', n: 5 });
    expect(again).toMatchObject({ id: 'order:charge~once~c', created: true });
  });

  it('that is refused names the task in the way', async () => {
    const { client } = await boot(kind);
    const later = { processIn: '1h', unique: '1h' } as const;
    const { id } = await client.enqueue('mail', { to: 1 }, later);
    const refused = await client.enqueue('mail', { to: 1 }, later).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DuplicateTaskError);
    expect(refused).toMatchObject({ holder: { id, queue: 'default', state: 'scheduled' } });
    expect(String(refused)).toContain(`task "${id}" of type "mail", which is scheduled, holds the unique lock`);
    const [many] = await client.enqueueMany('mail', [{ to: 1 }], later);
    expect(many?.error).toMatchObject({ holder: { id } });
  });
});

/** Until the task is deleted. */
async function deletionOf(inspector: AsynqInspector, id: string): Promise<void> {
  while (await inspector.getTaskInfo('default', id)) await new Promise((next) => setImmediate(next));
}
