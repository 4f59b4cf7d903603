import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqInspector,
  AsynqServer,
  chain,
  defineTask,
  InvalidTaskError,
  InvalidWorkflowError,
  parallel,
  Payload,
  RevokeTask,
  SkipRetry,
  step,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  workflow,
  WorkflowNotFoundError,
  WorkflowStateError,
  WorkflowTimeoutError,
} from 'nestjs-asynq';
import { beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { taskIdOfStep } from '../../lib/broker/workflows.js';
import { rejection, testApp } from './support.js';

interface Order {
  readonly orderId: string;
}
const Pay = defineTask<Order, { captureId: string }>('payment:capture');
const Receipt = defineTask<Order, number>('receipt:send', { queue: 'mail' });
const Render = defineTask<Order, Buffer>('invoice:render', { queue: 'cpu' });
const Close = defineTask<Order, string>('order:close');
const Refund = defineTask<Order, boolean>('refund');
const Anything = defineTask<unknown, unknown>('anything');
const order = { orderId: '7' };

/** What the handler of `anything` does, by its payload. */
type Behaviour = (task: TaskContext) => unknown;
let behaviour: Record<string, Behaviour> = {};
let ran: string[] = [];

@Injectable()
class Handlers {
  @TaskHandler(Pay)
  pay(@Payload() { orderId }: Order) {
    ran.push('pay');
    return { captureId: `capture ${orderId}` };
  }

  @TaskHandler(Receipt)
  receipt() {
    ran.push('receipt');
    return 42;
  }

  @TaskHandler(Render)
  render() {
    ran.push('render');
    return Buffer.from([0xff, 0xfe]);
  }

  @TaskHandler(Close)
  async close(@TaskCtx() task: TaskContext) {
    ran.push('close');
    const { captureId } = await task.workflow.result('pay', Pay);
    return `closed ${captureId}`;
  }

  @TaskHandler('ship')
  ship(@Payload() name: string) {
    ran.push(name);
  }

  @TaskHandler('refund')
  refund() {
    ran.push('refund');
    return true;
  }

  @TaskHandler('anything')
  async anything(@Payload() name: string, @TaskCtx() task: TaskContext) {
    ran.push(name);
    return behaviour[name]?.(task);
  }
}

function refusalOf(read: () => unknown): string | undefined {
  try {
    return void read();
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

const boot = async () => {
  const queues = { default: 1, mail: 1, cpu: 1 };
  const { app, tasks } = await testApp({ providers: [Handlers] }, { server: { queues } });
  const asynq = app.get(AsynqClient);
  return { app, tasks, asynq, inspector: app.get(AsynqInspector) };
};
let world: Awaited<ReturnType<typeof boot>>;

beforeEach(async () => {
  behaviour = {};
  ran = [];
  world = await boot();
});

const fulfil = workflow('order:fulfil')
  .add('pay', Pay, order)
  .add('receipt', Receipt, order, { after: 'pay' })
  .add('invoice', Render, order, { after: 'pay' })
  .add('close', Close, order, { after: ['receipt', 'invoice'] });

const fails = () => {
  throw new SkipRetry('the card was refused');
};

describe('a run', () => {
  it('goes through its graph, over queues, and gives typed outcomes', async () => {
    const { asynq, tasks } = world;
    const run = await asynq.start(fulfil, { id: '7' });
    expect(run).toMatchObject({ id: 'order:fulfil/7', name: 'order:fulfil', queue: 'default', created: true });
    await tasks.drain();
    const { state, steps } = await run.done();
    expect(state).toBe('succeeded');
    expect(steps).toEqual({
      pay: { state: 'succeeded', result: { captureId: 'capture 7' } },
      receipt: { state: 'succeeded', result: 42 },
      invoice: { state: 'succeeded', result: Buffer.from([0xff, 0xfe]) },
      close: { state: 'succeeded', result: 'closed capture 7' },
    });
    expect(ran[0]).toBe('pay');
    expect(ran.at(-1)).toBe('close');
    if (steps.pay.state === 'succeeded') expectTypeOf(steps.pay.result).toEqualTypeOf<{ captureId: string }>();
    if (steps.receipt.state === 'succeeded') expectTypeOf(steps.receipt.result).toEqualTypeOf<number>();
  });

  it('is started once for an id, however many start it', async () => {
    const { asynq, tasks } = world;
    const started: unknown[] = [];
    world.app.get(AsynqServer).events.on('workflowStarted', (event) => void started.push(event));
    const runs = await Promise.all([1, 2, 3].map(() => asynq.start(fulfil, { id: '7' })));
    expect(started).toEqual([{ queue: 'default', id: 'order:fulfil/7', name: 'order:fulfil', steps: 4 }]);
    expect(runs.map(({ created }) => created)).toEqual([true, false, false]);
    await tasks.drain();
    expect(ran.filter((name) => name === 'pay')).toHaveLength(1);
    expect((await asynq.start(fulfil, { id: '7' })).created).toBe(false);
    expect((await asynq.start(fulfil)).created).toBe(true);
  });

  it('is found again by its workflow or name, and its id', async () => {
    const { asynq, tasks } = world;
    await asynq.start(fulfil, { id: '7', queue: 'mail' });
    await tasks.drain();
    expect(await asynq.run(fulfil, '7', { queue: 'mail' }).state()).toBe('succeeded');
    expect(await asynq.run('order:fulfil', '7', { queue: 'mail' }).state()).toBe('succeeded');
    expect(await rejection(asynq.run(fulfil, '7').state())).toBeInstanceOf(WorkflowNotFoundError);
    expect(await rejection(asynq.run(fulfil, '8').done())).toBeInstanceOf(WorkflowNotFoundError);
    expect(() => asynq.run('order fulfil', '7')).toThrow(InvalidWorkflowError);
    expect(() => asynq.run(fulfil, 'a b')).toThrow('without white space');
  });

  it('starts in bulk: what is wrong with one does not affect the others', async () => {
    const { asynq, tasks } = world;
    const wrong = workflow('wrong').add('a', 'anything', 1n);
    const results = await asynq.startMany([
      { workflow: fulfil, id: '1' },
      { workflow: wrong },
      { workflow: fulfil, id: '{' },
      { workflow: fulfil, id: '1' },
    ]);
    expect(results.map(({ ok }) => ok)).toEqual([true, false, false, true]);
    expect(results[1]!.error).toBeInstanceOf(InvalidTaskError);
    expect(results[2]!.error).toBeInstanceOf(InvalidWorkflowError);
    expect(results[3]!.run!.created).toBe(false);
    await tasks.drain();
    expect(await results[0]!.run!.state()).toBe('succeeded');
  });

  it.each([
    ['no steps', workflow('w'), {}, InvalidWorkflowError],
    ['a payload', workflow('w').add('fine', 't').add('a', 't', 1n), {}, InvalidTaskError],
    ['a default', workflow('w').add('a', defineTask<undefined>('t', { group: 'g' })), {}, InvalidWorkflowError],
    ['an id', fulfil, { id: 'x y' }, InvalidWorkflowError],
    ['a queue', fulfil, { queue: '' }, InvalidWorkflowError],
    ['a queue that is named like marks', fulfil, { queue: '~pay' }, InvalidWorkflowError],
    ['a queue of a step', workflow('w').add('a', 't', 1, { options: { queue: '~t' } }), {}, InvalidWorkflowError],
    ['an option', fulfil, { idd: 'x' }, InvalidWorkflowError],
    ['a timeout', fulfil, { timeout: '-1s' }, InvalidWorkflowError],
  ])('is refused with a wrong %s, and nothing is written', async (_, flow, options, Failure) => {
    const { asynq, tasks } = world;
    expect(await rejection(asynq.start(flow as typeof fulfil, options as never))).toBeInstanceOf(Failure);
    expect(await rejection(asynq.start({} as never))).toBeInstanceOf(InvalidWorkflowError);
    expect(tasks.enqueued()).toEqual([]);
    expect(await world.inspector.queues()).toEqual([]);
  });

  it('delays a step from when it is ready', async () => {
    const { asynq, tasks } = world;
    const flow = workflow('later')
      .add('a', Anything, 'a', { options: { processIn: '1h' } })
      .add('b', Anything, 'b', { after: 'a', options: { processIn: '1h' } });
    const run = await asynq.start(flow);
    await tasks.advance('61m');
    expect(ran).toEqual(['a']);
    await tasks.advance('61m');
    expect(ran).toEqual(['a', 'b']);
    expect(await run.state()).toBe('succeeded');
  });

  it('uses shapes, with workflows as steps', async () => {
    const { asynq, tasks } = world;
    const papers = parallel('papers', step('receipt', Receipt, order), step('invoice', Render, order));
    const run = await asynq.start(chain('shaped', step('pay', Pay, order), papers, step('close', Close, order)));
    await tasks.drain();
    const { state, steps } = await run.done();
    expect(state).toBe('succeeded');
    expect(steps['papers/receipt']).toEqual({ state: 'succeeded', result: 42 });
    expect(ran.at(-1)).toBe('close');
  });
});

it('a step is a task of its definition: who waits for its key is released by it', async () => {
  const { asynq, tasks } = world;
  const Captured = defineTask<string, unknown>('anything', { key: (name) => name, rememberFor: '1d' });
  const Ship = defineTask<string>('ship', { key: (name) => name.slice(0, 1), after: Captured });
  const flow = workflow('w')
    .add('ready', Captured, 'a')
    .add('later', Captured, 'b', { after: 'ready' })
    .add('ship', Ship, 'c ships in its workflow');
  await asynq.enqueue(Ship, 'b ships');
  const run = await asynq.start(flow);
  await asynq.enqueue(Ship, 'a ships');
  await tasks.drain();
  expect(ran.sort()).toEqual(['a', 'a ships', 'b', 'b ships', 'c ships in its workflow']);
  expect(await run.state()).toBe('succeeded');
});

describe('done', () => {
  it('rejects at its timeout, by the clock of the broker; the run goes on', async () => {
    const { asynq, tasks } = world;
    const run = await asynq.start(workflow('slow').add('a', Anything, 'a', { options: { processIn: '2m' } }));
    const waiting = rejection(run.done({ timeout: '1m' }));
    const patient = run.done({ timeout: '1h' });
    await tasks.advance('90s');
    expect(await waiting).toBeInstanceOf(WorkflowTimeoutError);
    expect((await waiting) as Error).toHaveProperty('message', expect.stringContaining('ask explain() why the task'));
    await tasks.advance('2m');
    expect((await patient).state).toBe('succeeded');
  });

  it('refuses a wrong timeout', async () => {
    const run = await world.asynq.start(fulfil);
    expect(await rejection(run.done({ timeout: 0 }))).toMatchObject({ code: 'ASYNQ_INVALID_OPTION' });
    expect(await rejection(run.done({ timeOut: 1 } as never))).toMatchObject({ code: 'ASYNQ_INVALID_OPTION' });
  });

  it('rejects when the run is deleted, or the client closed, meanwhile', async () => {
    const { asynq, tasks, app } = world;
    const run = await asynq.start(fulfil);
    const gone = rejection(run.done());
    await run.state(); // the first question is asked before this; the next when the clock moves
    await run.cancel();
    await run.delete();
    await tasks.advance('2s');
    expect(await gone).toBeInstanceOf(WorkflowNotFoundError);
    const other = await asynq.start(workflow('w').add('a', Anything, 'a', { options: { processIn: '1h' } }));
    const closed = rejection(other.done());
    await app.close();
    expect(await closed).toMatchObject({ code: 'ASYNQ_CLOSED' });
  });
});

describe('a failure', () => {
  const flow = workflow('risky')
    .add('a', Anything, 'a')
    .add('cancelled', Anything, 'cancelled', { after: 'a' })
    .add('after', Anything, 'after', { after: 'cancelled' })
    .add('cleanup', Anything, 'cleanup', { after: 'a', onFailure: 'run' })
    .add('waits', Anything, 'waits', { after: 'a', onFailure: 'wait' });

  it('cancels, is passed over, or is waited for, as each step says; a retry revives', async () => {
    const { asynq, tasks } = world;
    behaviour = { a: fails };
    const run = await asynq.start(flow);
    await tasks.drain();
    const { state, steps } = await run.done();
    expect(state).toBe('failed');
    expect(steps).toMatchObject({
      a: { state: 'failed', error: 'the card was refused' },
      cancelled: { state: 'cancelled', error: expect.stringContaining('a') },
      after: { state: 'cancelled' },
      cleanup: { state: 'succeeded' },
      waits: { state: 'waiting' },
    });
    expect(ran).toEqual(['a', 'cleanup']);
    behaviour = {};
    expect(await run.retry()).toBe(1);
    expect(await run.state()).toBe('running');
    await tasks.drain();
    expect((await run.done()).state).toBe('succeeded');
    expect(ran.sort()).toEqual(['a', 'a', 'after', 'cancelled', 'cleanup', 'waits']);
    expect(await rejection(run.retry())).toBeInstanceOf(WorkflowStateError);
  });

  it('fails again when a retried step does, also while the clock stands still', async () => {
    const { asynq, tasks } = world;
    behaviour = { a: fails };
    const run = await asynq.start(workflow('w').add('a', Anything, 'a'));
    await tasks.drain();
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await run.state()).toBe('failed');
      expect(await run.retry()).toBe(1);
      expect(await run.state()).toBe('running');
      await tasks.drain();
    }
    expect((await run.done()).steps.a.error).toBe('the card was refused');
  });

  it('says why it was cancelled at every step that has not run', async () => {
    const { asynq } = world;
    const flow = workflow('w').add('a', Anything, 'a').add('b', Receipt, order).add('c', Close, order, { after: 'a' });
    const run = await asynq.start(flow);
    expect(await run.cancel('the customer left')).toBe(true);
    const { steps } = await run.outcome();
    expect(Object.values(steps)).toEqual([1, 2, 3].map(() => ({ state: 'cancelled', error: 'the customer left' })));
  });

  it('that an operator mends by running the task again revives the run, too', async () => {
    const { asynq, tasks, inspector } = world;
    behaviour = { a: fails };
    const run = await asynq.start(flow);
    await tasks.drain();
    behaviour = {};
    await inspector.runTask('default', taskIdOfStep(run.id, 'a'));
    await tasks.drain();
    expect((await run.done()).state).toBe('succeeded');
  });

  it('of an optional step counts as done', async () => {
    const { asynq, tasks } = world;
    behaviour = { a: fails };
    const optional = workflow('w').add('a', Anything, 'a', { optional: true }).add('b', Anything, 'b', { after: 'a' });
    const run = await asynq.start(optional);
    await tasks.drain();
    expect(await run.done()).toMatchObject({ state: 'succeeded', steps: { a: { state: 'failed' } } });
  });

  it('is also a task that was revoked or deleted', async () => {
    const { asynq, tasks, inspector } = world;
    behaviour = {
      a: () => {
        throw new RevokeTask('not today');
      },
    };
    const revoked = await asynq.start(workflow('w').add('a', Anything, 'a'));
    await tasks.drain();
    expect(await revoked.done()).toMatchObject({ state: 'failed', steps: { a: { error: 'not today' } } });
    const deleted = await asynq.start(workflow('w').add('a', Anything, 'a'));
    await inspector.deleteTask('default', taskIdOfStep(deleted.id, 'a'));
    await tasks.advance('5s');
    expect((await deleted.done()).state).toBe('failed');
    behaviour = {};
    for (const run of [revoked, deleted]) {
      expect(await run.retry()).toBe(1);
      await tasks.drain();
      expect((await run.done()).state).toBe('succeeded');
      await expect(run.retry()).rejects.toThrow('has nothing to retry: no step has failed, or the run was cancelled');
    }
  });
});

describe('the task of a step', () => {
  it('sees its run, and other tasks see none', async () => {
    const { asynq, tasks } = world;
    const seen: unknown[] = [];
    behaviour = {
      a: (task) => {
        seen.push(task.isStep);
        seen.push(task.isStep ? JSON.parse(JSON.stringify(task.workflow)) : refusalOf(() => task.workflow));
      },
    };
    await asynq.enqueue(Anything, 'a');
    await asynq.start(workflow('w').add('one', Anything, 'a'), { id: 'x', queue: 'mail' });
    await tasks.drain();
    expect(seen).toEqual([false, 'ASYNQ_NOT_A_STEP', true, { id: 'w/x', name: 'w', queue: 'mail', step: 'one' }]);
  });

  it('reads results: of one step, of those it waits for, of those it names', async () => {
    const { asynq, tasks } = world;
    const seen: unknown[] = [];
    behaviour = {
      x: () => ({ x: 1 }),
      y: () => undefined,
      end: async ({ workflow: run }) => {
        seen.push(await run.result('x'), await run.result('y'), await run.results(), await run.results(['x']));
        seen.push(await rejection(run.result('z')), await rejection(run.result('end')));
        seen.push(await rejection(run.results(['x', 'yy'])), await run.results(['end', 'x']));
      },
    };
    const flow = workflow('w')
      .add('x', Anything, 'x')
      .add('y', Anything, 'y')
      .add('end', Anything, 'end', { after: ['x', 'y'] });
    const run = await asynq.start(flow);
    await tasks.drain();
    expect(await run.state()).toBe('succeeded');
    expect(seen.slice(0, 4)).toEqual([{ x: 1 }, undefined, { x: { x: 1 } }, { x: { x: 1 } }]);
    expect(seen[4]).toBeInstanceOf(InvalidWorkflowError);
    expect(seen[5]).toBeInstanceOf(WorkflowStateError);
    expect(String(seen[5])).toContain('step "end" of run');
    expect(seen[6]).toBeInstanceOf(InvalidWorkflowError);
    expect(String(seen[6])).toContain('has no step "yy"; did you mean "y"?');
    expect(seen[7]).toEqual({ x: { x: 1 } });
  });

  it('adds steps, once, though its attempt is made again', async () => {
    const { asynq, tasks } = world;
    let attempts = 0;
    const added: boolean[] = [];
    behaviour = {
      a: async ({ workflow: run }) => {
        added.push(await run.add('refund', Refund, order, { after: 'a' }));
        if (attempts++ === 0) throw new Error('again');
      },
    };
    const run = await asynq.start(workflow('w').add('a', Anything, 'a'));
    await tasks.advance('1h');
    expect(added).toEqual([true, false]);
    const { state, steps } = await run.done();
    expect(state).toBe('succeeded');
    expect((steps as Record<string, unknown>)['refund']).toEqual({ state: 'succeeded', result: true });
  });

  it('cannot add what the run cannot have', async () => {
    const { asynq, tasks } = world;
    const errors: Error[] = [];
    behaviour = {
      a: async ({ workflow: run }) => {
        errors.push(await rejection(run.add('b', Refund, order)));
        errors.push(await rejection(run.add('c', Refund, order, { after: 'aa' })));
        errors.push(await rejection(run.add('c', Refund, 1n as never)));
        errors.push(await rejection(run.add('c c', Refund, order)));
        errors.push(await rejection(run.add('c', Refund, order, { after: ['a', 'c'] })));
        await run.cancel('enough');
        errors.push(await rejection(run.add('c', Refund, order)));
      },
    };
    const run = await asynq.start(workflow('w').add('a', Anything, 'a').add('b', Anything, 'b', { after: 'a' }));
    await tasks.drain();
    expect(errors.map((error) => error.name)).toEqual([
      'InvalidWorkflowError',
      'InvalidWorkflowError',
      'InvalidTaskError',
      'InvalidWorkflowError',
      'InvalidWorkflowError',
      'WorkflowStateError',
    ]);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('has another step "b", a task "anything"'),
      expect.stringContaining('did you mean "a"?'),
      expect.stringContaining('BigInt'),
      expect.stringContaining('must be 1 to 100 letters'),
      expect.stringMatching(/step "c" of run "w\/.+" has a cycle, .+: c → c$/),
      expect.stringContaining('it is cancelled'),
    ]);
    expect(await run.done()).toMatchObject({
      state: 'cancelled',
      steps: { b: { state: 'cancelled', error: 'enough' } },
    });
    expect(ran).toEqual(['a']);
  });
});

