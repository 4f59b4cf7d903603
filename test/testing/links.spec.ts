import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqModule,
  defineTask,
  Payload,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  workflow,
  WorkflowTimeoutError,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { quiet, rejection } from '../nest/support.js';

interface Order {
  readonly orderId: string;
}
const key = ({ orderId }: Order): string => orderId;

const Pay = defineTask<Order, string>('pay', { queue: 'payments', key, rememberFor: '1d' });
const Ship = defineTask<Order>('ship', { key, after: Pay, waitAtMost: '7d' });
const Remind = defineTask<Order>('remind', { key, after: Pay, waitAtMost: '3d', onTimeout: 'run' });
const Close = defineTask<Order>('close', { processIn: '1h' });
const Row = defineTask<number>('row');
const Imported = defineTask<string>('imported');

@Injectable()
class Handlers {
  readonly ran: string[] = [];
  refused = false;

  @TaskHandler(Pay)
  pay(): string {
    this.ran.push('pay');
    if (this.refused) throw new SkipRetry('card refused');
    return 'paid';
  }

  @TaskHandler(Ship)
  ship(): void {
    this.ran.push('ship');
  }

  @TaskHandler(Remind)
  remind(): void {
    this.ran.push('remind');
  }

  @TaskHandler(Close)
  async close(@TaskCtx() task: TaskContext): Promise<void> {
    this.ran.push(task.isStep ? `close after ${await task.workflow.result('pay', Pay)}` : 'close');
  }

  @TaskHandler(Row)
  async row(@Payload() n: number, @TaskCtx() task: TaskContext): Promise<void> {
    this.ran.push(`row ${n}`);
    if (n === 2) await task.batch.add(Row, [3]);
  }

  @TaskHandler(Imported)
  imported(@Payload() name: string): void {
    this.ran.push(`imported ${name}`);
  }
}

