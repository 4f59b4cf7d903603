import { afterEach, describe, expect, it } from 'vitest';
import { DeadlineExceededError, TaskCanceledError } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { FailedTask, type TaskHandlerEntry } from '../../../lib/server/attempt/handler.js';
import type { ServerOptions } from '../../../lib/server/options.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { closeRigs, gate, manualClock, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

interface Call {
  readonly tasks: readonly TaskContext[];
  readonly ids: readonly string[];
  readonly end: (results?: readonly unknown[]) => void;
  readonly fail: (error: unknown) => void;
}

/** A server with the batch handler `b`, whose calls end when the test says so. */
async function setUp(batch: { size: number; wait: number }, options: ServerOptions = {}, others = {}) {
  const clock = manualClock();
  const calls: Call[] = [];
  const handle = (tasks: readonly TaskContext[]) =>
    new Promise<readonly unknown[]>((resolve, reject) => {
      const end: Call['end'] = (results = tasks.map(() => undefined)) => resolve(results);
      calls.push({ tasks: [...tasks], ids: tasks.map(({ id }) => id), end, fail: reject });
    });
  const entry: TaskHandlerEntry = { pattern: 'b', batch: { ...batch, handle } };
  const rig = await startRig({ b: entry, ...others }, options, clock);
  const add = async (...ids: string[]): Promise<void> => {
    for (const id of ids) await rig.add({ type: 'b', id, maxRetry: 5 });
    await turn(30);
  };
  const pass = async (milliseconds: number): Promise<void> => {
    clock.advance(milliseconds);
    await turn(30);
  };
  const sizes = (): number[] => calls.map(({ ids }) => ids.length);
  return { ...rig, addOne: rig.add, clock, calls, add, pass, sizes };
}

