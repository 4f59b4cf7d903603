import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqInspector,
  defineTask,
  InvalidOptionError,
  Payload,
  QueueNotFoundError,
  TaskCtx,
  TaskHandler,
  type TaskContext,
} from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { rejection, testApp } from '../nest/support.js';

interface Order {
  id: string;
  n: number;
}
const key = ({ id }: Order) => id;
const Debounced = defineTask<Order>('debounced', { key, debounce: { wait: '2s', maxWait: '5s' } });
const Throttled = defineTask<Order>('throttled', { key, throttle: '1m' });
const Once = defineTask<Order>('once', { key, once: '14d' });
const Latest = defineTask<Order>('latest', { key, latest: true, timeout: '10s', maxRetry: 0 });
const Superseding = defineTask<Order>('superseding', { key, supersede: true, timeout: '10s' });
const Started = defineTask<Order>('started', { key, unique: { for: '1h', by: 'key', until: 'started' } });

@Injectable()
class Handlers {
  readonly ran: number[] = [];
  readonly reasons: string[] = [];

  constructor(private readonly client: AsynqClient) {}

  @TaskHandler(Debounced)
  debounced(@Payload() { n }: Order) {
    this.ran.push(n);
  }

  @TaskHandler(Throttled)
  throttled(@Payload() { n }: Order) {
    this.ran.push(n);
  }

  @TaskHandler(Once)
  once(@Payload() { n }: Order) {
    this.ran.push(n);
  }

  @TaskHandler(Latest)
  async latest(@Payload() { n }: Order, @TaskCtx() { signal }: TaskContext) {
    this.ran.push(n);
    if (n === 1) await aborted(signal);
  }

  @TaskHandler(Superseding)
  async superseding(@Payload() { n }: Order, @TaskCtx() { signal }: TaskContext) {
    this.ran.push(n);
    if (n > 1) return;
    void this.client.enqueue(Superseding, { id: 'a', n: n + 1 });
    await aborted(signal).catch((error: Error) => {
      this.reasons.push(error.message);
      throw error;
    });
  }