describe('a test of linked tasks', () => {
  let tasks: AsynqTester;
  let client: AsynqClient;
  let handlers: Handlers;

  beforeEach(async () => {
    const server = { queues: { default: 1, payments: 1 } };
    const moduleRef = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: 'memory', server })],
      providers: [Handlers],
    })
      .setLogger(quiet)
      .overrideProvider(ASYNQ_BROKER)
      .useClass(InMemoryBroker)
      .compile();
    onTestFinished(() => moduleRef.close());
    tasks = AsynqTester.from(moduleRef);
    [client, handlers] = [moduleRef.get(AsynqClient), moduleRef.get(Handlers)];
  });

  it('sees what waits, for what and until when', async () => {
    await client.enqueue(Ship, { orderId: '1' });
    await client.enqueue(Close, { orderId: '1' });
    expect(tasks.enqueued(Ship)).toHaveLength(1);
    const [waiting, ...others] = tasks.waiting();
    expect(others).toEqual([]);
    expect(waiting).toMatchObject({ type: 'ship', state: 'waiting', payload: { orderId: '1' }, onFailure: 'cancel' });
    expect(waiting!.waitsFor).toEqual([{ prerequisite: { type: 'pay', key: '1' }, state: 'waiting' }]);
    expect(waiting!.waitsUntil.getTime() - tasks.clock.now()).toBe(7 * 86_400_000);
    expect(tasks.waiting(Ship, { payload: { orderId: '2' } })).toEqual([]);
  });

  it('runs a chain across queues in one drain', async () => {
    await client.enqueue(Ship, { orderId: '1' });
    const paid = await client.enqueue(Pay, { orderId: '1' });
    await client.enqueue(Row, 1, { after: [paid] });
    const { done, left } = await tasks.drain();
    expect([done, left]).toEqual([3, []]);
    expect(handlers.ran[0]).toBe('pay');
    expect(handlers.ran.toSorted()).toEqual(['pay', 'row 1', 'ship']);
  });

  describe('of code that waits for the end of a run', () => {
    const order = { orderId: '1' };
    const flow = workflow('order')
      .add('pay', Pay, order)
      .add('later', Row, 1, { after: 'pay', options: { processIn: '1h' } });
    const short = workflow('short').add('pay', Pay, order);

    it('ends the wait with the steps, whichever call runs them', async () => {
      const place = async () => (await (await client.start(short)).done({ timeout: '1m' })).state;
      const placed = place();
      await tasks.drain();
      expect(await placed).toBe('succeeded');

      const run = await client.start(flow);
      const waiting = run.done({ timeout: '2h' });
      await tasks.drain();
      await tasks.advance('59m');
      expect(await run.state()).toBe('running');
      await tasks.advance('1m');
      expect((await waiting).state).toBe('succeeded');

      const other = await client.start(short);
      const ended = other.done();
      await tasks.work(Row, 1); // runs only this, but the wait looks again
      await tasks.drain();
      expect((await ended).state).toBe('succeeded');
    });

    it('ends the wait without real time', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
      onTestFinished(() => void vi.useRealTimers());
      const ended = (await client.start(short)).done();
      await tasks.drain();
      expect((await ended).state).toBe('succeeded');
    });

    it('ends at the timeout, by the clock of the test or by real time', async () => {
      const run = await client.start(flow);
      const timeout = rejection(run.done({ timeout: '10m' }));
      await tasks.advance('10m');
      expect(await timeout).toBeInstanceOf(WorkflowTimeoutError);
      await expect(run.done({ timeout: 50 })).rejects.toThrow(WorkflowTimeoutError);
    });
  });

  it('names what is left waiting, and for what', async () => {
    await client.enqueue(Ship, { orderId: '1' });
    const { left } = await tasks.drain();
    expect(left).toMatchObject([{ queue: 'default', type: 'ship', count: 1, reason: 'waiting' }]);
    expect(left[0]!.why).toMatch(/^waits for a "pay" with the key "1", until \d{4}-/);
  });

  it('advances to the end of a wait, which archives or runs the task', async () => {
    await client.enqueue(Ship, { orderId: '1' });
    await client.enqueue(Remind, { orderId: '1' });
    await tasks.advance('3d');
    expect(handlers.ran).toEqual(['remind']);
    expect(tasks.archived()).toEqual([]);
    await tasks.advance('4d');
    expect(tasks.archived(Ship)[0]?.lastErr).toContain('waited for as long as it may');
    expect(handlers.ran).toEqual(['remind']);
  });

  it('cancels what waits for a task that failed, with the reason', async () => {
    handlers.refused = true;
    await client.enqueue(Ship, { orderId: '1' });
    await client.enqueue(Pay, { orderId: '1' });
    await tasks.drain();
    expect(tasks.archived(Ship)[0]?.lastErr).toContain('card refused');
  });

  it('runs a whole workflow, its delayed steps too', async () => {
    const flow = workflow('order')
      .add('pay', Pay, { orderId: '1' })
      .add('ship', Row, 7, { after: 'pay' })
      .add('close', Close, { orderId: '1' }, { after: 'ship' });
    const run = await client.start(flow, { id: '1' });
    await tasks.drain();
    expect(handlers.ran).toEqual(['pay', 'row 7']);
    await tasks.advance('1h');
    expect(handlers.ran).toEqual(['pay', 'row 7', 'close after paid']);
    expect((await run.done()).state).toBe('succeeded');
  });

  it('runs a batch to its callback, and closes one that nobody closes', async () => {
    const batch = await client.openBatch({ name: 'import', onComplete: [Imported, 'a'] });
    await batch.add(Row, [1, 2]);
    await batch.close();
    await tasks.drain();
    expect(handlers.ran).toEqual(['row 1', 'row 2', 'row 3', 'imported a']);
    await client.openBatch({ name: 'open', onComplete: [Imported, 'b'], closeWithin: '10m' });
    await tasks.advance('9m');
    expect(handlers.ran).not.toContain('imported b');
    await tasks.advance('1m');
    expect(handlers.ran).toContain('imported b');
  });
});
