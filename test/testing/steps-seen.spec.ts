import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  AsynqServer,
  defineSignal,
  defineTask,
  Payload,
  Steps,
  TaskHandler,
  type TaskInfo,
  type TaskSteps,
} from 'nestjs-asynq';
import { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { compile } from '../nest/support.js';

/* What the inspector and the events say of steps of each kind, as the server stores them. */

const Work = defineTask<string>('work', { retryDelay: () => 60_000, maxRetry: 0 });
const Render = defineTask<string, { url: string }>('render', { queue: 'pdf', maxRetry: 0 });
const Approval = defineSignal<{ by: string }>('approval');

@Injectable()
class Workers {
  work: (steps: TaskSteps) => Promise<unknown> = async () => undefined;
  prints = true;

  @TaskHandler(Work)
  async run(@Payload() _: string, @Steps() steps: TaskSteps): Promise<unknown> {
    return this.work(steps);
  }

  @TaskHandler(Render)
  async render(@Payload() orderId: string): Promise<{ url: string }> {
    if (!this.prints) throw new Error('no paper');
    return { url: `/${orderId}` };
  }
}

let tester: AsynqTester;
let asynq: AsynqClient;
let inspector: AsynqInspector;
let workers: Workers;
let events: string[];

beforeEach(async () => {
  const builder = Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: 'memory', server: { queues: { default: 1, pdf: 1 } } })],
    providers: [Workers],
  });
  const module = await compile(builder);
  await module.init();
  tester = AsynqTester.from(module);
  asynq = module.get(AsynqClient);
  inspector = module.get(AsynqInspector);
  workers = module.get(Workers);
  events = [];
  const server = module.get(AsynqServer);
  server.events.on('stepFinished', ({ step, kind, outcome }) => events.push(`${step} ${kind} ${outcome}`));
});

const seen = async ({ queue, id }: TaskInfo) => {
  const { steps, ...rest } = (await inspector.steps(queue, id))!;
  return { steps: steps.map(({ name, state, error = '' }) => [name, state, error].filter(Boolean).join(' ')), ...rest };
};

describe('the list of steps', () => {
  it('has tries, failures and what was undone', async () => {
    workers.work = async (steps) => {
      await steps.run('capture', () => 'c-7', { undo: () => undefined });
      await steps.run('ship', () => Promise.reject(new Error('no parcel')), { retry: { max: 1, delay: '1m' } });
    };
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    expect((await seen(info)).steps).toEqual(['capture done', 'ship retrying no parcel']);
    await tester.advance('1m');
    expect(await seen(info)).toMatchObject({
      steps: ['capture undone', 'ship failed no parcel', 'undo:capture done'],
      undoing: { over: true },
    });
    expect(events).toEqual(['capture run done', 'ship run failed', 'ship run failed', 'undo:capture undo done']);
  });

  it('begins anew with the task, with the signals since', async () => {
    workers.work = async (steps) => {
      await steps.run('capture', () => 'c-7', { undo: () => undefined });
      const { by } = await steps.waitFor('approved', Approval);
      if (by === 'anna') throw new Error('no');
      await steps.sleep('nap', '1h');
    };
    const info = await asynq.enqueue(Work, 'x');
    await asynq.signal(info, Approval, { by: 'anna' });
    await tester.drain();
    expect(await seen(info)).toMatchObject({
      steps: ['capture undone', 'approved done', 'undo:capture done'],
      signals: [{ name: 'approval', count: 1, taken: 1 }],
      undoing: { error: 'no', over: true },
    });
    await inspector.runTask(info.queue, info.id);
    await tester.drain();
    expect(await seen(info)).toMatchObject({
      steps: ['capture done', 'approved waiting'],
      signals: [],
      undoing: undefined,
    });
    await asynq.signal(info, Approval, { by: 'otto' });
    await tester.drain();
    const { steps } = (await inspector.steps(info.queue, info.id))!;
    expect(steps.map(({ name, state, result }) => [name, state, result])).toEqual([
      ['capture', 'done', 'c-7'],
      ['approved', 'done', { by: 'otto' }],
      ['nap', 'asleep', undefined],
    ]);
  });

  it('has the signals of its own life, also when that is undone', async () => {
    const seenBy: string[] = [];
    workers.work = async (steps) => {
      await steps.run('capture', () => 'c-7', { undo: () => undefined });
      const { by } = await steps.waitFor('approved', Approval);
      seenBy.push(by);
      throw new Error(`not by ${by}`);
    };
    const info = await asynq.enqueue(Work, 'x');
    for (const by of ['anna', 'otto']) {
      await asynq.signal(info, Approval, { by });
      await tester.drain();
      expect(seenBy.splice(0)).toEqual([by, by]); // once more to undo
      expect(await seen(info)).toMatchObject({ undoing: { error: `not by ${by}`, over: true } });
      await inspector.runTask(info.queue, info.id);
      await tester.drain();
      expect(await seen(info)).toMatchObject({ steps: ['capture done', 'approved waiting'], signals: [] });
    }
  });

  it('has called tasks, before the handler takes their answers, and after', async () => {
    for (const prints of [true, false]) {
      workers.prints = prints;
      workers.work = async (steps) => {
        await steps.call('invoice', Render, '7');
        await steps.sleep('nap', '1h');
      };
      const info = await asynq.enqueue(Work, 'x');
      await tester.drain();
      const [invoice] = (await inspector.steps(info.queue, info.id))!.steps;
      const child = { queue: 'pdf', id: expect.any(String) as string };
      expect(invoice).toMatchObject({ name: 'invoice', kind: 'call', child, wakeAt: undefined });
      expect(invoice).toMatchObject(
        prints ? { state: 'done', result: { url: '/7' } } : { state: 'failed', error: 'no paper' },
      );
    }
  });

  it('has how far a cursor is', async () => {
    workers.work = async (steps) => {
      await steps.each('rows', [1, 2, 3], (row) => {
        if (row === 3) throw new Error('row 3');
      });
    };
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    expect((await inspector.steps(info.queue, info.id))!.steps).toMatchObject([
      { name: 'rows', state: 'running', done: 2 },
    ]);
    expect(events).toEqual(['rows each failed']);
  });
});