  @TaskHandler(Started, { batch: { size: 10, wait: '30s' } })
  started(@Payload() orders: Order[]) {
    this.ran.push(orders.length);
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

let tasks: AsynqTester;
let client: AsynqClient;
let handlers: Handlers;
let inspector: AsynqInspector;

beforeEach(async () => {
  const made = await testApp({ providers: [Handlers] }, { server: { concurrency: 3 } });
  tasks = made.tasks;
  client = made.app.get(AsynqClient);
  handlers = made.app.get(Handlers);
  inspector = made.app.get(AsynqInspector);
});

describe('a test of the same task twice', () => {
  it('runs a debounced task after its last call, or the longest wait, with the last payload', async () => {
    await client.enqueue(Debounced, { id: 'a', n: 1 });
    await tasks.advance('1s');
    await client.enqueue(Debounced, { id: 'a', n: 2 });
    expect(await tasks.advance('1s')).toMatchObject({ total: 0 });
    await tasks.advance('1s');
    expect(handlers.ran).toEqual([2]);
    for (let n = 3; n < 10; n++) {
      await client.enqueue(Debounced, { id: 'b', n });
      await tasks.advance('1s');
    }
    expect(handlers.ran).toEqual([2, 7]);
  });

  it('drops what a throttle does not let through', async () => {
    for (const n of [1, 2, 3]) await client.enqueue(Throttled, { id: 'a', n });
    await tasks.drain();
    expect((await client.enqueue(Throttled, { id: 'a', n: 4 })).created).toBe(false);
    await tasks.advance('1m');
    await client.enqueue(Throttled, { id: 'a', n: 5 });
    await tasks.drain();
    expect(handlers.ran).toEqual([1, 5]);
  });

  it('runs a task once in its time, and again after it', async () => {
    for (const n of [1, 2]) await client.enqueue(Once, { id: 'a', n });
    expect(await tasks.drain()).toMatchObject({ done: 1 });
    await tasks.advance('13d');
    expect(await client.enqueue(Once, { id: 'a', n: 3 })).toMatchObject({ created: false, state: 'completed' });
    await tasks.advance('2d');
    await client.enqueue(Once, { id: 'a', n: 4 });
    await tasks.drain();
    expect(handlers.ran).toEqual([1, 4]);
  });

  it('lets the last one follow the one that runs', async () => {
    await client.enqueue(Latest, { id: 'a', n: 1 });
    const run = tasks.advance('1m');
    await expect.poll(() => handlers.ran, { interval: 1 }).toEqual([1]);
    for (const n of [2, 3]) await client.enqueue(Latest, { id: 'a', n });
    expect(tasks.waiting(Latest)).toMatchObject([{ payload: { n: 3 } }]);
    expect(await run).toMatchObject({ archived: 1, done: 1, left: [] });
    expect(handlers.ran).toEqual([1, 3]);
  });

  it('cancels the one that is superseded', async () => {
    await client.enqueue(Superseding, { id: 'a', n: 1 });
    expect(await tasks.drain()).toMatchObject({ done: 1, revoked: 1, left: [] });
    expect(handlers.ran).toEqual([1, 2]);
    expect(handlers.reasons).toMatchObject([expect.stringContaining('superseded by task')]);
    expect(tasks.all()).toEqual([]);
  });

  it('frees a lock when a handler begins, also one that takes batches', async () => {
    for (const id of 'abcdef') await client.enqueue(Started, { id, n: 1 });
    expect(await tasks.drain()).toMatchObject({ done: 6, left: [] });
    expect(handlers.ran).toEqual([6]);
  });

  it('shows who holds a lock, and when it ends', async () => {
    const { id } = await client.enqueue(Throttled, { id: 'a', n: 1 });

    expect((await inspector.locks('default')).locks).toMatchObject([{ holder: { id } }]);
    await tasks.advance('1m');
    expect((await inspector.locks('default')).locks).toEqual([]);
  });
});

describe('releaseLock', () => {
  it('lets the next task through, only while the task that was seen holds the lock', async () => {
    const first = await client.enqueue(Throttled, { id: 'a', n: 1 });
    await tasks.drain();
    const seen = (await inspector.locks('default')).locks[0]!;
    expect(seen.holder).toEqual({ id: first.id, state: undefined, type: undefined });
    expect((await client.enqueue(Throttled, { id: 'a', n: 2 })).created).toBe(false);

    expect(await inspector.releaseLock('default', seen)).toBe(true);
    expect(await inspector.releaseLock('default', seen)).toBe(false);
    const second = await client.enqueue(Throttled, { id: 'a', n: 3 });
    expect(second.created).toBe(true);
    expect(await inspector.releaseLock('default', seen)).toBe(false);
    expect((await inspector.locks('default')).locks).toMatchObject([{ holder: { id: second.id } }]);
    await tasks.drain();
    expect(handlers.ran).toEqual([1, 3]);
  });

  it('refuses what is no lock, and an unknown queue', async () => {
    const lock = { name: 'x:k:key', holder: { id: 'a' } };
    await expect(inspector.releaseLock('nowhere', lock)).rejects.toBeInstanceOf(QueueNotFoundError);
    for (const wrong of [{ ...lock, name: ' ' }, { ...lock, holder: { id: '' } }, { name: 'x:k:key' }, undefined]) {
      await expect(inspector.releaseLock('default', wrong as never)).rejects.toBeInstanceOf(InvalidOptionError);
    }
  });
});

describe('work', () => {
  it('runs a debounced task at once, and others as they are', async () => {
    expect(await tasks.work(Debounced, { id: 'a', n: 1 })).toMatchObject({ outcome: 'done' });
    expect(await tasks.work('debounced', { id: 'b', n: 2 }, { key: 'b', debounce: { wait: '1h' } })).toMatchObject({
      outcome: 'done',
    });
    expect(await tasks.work(Once, { id: 'a', n: 3 })).toMatchObject({ outcome: 'completed' });
    expect(handlers.ran).toEqual([1, 2, 3]);
  });

  it('says that there is such a task', async () => {
    const { task } = await tasks.work(Once, { id: 'a', n: 1 });
    expect((await rejection(tasks.work(Once, { id: 'a', n: 1 }))).message).toBe(
      `work: there is such a task "once" already (id ${task.id}), and its state is "completed"; advance the clock, or use another key`,
    );
  });
});
