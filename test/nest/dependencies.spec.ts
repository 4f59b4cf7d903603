import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
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
import { type RedisProcess, startRedis } from '../support/redis.js';

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

let redis: RedisProcess;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(() => redis.stop());

let prefixes = 0;

async function start(kind: 'memory' | 'redis') {
  const { host, port } = redis;
  const connection = kind === 'memory' ? kind : { host, port };
  const server = { queues: { default: 1, payments: 1 } };
  const keyPrefix = `asynq-${++prefixes}`;
  const module = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection, keyPrefix, server })],
    providers: [Handlers],
  }).compile();
  await module.init();
  closing.push(() => module.close());
  return { client: module.get(AsynqClient), inspector: module.get(AsynqInspector) };
}

const closing: (() => Promise<void>)[] = [];
const until = (check: () => unknown): Promise<void> =>
  expect.poll(check, { interval: 5 }).toBeTruthy() as unknown as Promise<void>;

afterEach(async () => {
  events.length = 0;
  Handlers.fails = false;
  for (const close of closing.splice(0)) await close();
});

describe.each(['memory', 'redis'] as const)('a task after another, by definition, in %s', (kind) => {
  it('waits for one that is enqueued later, in another queue', async () => {
    const { client, inspector } = await start(kind);
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
    const { client } = await start(kind);
    await client.enqueue(Capture, { orderId: '1' });
    await until(() => events.includes('captured 1'));
    await client.enqueue(Ship, { orderId: '1' });
    await until(() => events.includes('shipped 1'));
    expect(events).toEqual(['captured 1', 'shipped 1']);
  });

  it('is archived when the other fails, and revived when that is run again', async () => {
    const { client, inspector } = await start(kind);
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

describe.each(['memory', 'redis'] as const)('a task after single tasks, in %s', (kind) => {
  it('runs after all of them', async () => {
    const { client } = await start(kind);
    const first = await client.enqueue('report', { orderId: 'a' }, { processIn: 30 });
    const second = await client.enqueue(Report, { orderId: 'b' }, { processIn: 40, queue: 'payments' });
    await client.enqueue(Report, { orderId: 'c' }, { after: [first, { queue: 'payments', id: second.id }] });
    await until(() => events.includes('reported c'));
    expect(events.at(-1)).toBe('reported c');
  });

  it('is refused when one cannot be found', async () => {
    const { client, inspector } = await start(kind);
    const gone = { queue: 'payments', id: 'gone' };
    await expect(client.enqueue(Report, { orderId: 'c' }, { after: gone, taskId: 'c' })).rejects.toThrow(
      PrerequisiteNotFoundError,
    );
    expect(await inspector.getTaskInfo('default', 'c')).toBeUndefined();
    const run = { queue: 'default', id: 'order:fulfil/17' };
    await expect(client.enqueue(Report, { orderId: 'c' }, { after: run })).rejects.toThrow(
      'If this is a run of a workflow: it is no task. Make the task a step of the run',
    );
    await client.enqueue(Report, { orderId: 'd' }, { after: gone, missing: 'succeeded' });
    await until(() => events.includes('reported d'));
    const failed = await client.enqueue(Report, { orderId: 'e' }, { after: gone, missing: 'failed' });
    await until(async () => (await inspector.getTaskInfo('default', failed.id))?.state === 'archived');
  });

  it('in many: an error affects only the task it is about', async () => {
    const { client } = await start(kind);
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

describe.each(['memory', 'redis'] as const)('what an operator does with waiting tasks, in %s', (kind) => {
  const later = { processIn: '1h' } as const;

  it('shows what a task waits for, and until when', async () => {
    const { client, inspector } = await start(kind);
    const first = await client.enqueue(Report, { orderId: 'a' }, later);
    const info = await client.enqueue(Report, { orderId: 'b' }, { after: first, waitAtMost: '2h', onTimeout: 'run' });
    const prerequisite = { queue: 'default', id: first.id };
    expect(await inspector.waits('default', info.id)).toEqual({
      prerequisites: [{ prerequisite, state: 'waiting', reason: undefined, paused: false }],
      onFailure: 'cancel',
      onTimeout: 'run',
      until: info.nextProcessAt,
      cancelled: false,
    });
    expect(await inspector.waits('default', first.id)).toBeUndefined();
    await inspector.pauseQueue('default');
    expect(await inspector.waits('default', info.id)).toMatchObject({
      prerequisites: [{ prerequisite, paused: true }],
    });
    await inspector.unpauseQueue('default');
    expect(await inspector.getTaskInfo('default', info.id)).toMatchObject({
      state: 'waiting',
      nextProcessAt: info.nextProcessAt,
    });
    const found = await inspector.searchTasks('default', 'waiting', { type: 'report' });
    expect(found.tasks.map(({ id }) => id)).toEqual([info.id]);
    await expect(inspector.rescheduleTask('default', info.id, '1h')).rejects.toThrow(/waits for other tasks/);
    await inspector.updateTaskPayload('default', info.id, { orderId: 'edited' });
    await inspector.runTask('default', info.id, { state: 'waiting' });
    await until(() => events.includes('reported edited'));
    expect(events).not.toContain('reported a');
  });

  it.each(['archiveTask', 'deleteTask'] as const)('fails those that wait for a task after %s', async (action) => {
    const { client, inspector } = await start(kind);
    const first = await client.enqueue(Report, { orderId: 'a' }, { ...later, queue: 'payments' });
    const waiting = await client.enqueue(Report, { orderId: 'b' }, { after: first });
    const cleanUp = await client.enqueue(Report, { orderId: 'c' }, { after: first, onFailure: 'run' });
    await inspector[action]('payments', first.id);
    await until(() => events.includes('reported c'));
    await until(async () => (await inspector.getTaskInfo('default', waiting.id))?.state === 'archived');
    expect(await inspector.waits('default', waiting.id)).toMatchObject({
      cancelled: true,
      until: undefined,
      prerequisites: [{ state: 'failed', reason: expect.any(String) as string }],
    });
    await until(async () => (await inspector.getTaskInfo('default', cleanUp.id)) === undefined);
  });

  it('deletes all waiting tasks at once, and tells those that wait for them', async () => {
    const { client, inspector } = await start(kind);
    const first = await client.enqueue(Report, { orderId: 'a' }, { ...later, queue: 'payments' });
    const second = await client.enqueue(Report, { orderId: 'b' }, { after: first, queue: 'payments' });
    await client.enqueue(Report, { orderId: 'c' }, { after: second, onFailure: 'run' });
    expect(await inspector.deleteAllTasks('payments', 'waiting')).toEqual({ moved: 1, skipped: 0 });
    await until(() => events.includes('reported c'));
    expect(await inspector.getQueueInfo('payments')).toMatchObject({ waiting: 0, scheduled: 1 });
  });
});