describe('the tasks of a batch handler', () => {
  it('are called when there are enough, without any time passing', async () => {
    const { add, calls } = await setUp({ size: 3, wait: 200 });
    await add('1', '2', '3', '4');
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2', '3']]);
  });

  it('are called when the first has waited long enough, not before', async () => {
    const { add, calls, pass } = await setUp({ size: 3, wait: 200 });
    await add('1');
    await pass(150);
    await add('2');
    await pass(49);
    expect(calls).toEqual([]);
    await pass(1);
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2']]);
  });

  it('fill a batch that is larger than the concurrency, and each call takes one slot', async () => {
    const { add, calls, sizes, server } = await setUp({ size: 20, wait: 200 }, { concurrency: 2 });
    await add(...Array.from({ length: 60 }, (_, index) => `${index}`));
    expect([sizes(), server.active]).toEqual([[20, 20], 2]);
    calls[0]!.end();
    await turn(60);
    expect([sizes(), server.active]).toEqual([[20, 20, 20], 2]);
  });

  it('end each with its own result or error', async () => {
    const { add, calls, outcomes } = await setUp({ size: 3, wait: 200 });
    await add('1', '2', '3');
    calls[0]!.end(['one', new FailedTask(new Error('no')), 'three']);
    await turn(30);
    expect(outcomes.map(({ task, outcome, result, error }) => [task.id, outcome, result, error])).toEqual([
      ['1', 'done', 'one', undefined],
      ['2', 'retry', undefined, new Error('no')],
      ['3', 'done', 'three', undefined],
    ]);
  });

  it('all fail when the call does', async () => {
    const { add, calls, outcomes } = await setUp({ size: 2, wait: 200 });
    await add('1', '2');
    calls[0]!.fail(new Error('down'));
    await turn(30);
    expect(outcomes.map(({ outcome, error }) => [outcome, error])).toEqual([
      ['retry', new Error('down')],
      ['retry', new Error('down')],
    ]);
  });

  it('are active while they wait for others, and report their start with the call', async () => {
    const { add, memory, server, pass } = await setUp({ size: 3, wait: 200 });
    const started: string[] = [];
    server.events.on('taskStarted', ({ task }) => started.push(task.id));
    await add('1', '2');
    expect(await memory.inspection.describeQueue('default')).toMatchObject({ active: 2, pending: 0 });
    expect([started, server.active]).toEqual([[], 0]);
    await pass(200);
    expect([started, server.active]).toEqual([['1', '2'], 1]);
  });

  it('wait for a slot when all are taken, before tasks that are claimed later', async () => {
    const held = gate();
    const wide = { other: held.handle };
    const { add, addOne, calls, pass, server } = await setUp({ size: 9, wait: 200 }, { concurrency: 1 }, wide);
    await add('1');
    await addOne({ type: 'other' });
    await addOne({ type: 'other' });
    await turn(30);
    await pass(200);
    expect([calls, server.active]).toEqual([[], 1]);
    held.open();
    await turn(30);
    expect(calls.map(({ ids }) => ids)).toEqual([['1']]);
  });

  it('leave the batch at their deadline, also while it is collected', async () => {
    const { add, addOne, calls, pass, outcomes } = await setUp({ size: 3, wait: 5_000 });
    await addOne({ type: 'b', id: 'short', timeout: 2 });
    await add('long');
    await pass(2_000);
    expect(outcomes).toMatchObject([
      { task: { id: 'short' }, outcome: 'retry', error: expect.any(DeadlineExceededError) },
    ]);
    await pass(3_000);
    expect(calls.map(({ ids }) => ids)).toEqual([['long']]);
  });

  it('have each its own deadline and signal while the handler runs', async () => {
    const { add, addOne, calls, pass, outcomes } = await setUp({ size: 2, wait: 200 });
    await addOne({ type: 'b', id: 'short', timeout: 2 });
    await add('long');
    const [short, long] = calls[0]!.tasks as [TaskContext, TaskContext];
    await pass(2_000);
    expect([short.signal.aborted, long.signal.aborted]).toEqual([true, false]);
    expect(outcomes).toMatchObject([{ task: { id: 'short' }, outcome: 'retry' }]);
    calls[0]!.end(['late', 'in time']);
    await turn(30);
    expect(outcomes).toMatchObject([
      { outcome: 'retry' },
      { task: { id: 'long' }, outcome: 'done', result: 'in time' },
    ]);
  });

  it('leave the batch when they are cancelled', async () => {
    const { add, calls, pass, memory, outcomes } = await setUp({ size: 4, wait: 200 });
    await pass(0);
    await add('1', '2', '3');
    const inspector = new AsynqInspector(memory);
    await inspector.cancelProcessing('2', { outcome: 'archive' });
    await pass(10);
    expect(outcomes).toMatchObject([{ task: { id: '2' }, outcome: 'archived', error: expect.any(TaskCanceledError) }]);
    await pass(200);
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '3']]);
    await inspector.cancelProcessing('3', { outcome: 'archive' });
    await pass(10);
    expect(calls[0]!.tasks.map(({ signal }) => signal.aborted)).toEqual([false, true]);
    expect(outcomes.at(-1)).toMatchObject({ task: { id: '3' }, outcome: 'archived' });
  });

  it('leave the batch when their lease is lost', async () => {
    const { add, calls, pass, memory, outcomes } = await setUp({ size: 4, wait: 30_000 });
    await add('1', '2');
    const { tasks } = await memory.maintenance.listExpiredLeases('default', 2 ** 40, 10);
    const lost = tasks.find(({ lease }) => lease.id === '1')!;
    await memory.consumer.exchange('default', { settle: [{ kind: 'requeue', lease: lost.lease }], take: 0 });
    await memory.administration.pauseQueue('default');
    for (let passed = 0; passed < 30; passed++) await pass(1_000);
    expect(outcomes).toMatchObject([{ task: { id: '1' }, outcome: 'lost' }]);
    expect(calls.map(({ ids }) => ids)).toEqual([['2']]);
  });

  it('that came with one claim are called at once when they need not wait', async () => {
    const { addOne, memory, calls, pass } = await setUp({ size: 9, wait: 0 });
    await memory.administration.pauseQueue('default');
    for (const id of ['1', '2', '3']) await addOne({ type: 'b', id });
    await memory.administration.resumeQueue('default');
    await pass(2_000); // nobody was notified: a poll finds them
    await pass(0);
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2', '3']]);
  });

  it('do not wait for others while nothing is fetched', async () => {
    const { add, calls, server } = await setUp({ size: 9, wait: 30_000 });
    await add('1', '2');
    server.pauseFetching();
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2']]);
    server.resumeFetching();
    await add('3');
    expect(calls).toHaveLength(1);
  });

  it('of a queue with a limit are no more than this allows', async () => {
    const queues = { default: { concurrency: 2 } };
    const { add, calls, pass, sizes } = await setUp({ size: 9, wait: 200 }, { queues });
    await add('1', '2', '3');
    await pass(200);
    expect(sizes()).toEqual([2]);
    calls[0]!.end();
    await turn(30);
    await pass(200);
    expect(sizes()).toEqual([2, 1]);
  });

  it('begin when the concurrency is raised', async () => {
    const held = gate();
    const { add, addOne, calls, pass, server } = await setUp(
      { size: 9, wait: 200 },
      { concurrency: 1 },
      { other: held.handle },
    );
    await add('1');
    await addOne({ type: 'other' });
    await turn(30);
    await pass(200);
    expect(calls).toEqual([]);
    server.setConcurrency(2);
    await turn(30);
    expect(calls.map(({ ids }) => ids)).toEqual([['1']]);
    held.open();
  });

  it('give their tokens back when they leave the batch', async () => {
    const clock = manualClock();
    const handle = () => Promise.resolve([]);
    const limits = { globalConcurrency: 9 };
    const entry = { pattern: 'b', limits, batch: { size: 9, wait: 20_000, handle } };
    const { add, memory, outcomes } = await startRig({ b: entry }, {}, clock);
    await add({ type: 'b', timeout: 2 });
    await turn(30);
    expect((await memory.obstacles.heldTokens('b')).count).toBe(1);
    clock.advance(2_000);
    await turn(30);
    expect(outcomes).toMatchObject([{ outcome: 'retry' }]);
    expect((await memory.obstacles.heldTokens('b')).count).toBe(0);
  });

  it('do not wait for others when the server stops', async () => {
    const { add, calls, server, outcomes } = await setUp({ size: 9, wait: 30_000 });
    await add('1', '2');
    const closing = server.shutdown();
    await turn(30);
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2']]);
    calls[0]!.end();
    await closing;
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['done', 'done']);
  });

  it('go back to their queue when the server closes before a slot is free', async () => {
    const held = gate();
    const wide = { other: held.handle };
    const { add, addOne, calls, clock, server, memory } = await setUp({ size: 9, wait: 200 }, { concurrency: 1 }, wide);
    await add('1', '2');
    await addOne({ type: 'other', id: 'other' });
    await turn(30);
    let closed = false;
    const closing = server.shutdown().then(() => (closed = true));
    while (!closed) {
      clock.advance(500);
      await turn();
    }
    await closing;
    held.open();
    await turn(30);
    expect(calls).toEqual([]);
    expect(await memory.inspection.describeQueue('default')).toMatchObject({ pending: 3, active: 0 });
  });

  it('are limited as single tasks are', async () => {
    const clock = manualClock();
    const sizes: number[] = [];
    const ends: (() => void)[] = [];
    const handle = (tasks: readonly TaskContext[]) =>
      new Promise<readonly unknown[]>((resolve) => {
        sizes.push(tasks.length);
        ends.push(() => resolve(tasks.map(() => undefined)));
      });
    const entry = { pattern: 'b', limits: { concurrency: 4 }, batch: { size: 4, wait: 200, handle } };
    const { add } = await startRig({ b: entry }, { concurrency: 20 }, clock);
    for (let index = 0; index < 8; index++) await add({ type: 'b' });
    await turn(60);
    expect(sizes).toEqual([4]);
    ends[0]!();
    await turn(60);
    expect(sizes).toEqual([4, 4]);
  });
});
