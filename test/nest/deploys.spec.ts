import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqInspector,
  defineTask,
  Payload,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  workflow,
} from 'nestjs-asynq';
import { beforeEach, describe, expect, it } from 'vitest';
import { rejection, testApp } from './support.js';

interface Order {
  readonly id: string;
}
const key = ({ id }: Order): string => id;
/* The same types as an older and a newer version of an application define them. */
const Pay = defineTask<Order>('pay', { key, rememberFor: '1d' });
const Ship = defineTask<Order>('ship', { key, after: Pay, waitAtMost: '2d' });
const NewShip = defineTask<Order>('ship', { key });
const MovedPay = defineTask<Order>('pay', { key, rememberFor: '1d', queue: 'payments' });
const ForgottenPay = defineTask<Order>('pay', { key });

let ran: string[] = [];
let read: (task: TaskContext) => Promise<unknown> = async () => undefined;

@Injectable()
class Handlers {
  @TaskHandler('pay')
  pay(@Payload() { id }: Order) {
    ran.push(`pay ${id}`);
    return 'paid';
  }

  @TaskHandler('ship')
  async ship(@Payload() { id }: Order, @TaskCtx() task: TaskContext) {
    ran.push(`ship ${id}`);
    return read(task);
  }
}

const boot = async () => {
  const { app, tasks } = await testApp({ providers: [Handlers] }, { server: { queues: { default: 1, payments: 1 } } });
  return { asynq: app.get(AsynqClient), inspector: app.get(AsynqInspector), tasks };
};
let world: Awaited<ReturnType<typeof boot>>;

beforeEach(async () => {
  ran = [];
  read = async () => undefined;
  world = await boot();
});

describe('a deploy while tasks wait', () => {
  it('that removes after changes new tasks only', async () => {
    const { asynq, tasks } = world;
    await asynq.enqueue(Ship, { id: 'old' });
    await asynq.enqueue(NewShip, { id: 'new' });
    await tasks.drain();
    expect(ran).toEqual(['ship new']);
    await asynq.enqueue(Pay, { id: 'old' });
    await tasks.drain();
    expect(ran).toEqual(['ship new', 'pay old', 'ship old']);
  });

  it('that moves the prerequisite to another queue releases them', async () => {
    const { asynq, tasks } = world;
    await asynq.enqueue(Ship, { id: '1' });
    await asynq.enqueue(MovedPay, { id: '1' });
    await tasks.drain();
    expect(ran).toEqual(['pay 1', 'ship 1']);
  });

  it('after which the prerequisite is not remembered ends them at waitAtMost, with the reason', async () => {
    const { asynq, inspector, tasks } = world;
    const { id } = await asynq.enqueue(Ship, { id: '1' });
    await asynq.enqueue(ForgottenPay, { id: '1' });
    await tasks.drain();
    expect(ran).toEqual(['pay 1']);
    await tasks.advance('2d');
    expect(await inspector.getTaskInfo('default', id)).toMatchObject({ state: 'archived' });
    expect((await inspector.getTaskInfo('default', id))?.lastErr).toContain('waited for as long as it may');
  });
});

describe('a deploy that changes a workflow', () => {
  const order = { id: '1' };
  const before = workflow('order').add('pay', Pay, order).add('ship', NewShip, order, { after: 'pay' });
  const after = workflow('order')
    .add('check', NewShip, order)
    .add('pay', Pay, order, { after: 'check' })
    .add('ship', NewShip, order, { after: 'pay' });

  it('lets a run go on as it was started, whoever starts it again', async () => {
    const { asynq, tasks } = world;
    await asynq.start(before, { id: '1' });
    const run = await asynq.start(after, { id: '1' });
    expect(run.created).toBe(false);
    await tasks.drain();
    expect(ran).toEqual(['pay 1', 'ship 1']);
    const { state, steps } = await run.done();
    expect([state, Object.keys(steps)]).toEqual(['succeeded', ['pay', 'ship']]);
  });

  it('refuses to read a step that the run has not', async () => {
    const { asynq, tasks } = world;
    let refusal: Error | undefined;
    read = async (task) => {
      refusal = await rejection(task.workflow.result('check'));
    };
    await asynq.start(before, { id: '1' });
    await tasks.drain();
    expect(refusal?.message).toContain('check');
    expect((await asynq.run(before, '1').done()).state).toBe('succeeded');
  });
});