describe('cancelling and deleting', () => {
  it('ends a run: what waits does not run, what runs is cancelled, nothing is left', async () => {
    const { asynq, tasks } = world;
    let reason: unknown;
    behaviour = {
      a: async ({ signal }) => {
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
        expect(await asynq.run(flow, '1').cancel('the order was withdrawn')).toBe(true);
        await aborted;
        reason = (signal.reason as Error).message;
      },
    };
    const flow = workflow('w')
      .add('a', Anything, 'a')
      .add('side', Anything, 'side', { options: { processIn: '1h' } })
      .add('b', Anything, 'b', { after: 'a' });
    const run = await asynq.start(flow, { id: '1' });
    await tasks.drain();
    expect(reason).toBe('the order was withdrawn');
    expect(await run.done()).toMatchObject({
      state: 'cancelled',
      steps: { a: { state: 'cancelled' }, b: { state: 'cancelled', error: 'the order was withdrawn' } },
    });
    expect(await run.cancel()).toBe(false);
    expect(ran).toEqual(['a']);
    expect(tasks.enqueued()).toEqual([]);
    await run.delete();
    expect(await rejection(run.state())).toBeInstanceOf(WorkflowNotFoundError);
    expect((await asynq.start(flow, { id: '1' })).created).toBe(true);
  });

  it('refuses to delete a running run, and deletes an ended one with its archived tasks', async () => {
    const { asynq, tasks } = world;
    behaviour = { a: fails };
    const run = await asynq.start(workflow('w').add('a', Anything, 'a'));
    expect(await rejection(run.delete())).toBeInstanceOf(WorkflowStateError);
    await tasks.drain();
    expect(tasks.archived()).toHaveLength(1);
    await run.delete();
    expect(tasks.archived()).toEqual([]);
    for (const act of [() => run.cancel(), () => run.retry(), () => run.delete(), () => run.outcome()]) {
      expect(await rejection(act())).toBeInstanceOf(WorkflowNotFoundError);
    }
  });

  it('ends a run at its timeout, and forgets it after its retention', async () => {
    const { asynq, tasks } = world;
    const late = workflow('w', { timeout: '10m', retention: '1h' });
    const run = await asynq.start(late.add('a', Anything, 'a', { options: { processIn: '1d' } }));
    await tasks.advance('11m');
    expect(await run.done()).toMatchObject({ state: 'cancelled' });
    await tasks.advance('62m');
    expect(await rejection(run.state())).toBeInstanceOf(WorkflowNotFoundError);
  });
});
