import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqInspector,
  type AsynqEventMap,
  type AsynqModuleOptions,
  AsynqServer,
  AsynqTaskEvents,
  chain,
  defineTask,
  type FleetTaskEvent,
  OnTaskEvent,
  SkipRetry,
  step,
  type TaskEvent,
  TaskHandler,
} from 'nestjs-asynq';
import { describe, expect, it, vi } from 'vitest';
import { testApp } from './support.js';

const Pay = defineTask<{ order: string }>('pay', { key: ({ order }) => order, rememberFor: '1d' });
const Ship = defineTask<{ order: string }>('ship', { key: ({ order }) => order, after: Pay, waitAtMost: '1h' });

@Injectable()
class Shop {
  readonly waits: TaskEvent<'waitEnded'>[] = [];
  fails = false;

  @TaskHandler(Pay)
  pay() {
    if (this.fails) throw new SkipRetry('no money');
  }

  @TaskHandler(Ship)
  ship() {}

  @TaskHandler('done')
  done() {}

  @OnTaskEvent('waitEnded')
  onWaitEnded(event: TaskEvent<'waitEnded'>) {
    this.waits.push(event);
  }
}

type Ends = 'workflowEnded' | 'batchEnded' | 'batchCalledBack';

async function shopApp(options: Partial<AsynqModuleOptions> = {}) {
  const { app, tasks } = await testApp({ providers: [Shop] }, options);
  const ends: { [E in Ends]: AsynqEventMap[E][] } = { workflowEnded: [], batchEnded: [], batchCalledBack: [] };
  const { events } = app.get(AsynqServer);
  for (const name of Object.keys(ends) as Ends[]) events.on(name, (event) => void ends[name].push(event as never));
  return { app, tasks, asynq: app.get(AsynqClient), shop: app.get(Shop), ends };
}

describe('events of links', () => {
  it('say how a wait has ended', async () => {
    const { tasks, asynq, shop, app } = await shopApp();
    const { id } = await asynq.enqueue(Ship, { order: '1' });
    const payment = await asynq.enqueue(Pay, { order: '1' }, { processIn: '1m' });
    expect(shop.waits).toEqual([]);
    shop.fails = true;
    await tasks.advance('1m');
    const task = { id, type: 'ship', queue: 'default' };
    const common = { event: 'waitEnded', connection: 'default', task };
    const error = expect.objectContaining({ message: expect.stringContaining('no money') as unknown });
    expect(shop.waits.splice(0)).toEqual([{ ...common, end: 'cancelled', state: 'archived', error }]);
    shop.fails = false;
    await app.get(AsynqInspector).runTask('default', payment.id);
    await tasks.drain();
    expect(shop.waits.splice(0)).toEqual([{ ...common, end: 'revived', state: 'pending' }]);
    await asynq.enqueue(Ship, { order: '1' });
    expect(shop.waits.splice(0)).toMatchObject([{ end: 'released', state: 'pending' }]);
    await asynq.enqueue(Ship, { order: '2' });
    await tasks.advance('1h');
    expect(shop.waits).toMatchObject([{ end: 'timedOut', state: 'archived', error: { name: 'Error' } }]);
  });

  it('say that a run has ended, each time', async () => {
    const { tasks, asynq, shop, ends } = await shopApp();
    shop.fails = true;
    const order = { order: '1' };
    const run = await asynq.start(chain('deliver', step('pay', Pay, order), step('ship', Ship, order)), { id: '1' });
    await tasks.drain();
    const common = { queue: 'default', id: 'deliver/1', name: 'deliver', steps: 2 };
    const times = { startedAt: expect.any(Date) as Date, endedAt: expect.any(Date) as Date };
    expect(ends.workflowEnded.splice(0)).toEqual([{ ...common, state: 'failed', failed: 1, ...times }]);
    shop.fails = false;
    await run.retry();
    await tasks.drain();
    expect(ends.workflowEnded.splice(0)).toEqual([{ ...common, state: 'succeeded', failed: 0, ...times }]);
    const other = await asynq.start(chain('deliver', step('pay', Pay, order)));
    await other.cancel();
    expect(ends.workflowEnded).toMatchObject([{ id: other.id, state: 'cancelled' }]);
  });

  it('say that a batch has ended, and which callbacks are due', async () => {
    const { tasks, asynq, shop, ends, app } = await shopApp();
    const batch = await asynq.openBatch({ name: 'all', onSuccess: ['done', {}] });
    shop.fails = true;
    await batch.add('pay', [{}, {}]);
    await batch.close();
    await tasks.drain();
    const common = { queue: 'default', id: batch.id, name: 'all' };
    expect(ends.batchEnded.splice(0)).toMatchObject([{ ...common, state: 'completed', total: 2, failed: 2 }]);
    expect(ends.batchCalledBack).toEqual([]);
    shop.fails = false;
    await app.get(AsynqInspector).runAllTasks('default', 'archived');
    await tasks.drain();
    expect(ends.batchEnded).toMatchObject([{ ...common, state: 'succeeded', failed: 0 }]);
    expect(ends.batchCalledBack).toEqual([{ ...common, callback: 'success' }]);
  });

  it('are in the stream of the fleet', async () => {
    const { tasks, asynq, app } = await shopApp({ eventStream: { events: ['waitEnded'] } });
    const seen: FleetTaskEvent[] = [];
    const stream = app.get(AsynqTaskEvents).fleet('waitEnded', { from: '0' });
    const subscription = stream.subscribe((event) => seen.push(event));
    await asynq.enqueue(Ship, { order: '4' });
    await tasks.advance('1h');
    await vi.waitFor(async () => {
      await tasks.advance('1s');
      expect(seen).toHaveLength(1);
    });
    subscription.unsubscribe();
    const [{ event, task, end, state, error }] = seen as [FleetTaskEvent];
    expect({ event, type: task.type, end, state }).toEqual({
      event: 'waitEnded',
      type: 'ship',
      end: 'timedOut',
      state: 'archived',
    });
    expect(error?.message).toContain('waited for as long as it may');
  });
});
