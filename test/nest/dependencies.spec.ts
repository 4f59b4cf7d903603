import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  defineTask,
  Payload,
  PrerequisiteNotFoundError,
  SkipRetry,
  TaskHandler,
} from '../../lib/index.js';

interface Order {
  orderId: string;
}

const Capture = defineTask<Order, { captureId: string }>('payment:capture', {
  queue: 'payments',
  key: ({ orderId }) => orderId,
  rememberFor: '7d',
  maxRetry: 0,
});
const Ship = defineTask<Order>('order:ship', { key: ({ orderId }) => orderId, after: Capture });
const Report = defineTask<Order>('report');

@Injectable()
class Handlers {
  static readonly events: string[] = [];
  static fails = false;

  @TaskHandler(Capture)
  capture(@Payload() { orderId }: Order): { captureId: string } {
    if (Handlers.fails) throw new SkipRetry('card refused');
    Handlers.events.push(`captured ${orderId}`);
    return { captureId: `c-${orderId}` };
  }

  @TaskHandler(Ship)
  ship(@Payload() { orderId }: Order): void {
    Handlers.events.push(`shipped ${orderId}`);
  }

  @TaskHandler(Report)
  report(@Payload() { orderId }: Order): void {
    Handlers.events.push(`reported ${orderId}`);
  }
}

const { events } = Handlers;

async function start() {
  const module = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: 'memory', server: { queues: { default: 1, payments: 1 } } })],
    providers: [Handlers],
  }).compile();
  await module.init();
  closing.push(() => module.close());
  return { client: module.get(AsynqClient), inspector: module.get(AsynqInspector) };
}

const closing: (() => Promise<void>)[] = [];
const until = (check: () => unknown): Promise<void> =>
  expect.poll(check, { interval: 5, timeout: 10_000 }).toBeTruthy() as unknown as Promise<void>;

afterEach(async () => {
  events.length = 0;
  Handlers.fails = false;
  for (const close of closing.splice(0)) await close();
});

describe('a task after another, by definition', () => {
  it('waits for one that is enqueued later, in another queue', async () => {
    const { client, inspector } = await start();
    const info = await client.enqueue(Ship, { orderId: '7' });
    expect(info).toMatchObject({ state: 'waiting', group: '' });
    expect((await inspector.listTasks('default', 'waiting')).tasks.map(({ id }) => id)).toEqual([info.id]);
    expect(await inspector.getQueueInfo('default')).toMatchObject({ waiting: 1, aggregating: 0, groups: 0, size: 1 });
    await client.enqueue(Capture, { orderId: '8' });
    await client.enqueue(Capture, { orderId: '7' });
    await until(() => events.includes('shipped 7'));
    expect(events.indexOf('captured 7')).toBeLessThan(events.indexOf('shipped 7'));
    expect(await inspector.getQueueInfo('default')).toMatchObject({ waiting: 0 });
  });

  it('runs at once when the other has succeeded before', async () => {
    const { client } = await start();
    await client.enqueue(Capture, { orderId: '1' });
    await until(() => events.includes('captured 1'));
    await client.enqueue(Ship, { orderId: '1' });
    await until(() => events.includes('shipped 1'));
    expect(events).toEqual(['captured 1', 'shipped 1']);
  });

  it('is archived when the other fails, and revived when that is run again', async () => {
    const { client, inspector } = await start();
    Handlers.fails = true;
    const ship = await client.enqueue(Ship, { orderId: '2' });
    const capture = await client.enqueue(Capture, { orderId: '2' });
    await until(async () => (await inspector.getTaskInfo('default', ship.id))?.state === 'archived');
    expect((await inspector.getTaskInfo('default', ship.id))?.lastErr).toContain('card refused');
    Handlers.fails = false;
    await inspector.runTask('payments', capture.id);
    await until(() => events.includes('shipped 2'));
  });
});

describe('a task after single tasks', () => {
  it('runs after all of them', async () => {
    const { client } = await start();
    const first = await client.enqueue('report', { orderId: 'a' }, { processIn: 30 });
    const second = await client.enqueue(Report, { orderId: 'b' }, { processIn: 40, queue: 'payments' });
    await client.enqueue(Report, { orderId: 'c' }, { after: [first, { queue: 'payments', id: second.id }] });
    await until(() => events.includes('reported c'));
    expect(events.at(-1)).toBe('reported c');
  });

  it('is refused when one cannot be found', async () => {
    const { client, inspector } = await start();
    const gone = { queue: 'payments', id: 'gone' };
    await expect(client.enqueue(Report, { orderId: 'c' }, { after: gone, taskId: 'c' })).rejects.toThrow(
      PrerequisiteNotFoundError,
    );
    expect(await inspector.getTaskInfo('default', 'c')).toBeUndefined();
    await client.enqueue(Report, { orderId: 'd' }, { after: gone, missing: 'succeeded' });
    await until(() => events.includes('reported d'));
    const failed = await client.enqueue(Report, { orderId: 'e' }, { after: gone, missing: 'failed' });
    await until(async () => (await inspector.getTaskInfo('default', failed.id))?.state === 'archived');
  });

  it('in many: an error affects only the task it is about', async () => {
    const { client } = await start();
    const before = await client.enqueue(Report, { orderId: 'first' }, { processIn: 20 });
    const results = await client.enqueueMany([
      { task: Report, payload: { orderId: 'x' }, options: { after: before } },
      { task: Report, payload: { orderId: 'y' }, options: { after: { queue: 'default', id: 'none' } } },
      { task: Report, payload: { orderId: 'z' } },
    ]);
    expect(results.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(results[1]!.error).toBeInstanceOf(PrerequisiteNotFoundError);
    await until(() => events.includes('reported x'));
    expect(events).toContain('reported z');
    expect(events).not.toContain('reported y');
  });
});
