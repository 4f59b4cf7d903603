import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  defineSignal,
  defineTask,
  Payload,
  RevokeTask,
  SignalTimeoutError,
  SkipRetry,
  StepFailedError,
  Steps,
  TaskCtx,
  TaskHandler,
  TaskSuspended,
  type TaskContext,
  type TaskSteps,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { compile, rejection } from '../nest/support.js';

const Work = defineTask<string>('work', { retryDelay: () => 60_000, maxRetry: 3 });
const Changed = defineTask<string>('changed', {
  retryDelay: () => 60_000,
  steps: { onChange: 'continue', version: 2 },
});
const Strict = defineTask<string>('strict', {
  retryDelay: () => 60_000,
  steps: { version: 2, onOtherVersion: 'fail' },
});
const Render = defineTask<{ orderId: string }, { url: string; at: Date }>('render', { queue: 'pdf', maxRetry: 1 });
const Pack = defineTask<number, number>('pack');
const Approval = defineSignal<{ by: string }>('approval');

type Body = (steps: TaskSteps, task: TaskContext) => Promise<unknown>;

@Injectable()
class Workers {
  readonly log: string[] = [];
  readonly work: Record<string, Body> = {};
  renders: (orderId: string) => { url: string; at: Date } = (orderId) => ({ url: `/${orderId}.pdf`, at: new Date(0) });

  @TaskHandler(Work)
  async run(@Payload() name: string, @Steps() steps: TaskSteps, @TaskCtx() task: TaskContext): Promise<unknown> {
    return this.work[name]!(steps, task);
  }

  @TaskHandler(Changed)
  async changed(@Payload() name: string, @Steps() steps: TaskSteps, @TaskCtx() task: TaskContext): Promise<unknown> {
    return this.work[name]!(steps, task);
  }

  @TaskHandler(Strict)
  async strict(@Payload() name: string, @Steps() steps: TaskSteps, @TaskCtx() task: TaskContext): Promise<unknown> {
    return this.work[name]!(steps, task);
  }

  @TaskHandler(Render)
  async render(@Payload() { orderId }: { orderId: string }): Promise<{ url: string; at: Date }> {
    this.log.push(`render ${orderId}`);
    return this.renders(orderId);
  }

  @TaskHandler(Pack)
  async pack(@Payload() weight: number): Promise<number> {
    this.log.push(`pack ${weight}`);
    return weight * 2;
  }
}

let tester: AsynqTester;
let asynq: AsynqClient;
let inspector: AsynqInspector;
let workers: Workers;
let broker: InMemoryBroker;

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
  broker = module.get(ASYNQ_BROKER);
});

const lastErr = async ({ queue, id }: { queue: string; id: string }): Promise<string | undefined> =>
  (await inspector.getTaskInfo(queue, id))?.lastErr;

it('a called task that does not answer is asked for: after five seconds, then each time after twice as long', async () => {
  let calls = 0;
  workers.work['ask'] = async (steps) => {
    calls++;
    await steps.call('pack', Pack, 1, { processIn: '2h' });
  };
  const info = await asynq.enqueue(Work, 'ask');
  await tester.drain();
  const seconds: number[] = [];
  for (let second = 1; second <= 100; second++) {
    const before = calls;
    await tester.advance('1s');
    if (calls > before) seconds.push(second);
  }
  expect(seconds).toEqual([5, 10, 20, 40, 80]);
  await tester.advance('2h');
  expect(await inspector.getTaskInfo(info.queue, info.id)).toBeUndefined();
});

describe('retries of a step', () => {
  it('are its own: the task does not count them, and the step comes when its time has come', async () => {
    let tries = 0;
    workers.work['flaky'] = async (steps) => {
      const value = await steps.run(
        'flaky',
        () => {
          if (++tries < 3) throw new Error(`try ${tries}`);
          return tries;
        },
        { retry: { max: 5, delay: (failed) => failed * 10_000 } },
      );
      workers.log.push(`brought ${value}`);
    };
    const info = await asynq.enqueue(Work, 'flaky');
    expect(await tester.drain()).toMatchObject({ suspended: 1, total: 1 });
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ state: 'scheduled', retried: 0 });
    expect(await tester.advance('9s')).toMatchObject({ total: 0 });
    expect(await tester.advance('1s')).toMatchObject({ suspended: 1 });
    expect(await tester.advance('19s')).toMatchObject({ total: 0 });
    expect(await tester.advance('1s')).toMatchObject({ done: 1 });
    expect(workers.log).toEqual(['brought 3']);
  });

  it('archive the task when they are used up; run by hand, the step is tried anew', async () => {
    let isBroken = true;
    let tries = 0;
    workers.work['broken'] = async (steps) => {
      await steps.run('first', () => workers.log.push('first'));
      await steps.run('broken', () => void (++tries, isBroken && fail('no card')), { retry: { max: 1, delay: '1s' } });
    };
    const info = await asynq.enqueue(Work, 'broken');
    expect(await tester.advance('1m')).toMatchObject({ suspended: 1, archived: 1 });
    expect(await lastErr(info)).toBe('step "broken" has failed 2 times, and is not tried again: no card');
    await inspector.runTask(info.queue, info.id);
    expect(await tester.advance('1m')).toMatchObject({ suspended: 1, archived: 1 });
    expect(tries).toBe(4);
    isBroken = false;
    await inspector.runTask(info.queue, info.id);
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(workers.log).toEqual(['first']);
  });

  it('are none after a wait whose signal did not come: each would fail the same', async () => {
    workers.work['late'] = async (steps) => {
      await steps.run('capture', () => 1, { undo: () => workers.log.push('undo capture') });
      await steps.waitFor('approved', Approval, { timeout: '3d' });
    };
    const info = await asynq.enqueue(Work, 'late');
    expect(await tester.drain()).toMatchObject({ suspended: 1, total: 1 });
    expect(await tester.advance('3d')).toMatchObject({ suspended: 1, archived: 1, total: 2 });
    expect(workers.log).toEqual(['undo capture']);
    expect(await lastErr(info)).toBe(
      'step "approved" has waited for the signal "approval" until its timeout; undone: capture',
    );
  });

  it('a wait that has timed out leaves the next signal to a later wait, or to one beside it', async () => {
    const orLate = async <T>(wait: Promise<T>): Promise<T | undefined> => {
      try {
        return await wait;
      } catch (error) {
        if (error instanceof SignalTimeoutError) return undefined;
        throw error;
      }
    };
    workers.work['again'] = async (steps) => {
      expect(await orLate(steps.waitFor('first', Approval, { timeout: '1d' }))).toBeUndefined();
      workers.log.push((await steps.waitFor('second', Approval)).by);
    };
    workers.work['beside'] = async (steps) => {
      const first = orLate(steps.waitFor('first', Approval, { timeout: '1d' }));
      const waits = await Promise.all([first, steps.waitFor('second', Approval)]);
      workers.log.push(`beside ${waits.map((got) => got?.by)}`);
    };
    for (const name of ['again', 'beside']) {
      const info = await asynq.enqueue(Work, name);
      await tester.advance('1d');
      await asynq.signal(info, Approval, { by: 'anna' });
      expect((await inspector.steps(info.queue, info.id))!.steps.map(({ state }) => state)).toEqual(['failed', 'done']);
      expect(await tester.drain()).toMatchObject({ done: 1, total: 1 });
    }
    expect(workers.log).toEqual(['anna', 'beside ,anna']);
  });

  it('used up, throw the same each time, so that a handler may go another way', async () => {
    const seen: unknown[] = [];
    let calls = 0;
    workers.work['caught'] = async (steps) => {
      const error = await rejection(steps.run('capture', () => fail('declined'), { retry: { max: 0 } }));
      seen.push(error);
      await steps.run('notify', () => workers.log.push('notify'));
      if (++calls < 2) throw new Error('later');
    };
    await asynq.enqueue(Work, 'caught');
    expect(await tester.advance('2m')).toMatchObject({ retry: 1, done: 1 });
    expect(seen).toEqual([expect.any(StepFailedError), expect.any(StepFailedError)]);
    expect(seen[1]).toMatchObject({ step: 'capture', message: (seen[0] as Error).message });
    expect(workers.log).toEqual(['notify']);
  });

  it('are none for what decides about the task', async () => {
    workers.work['skip'] = (steps) =>
      steps.run('skip', () => Promise.reject(new SkipRetry('never')), { retry: { max: 5 } });
    await asynq.enqueue(Work, 'skip');
    expect(await tester.drain()).toMatchObject({ archived: 1, total: 1 });
  });

  it.each<[object, string]>([
    [{ retry: { max: -1 } }, 'max of retry of step "s" must be a whole number from 0 on, not -1'],
    [{ retry: { max: 1, delay: 'soon' } }, 'delay of retry of step "s"'],
    [{ retry: { max: 1, delays: '1s' } }, 'did you mean "delay"'],
    [{ undo: 'refund' }, 'undo of step "s" must be a function'],
    [{ attempts: 3 }, 'option of step "s"'],
  ])('say what is wrong: %j', async (options, message) => {
    workers.work['wrong'] = (steps) => steps.run('s', () => 1, options);
    const info = await asynq.enqueue(Work, 'wrong');
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    expect(await lastErr(info)).toContain(message);
  });
});

describe('compensations', () => {
  const saga =
    (end: (steps: TaskSteps) => Promise<unknown>): Body =>
    async (steps) => {
      const note = (what: string) => (): string => (workers.log.push(what), what);
      await steps.run('capture', note('capture'), { undo: (what) => void workers.log.push(`undo ${what}`) });
      await steps.run('note', note('note'));
      await steps.run('reserve', note('reserve'), { undo: async (what) => void workers.log.push(`undo ${what}`) });
      return end(steps);
    };
  const LOG = ['capture', 'note', 'reserve', 'undo reserve', 'undo capture'];

  it('run backwards once the retries of the task are used up, and it is archived with its own error', async () => {
    let fails = 0;
    workers.work['saga'] = saga(() => fail(`no parcel ${++fails}`));
    const info = await asynq.enqueue(Work, 'saga');
    await tester.advance('10m');
    expect(workers.log).toEqual(LOG);
    const task = await inspector.getTaskInfo(info.queue, info.id);
    expect(task).toMatchObject({ state: 'archived', maxRetry: 3, retried: 3 });
    expect(task?.lastErr).toBe('no parcel 4; undone: reserve, capture');
    expect(task?.headers).toEqual({});
  });

  it('run for a task without retries, for SkipRetry, and for one that is revoked, which is gone then', async () => {
    workers.work['saga'] = saga(() => fail('no'));
    const info = await asynq.enqueue(Work, 'saga', { maxRetry: 0 });
    expect(await tester.drain()).toMatchObject({ suspended: 1, archived: 1 });
    expect(await lastErr(info)).toBe('no; undone: reserve, capture');
    workers.work['saga'] = saga(() => Promise.reject(new SkipRetry('never')));
    await asynq.enqueue(Work, 'saga');
    expect(await tester.drain()).toMatchObject({ suspended: 1, archived: 1 });
    workers.work['saga'] = saga(() => Promise.reject(new RevokeTask('gone')));
    const revoked = await asynq.enqueue(Work, 'saga');
    expect(await tester.drain()).toMatchObject({ suspended: 1, revoked: 1 });
    expect(await inspector.getTaskInfo(revoked.queue, revoked.id)).toBeUndefined();
    expect(workers.log).toEqual([...LOG, ...LOG, ...LOG]);
  });

  it('run when the deadline of the task has passed while it slept', async () => {
    workers.work['saga'] = saga((steps) => steps.sleep('nap', '2h'));
    const info = await asynq.enqueue(Work, 'saga', { deadline: new Date(tester.clock.now() + 3_600_000) });
    await tester.advance('3h');
    expect(workers.log).toEqual(LOG);
    expect(await lastErr(info)).toContain('context deadline exceeded');
  });

  it('go on when one of them fails, and when the handler catches what stops it', async () => {
    let refusals = 2;
    workers.work['saga'] = async (steps) => {
      await steps.run('a', () => 1, { undo: () => void workers.log.push('undo a') });
      await steps.run('b', () => 2, { undo: () => (refusals-- > 0 ? fail('not now') : workers.log.push('undo b')) });
      await steps
        .run('c', () => fail('no'))
        .catch((error: unknown) => {
          if (error instanceof TaskSuspended) workers.log.push('swallowed');
          else throw error;
        });
    };
    const info = await asynq.enqueue(Work, 'saga', { maxRetry: 0 });
    await tester.advance('10m');
    expect(workers.log).toEqual(['swallowed', 'swallowed', 'swallowed', 'undo b', 'undo a']);
    expect(await lastErr(info)).toBe('no; undone: b, a');
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ maxRetry: 0, state: 'archived' });
  });

  it('are not there for steps that failed, or were not reached; without any the task is archived at once', async () => {
    workers.work['none'] = async (steps) => {
      await steps.run('a', () => 1);
      await steps.run('b', () => fail('no'), { undo: () => workers.log.push('undo b') });
    };
    await asynq.enqueue(Work, 'none', { maxRetry: 0 });
    expect(await tester.drain()).toMatchObject({ archived: 1, total: 1 });
    expect(workers.log).toEqual([]);
  });

  it('undone, a task that is run by hand begins anew, with signals of its own', async () => {
    workers.work['saga'] = saga(async (steps) => {
      const { by } = await steps.waitFor('approved', Approval);
      if (by === 'anna') fail('no');
      workers.log.push(by);
    });
    const info = await asynq.enqueue(Work, 'saga', { maxRetry: 0 });
    await asynq.signal(info, Approval, { by: 'anna' });
    await tester.drain();
    expect(workers.log).toEqual(LOG);
    await inspector.runTask(info.queue, info.id);
    expect(await tester.drain()).toMatchObject({ suspended: 1 });
    expect(workers.log).toEqual([...LOG, 'capture', 'note', 'reserve']);
    await asynq.signal(info, Approval, { by: 'berta' });
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(workers.log.at(-1)).toBe('berta');
  });

  it('undone, a task waits for a signal of any name again', async () => {
    const Odd = defineSignal('constructor');
    workers.work['saga'] = saga((steps) => steps.waitFor('odd', Odd, { timeout: '1h' }));
    const info = await asynq.enqueue(Work, 'saga', { maxRetry: 0 });
    await tester.advance('1h');
    await inspector.runTask(info.queue, info.id);
    await tester.drain();
    await asynq.signal(info, Odd);
    expect((await inspector.steps(info.queue, info.id))!.signals).toEqual([
      { name: 'constructor', count: 1, taken: 1 },
    ]);
    expect(await tester.drain()).toMatchObject({ done: 1 });
  });

  it('run for the second life of a task, too, also when its server has died before it could say so', async () => {
    workers.work['saga'] = saga(() => fail('no'));
    const info = await asynq.enqueue(Work, 'saga', { maxRetry: 0 });
    await tester.drain();
    expect(workers.log).toEqual(LOG);
    await inspector.runTask(info.queue, info.id);
    tester.crashAfter('reserve');
    await tester.advance('1h');
    expect(workers.log).toEqual([...LOG, ...LOG]);
    expect(await lastErr(info)).toBe('asynq: task lease expired; undone: reserve, capture');
    await inspector.runTask(info.queue, info.id);
    await tester.advance('1h');
    expect(workers.log).toEqual([...LOG, ...LOG, ...LOG]);
  });

  it('of steps that the handler has no more fail, and say so', async () => {
    workers.work['saga'] = saga(() => fail('no'));
    const info = await asynq.enqueue(Work, 'saga', { maxRetry: 0 });
    const original = workers.work['saga'];
    workers.work['saga'] = async (steps, task) => {
      if (task.headers['asynq-undoing'] === undefined) return original(steps, task);
      return steps.run('capture', () => 1, { undo: () => workers.log.push('undo capture') });
    };
    await tester.drain();
    expect(await lastErr(info)).toContain(
      'cannot be undone: its handler does not ask any more, with an undo, for "reserve"',
    );
    workers.work['saga'] = original;
    await tester.advance('1h');
    expect(workers.log).toEqual(LOG);
  });
});

describe('a called task', () => {
  it('runs once, and its result is typed', async () => {
    workers.work['call'] = async (steps) => {
      const invoice = await steps.call('invoice', Render, { orderId: '7' });
      expectTypeOf(invoice).toEqualTypeOf<{ url: string; at: string }>();
      workers.log.push(`${invoice.url} ${invoice.at}`);
    };
    const info = await asynq.enqueue(Work, 'call');
    expect(await tester.drain()).toMatchObject({ suspended: 1, done: 2, total: 3 });
    expect(workers.log).toEqual(['render 7', '/7.pdf 1970-01-01T00:00:00.000Z']);
    expect(await inspector.getTaskInfo('pdf', `${info.id}~invoice`)).toBeUndefined();
  });

  it('takes options, and has its own defaults', async () => {
    workers.work['later'] = (steps) =>
      steps.call('invoice', Render, { orderId: '7' }, { processIn: '1h', retention: '1d' });
    const info = await asynq.enqueue(Work, 'later');
    expect(await tester.drain()).toMatchObject({ suspended: 1, total: 1 });
    expect(await inspector.getTaskInfo('pdf', `${info.id}~invoice`)).toMatchObject({ state: 'scheduled', maxRetry: 1 });
    expect(await tester.advance('1h')).toMatchObject({ completed: 1, done: 2 });
  });

  it('side by side: the handler is called again when all have ended', async () => {
    let calls = 0;
    workers.work['all'] = async (steps) => {
      calls++;
      const { receipt, parcel } = await steps.all({ receipt: [Render, { orderId: '8' }], parcel: [Pack, 21] });
      expectTypeOf(receipt.url).toEqualTypeOf<string>();
      expectTypeOf(parcel).toEqualTypeOf<number>();
      workers.log.push(`${receipt.url} ${parcel}`);
      // @ts-expect-error the payload is of another type
      void (() => steps.all({ parcel: [Pack, 'heavy'] }));
      // @ts-expect-error the payload is missing
      void (() => steps.all({ parcel: [Pack] }));
    };
    await asynq.enqueue(Work, 'all');
    await tester.drain();
    expect(workers.log.at(-1)).toBe('/8.pdf 42');
    expect(calls).toBeLessThanOrEqual(3);
  });

  it('that fails for good fails the step, and the task is archived; both may be run again by hand', async () => {
    workers.renders = () => fail('no paper');
    workers.work['call'] = async (steps) => {
      await steps.run('before', () => workers.log.push('before'), { undo: () => workers.log.push('undo before') });
      await steps.call('invoice', Render, { orderId: '9' }, { maxRetry: 0 });
      workers.log.push('after');
    };
    const info = await asynq.enqueue(Work, 'call');
    await tester.drain();
    expect(await lastErr(info)).toBe(
      `step "invoice" has failed, and so has the task "${info.id}~invoice" of queue "pdf" that it called: no paper; undone: before`,
    );
    expect(workers.log).toEqual(['before', 'render 9', 'undo before']);
  });

  it('that is run by hand, and succeeds, lets the task go on that is run by hand, too', async () => {
    let isBroken = true;
    workers.renders = (orderId) => (isBroken ? fail('no paper') : { url: orderId, at: new Date(0) });
    workers.work['call'] = async (steps) => {
      const { url } = await steps.call('invoice', Render, { orderId: '9' }, { maxRetry: 0 });
      workers.log.push(url);
    };
    const info = await asynq.enqueue(Work, 'call');
    expect(await tester.drain()).toMatchObject({ archived: 2 });
    await inspector.runTask(info.queue, info.id);
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    isBroken = false;
    await inspector.runTask('pdf', `${info.id}~invoice`);
    expect(await tester.drain()).toMatchObject({ done: 1 });
    await inspector.runTask(info.queue, info.id);
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(workers.log.at(-1)).toBe('9');
  });

  it('that was deleted fails the step', async () => {
    workers.work['call'] = (steps) => steps.call('invoice', Render, { orderId: '9' }, { processIn: '1h' });
    const info = await asynq.enqueue(Work, 'call');
    await tester.drain();
    await inspector.deleteTask('pdf', `${info.id}~invoice`);
    await tester.advance('10m');
    expect(await lastErr(info)).toContain('deleted');
  });

  it.each<[string, (steps: TaskSteps) => Promise<unknown>, string]>([
    ['an id', (steps) => steps.call('s', Pack, 1, { taskId: 'x' } as never), 'cannot have the option taskId'],
    ['a group', (steps) => steps.call('s', Pack, 1, { group: 'x' } as never), 'cannot have the option group'],
    ['no definition', (steps) => steps.call('s', 7 as never), 'must be a task definition or a type name, not 7'],
    ['no array', (steps) => steps.all({ a: Pack } as never), '"a" of steps.all must be an array'],
    ['a payload that JSON refuses', (steps) => steps.call('s', 'x', 1n), 'cannot be encoded'],
  ])('is refused with %s', async (_, body, message) => {
    workers.work['wrong'] = body;
    const info = await asynq.enqueue(Work, 'wrong');
    await tester.drain();
    expect(await lastErr(info)).toContain(message);
  });
});

describe('rows', () => {
  it('go on behind the last one that was done after a failure, and steps may follow', async () => {
    let isBroken = true;
    workers.work['rows'] = async (steps) => {
      const count = await steps.each('rows', [10, 20, 30, 40], async (row, index) => {
        if (row === 30 && isBroken) throw new Error('broken row');
        workers.log.push(`${index}:${row}`);
      });
      workers.log.push(`${count} rows`);
      await steps.run('after', () => workers.log.push('after'));
      if (isBroken) throw new Error('never');
    };
    await asynq.enqueue(Work, 'rows');
    expect(await tester.drain()).toMatchObject({ retry: 1 });
    expect(workers.log).toEqual(['0:10', '1:20']);
    isBroken = false;
    expect(await tester.advance('1m')).toMatchObject({ done: 1 });
    expect(workers.log).toEqual(['0:10', '1:20', '2:30', '3:40', '4 rows', 'after']);
  });

  it.each<[string, unknown, string]>([
    ['a bigint', 1n, 'the cursor of step "rows" cannot be stored: it has a bigint'],
    ['a Map', new Map(), 'it has a Map'],
    ['an invalid date', { at: new Date(NaN) }, 'it has an invalid Date at at'],
    ['nothing', undefined, 'the cursor of step "rows" is undefined'],
  ])('whose cursor is %s end at once: the next call would begin somewhere else', async (_, cursor, message) => {
    workers.work['rows'] = (steps) =>
      steps.each(
        'rows',
        () => [1, 2],
        (row) => workers.log.push(String(row)),
        { cursor: () => cursor },
      );
    const info = await asynq.enqueue(Work, 'rows');
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    expect(await lastErr(info)).toContain(message);
    expect(workers.log).toEqual(['1']);
  });

  it('come from a function that gets the cursor of the last one', async () => {
    const asked: unknown[] = [];
    let fails = 1;
    workers.work['pages'] = async (steps) => {
      async function* rows(from: number | undefined): AsyncIterable<{ id: number }> {
        asked.push(from);
        for (let id = (from ?? 0) + 1; id <= 5; id++) yield { id };
      }
      await steps.each(
        'rows',
        rows,
        ({ id }) => {
          if (id === 4 && fails-- > 0) throw new Error('broken');
          workers.log.push(String(id));
        },
        { from: 1, cursor: ({ id }) => id },
      );
    };
    await asynq.enqueue(Work, 'pages');
    await tester.advance('1m');
    expect(asked).toEqual([1, 3]);
    expect(workers.log).toEqual(['2', '3', '4', '5']);
  });

  it('are stored once per `every` at most, and are not asked for again when they are done', async () => {
    let written = 0;
    const write = broker.checkpoints.write.bind(broker.checkpoints);
    broker.checkpoints.write = (...args) => (written++, write(...args));
    let calls = 0;
    workers.work['many'] = async (steps) => {
      const rows = Array.from({ length: 1000 }, (_, n) => n);
      await steps.each('rows', rows, () => void calls++, { every: '1h' });
      throw new Error('later');
    };
    await asynq.enqueue(Work, 'many');
    await tester.advance('1m');
    expect([calls, written]).toEqual([1000, 1]);
  });

  it.each<[string, (steps: TaskSteps) => Promise<unknown>, string]>([
    ['no rows', (steps) => steps.each('r', 7 as never, () => 1), 'rows of step "r" must be an iterable'],
    [
      'a function without rows',
      (steps) => steps.each('r', (() => 7) as never, () => 1),
      'rows of step "r" must return an iterable',
    ],
    [
      'a cursor for an array',
      (steps) => steps.each('r', [1], () => 1, { cursor: () => 1 }),
      'are for rows that a function gives',
    ],
    ['a step in a row', (steps) => steps.each('r', [1], () => steps.run('x', () => 1)), 'step "x" is in step "r"'],
  ])('say what is wrong: %s', async (_, body, message) => {
    workers.work['wrong'] = body;
    const info = await asynq.enqueue(Work, 'wrong');
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    expect(await lastErr(info)).toContain(message);
  });
});

describe('a server that dies', () => {
  it.each(['capture', 'row#2', 'rows', 'ship'])('after step %s lets another one go on behind that', async (step) => {
    workers.work['order'] = async (steps) => {
      const note = (what: string) => () => void workers.log.push(what);
      await steps.run('capture', note('capture'));
      for (const row of ['one', 'two', 'three']) await steps.run('row', note(row));
      await steps.each('rows', ['a', 'b'], (row) => note(row)());
      await steps.run('ship', note('ship'));
    };
    const info = await asynq.enqueue(Work, 'order', { retention: '1d' });
    tester.crashAfter(step);
    expect(await tester.drain()).toMatchObject({ lost: 1, total: 1 });
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ state: 'retry', retried: 1 });
    expect(await tester.advance('1h')).toMatchObject({ completed: 1 });
    expect(workers.log).toEqual(['capture', 'one', 'two', 'three', 'a', 'b', 'ship']);
  });
});

describe('a signal by the key of a task', () => {
  const key = ({ orderId }: { orderId: string }): string => orderId;
  const body: Body = async (steps) => workers.log.push((await steps.waitFor('approved', Approval)).by);

  it.each<[string, object]>([
    ['once', { once: '1d' }],
    ['unique', { unique: { for: '1d', by: 'key' } }],
    ['latest', { latest: true }],
    ['debounce', { debounce: { wait: '1s' } }],
  ])('finds it with %s', async (_, options) => {
    const Keyed = defineTask<{ orderId: string }>('work', { key, ...options } as never);
    workers.work['[object Object]'] = body;
    await asynq.enqueue(Keyed, { orderId: '7' });
    expect(await tester.advance('2s')).toMatchObject({ suspended: 1 });
    await asynq.signal(Keyed, { key: '7' }, Approval, { by: 'anna' });
    await tester.drain();
    expect(workers.log).toEqual(['anna']);
    const failure = _ === 'unique' ? 'task not found: key="8"' : 'task not found';
    await expect(asynq.signal(Keyed, { key: '8' }, Approval, { by: 'anna' })).rejects.toThrow(failure);
  });

  it('says why it cannot', async () => {
    await expect(asynq.signal(Work, { key: '7' }, Approval, { by: 'x' })).rejects.toThrow(
      'a task "work" cannot be found by its key; give its definition once',
    );
    await expect(asynq.signal(Work, { id: '7' } as never, Approval, { by: 'x' })).rejects.toThrow(
      'unknown key of the task "work" to signal: "id"; known are key, queue',
    );
  });
});

describe('steps side by side', () => {
  const turns = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
  };

  it('end before the attempt does, so that what they have done is undone', async () => {
    workers.work['race'] = async (steps) => {
      const capture = async (): Promise<string> => {
        await turns(20);
        workers.log.push('capture');
        return 'c';
      };
      await Promise.all([
        steps.run('ship', () => Promise.reject(new SkipRetry('sold out'))),
        steps.run('capture', capture, { undo: (id) => void workers.log.push(`refund ${id}`) }),
      ]);
    };
    const info = await asynq.enqueue(Work, 'race');
    await tester.drain();
    expect(workers.log).toEqual(['capture', 'refund c']);
    expect(await lastErr(info)).toBe('sold out; undone: capture');
  });

  it('go on, one behind the other, while another one waits', async () => {
    workers.work['race'] = async (steps) => {
      await Promise.all([
        steps.waitFor('approved', Approval),
        (async () => {
          await steps.run('a', async () => (await turns(3), workers.log.push('a')));
          await steps.run('b', async () => (await turns(3), workers.log.push('b')));
          await steps.call('pack', Pack, 1);
        })(),
      ]);
    };
    await asynq.enqueue(Work, 'race');
    await tester.drain();
    expect(workers.log).toEqual(['a', 'b', 'pack 1']);
  });

  it('fail with their own error while another one sleeps, whose time goes on', async () => {
    let fails = 1;
    workers.work['race'] = async (steps) => {
      await Promise.all([
        steps.sleep('nap', '1h'),
        steps.run('broken', async () => (await turns(3), fails-- > 0 && fail('broken'))),
      ]);
    };
    const info = await asynq.enqueue(Work, 'race');
    await tester.drain();
    expect(await lastErr(info)).toBe('broken');
    expect(await tester.advance('1h')).toMatchObject({ done: 1 });
  });

  it('are undone, also where one gives its compensation later than the handler has ended', async () => {
    workers.work['race'] = async (steps) => {
      const undo = (what: string) => ({ undo: () => void workers.log.push(`undo ${what}`) });
      await Promise.all([
        steps.run('ship', async () => (await turns(30), fail('no'))),
        (async () => {
          await steps.run('a', () => 1, undo('a'));
          await turns(10);
          await steps.run('b', () => 2, undo('b'));
        })(),
      ]);
    };
    const info = await asynq.enqueue(Work, 'race', { maxRetry: 0 });
    await tester.drain();
    expect(workers.log).toEqual(['undo b', 'undo a']);
    expect(await lastErr(info)).toBe('no; undone: b, a');
  });
});

describe('an attempt that is over', () => {
  it('begins no step any more', async () => {
    workers.work['slow'] = async (steps, task) => {
      await new Promise((resolve) => task.signal.addEventListener('abort', resolve));
      await steps.run('ship', () => workers.log.push('ship'));
    };
    await asynq.enqueue(Work, 'slow', { timeout: '1s', maxRetry: 0 });
    await tester.advance('1m');
    expect(workers.log).toEqual([]);
  });

  it('half undone goes on with that when it is run by hand, even if nothing fails any more', async () => {
    let isBroken = true;
    workers.work['saga'] = async (steps) => {
      await steps.run('a', () => 1, { undo: () => void workers.log.push('undo a') });
      await steps.run('b', () => 2, { undo: () => (isBroken ? fail('not now') : workers.log.push('undo b')) });
      if (isBroken) throw new SkipRetry('no');
    };
    const info = await asynq.enqueue(Work, 'saga');
    await tester.advance('1h');
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({
      state: 'archived',
      lastErr:
        'not now; not all its steps are undone (it was at step "b"): run the task by hand to go on with that. It had failed with: no',
    });
    isBroken = false;
    await inspector.runTask(info.queue, info.id);
    await tester.advance('1m');
    expect(workers.log).toEqual(['undo b', 'undo a']);
    expect(await lastErr(info)).toBe('no; undone: b, a');
  });

  it('says which step is damaged in the store', async () => {
    workers.work['x'] = async (steps) => {
      await steps.run('a', () => 1);
      throw new Error('again');
    };
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    broker.checkpoints.read = async () => ({
      checkpoints: new Map([['a', Buffer.from('{"n":0')]]),
      signals: new Map(),
      answers: new Map(),
    });
    await tester.advance('1m');
    expect(await lastErr(info)).toContain('what is stored of step "a" of task "work"');
  });
});

describe('options of steps', () => {
  it('continue with changed steps, found by their names, and tell the version that began', async () => {
    const versions: number[] = [];
    workers.work['x'] = async (steps) => {
      versions.push(await steps.version());
      await steps.run('a', () => workers.log.push('a'));
      await steps.run('b', () => workers.log.push('b'));
      throw new Error('deploy');
    };
    await asynq.enqueue(Changed, 'x');
    await tester.drain();
    workers.work['x'] = async (steps) => {
      versions.push(await steps.version());
      await steps.run('new', () => workers.log.push('new'));
      await steps.run('b', () => workers.log.push('b'));
    };
    expect(await tester.advance('1m')).toMatchObject({ done: 1 });
    expect(workers.log).toEqual(['a', 'b', 'new']);
    expect(versions).toEqual([2, 2]);
  });

  it.each<[string, (steps: TaskSteps, attempt: number) => Promise<unknown>]>([
    [
      'stores a step again',
      (steps, attempt) => steps.run('a', () => (attempt < 3 ? fail('not yet') : 1), { retry: { max: 3, delay: '1m' } }),
    ],
    [
      'stores the first of those side by side',
      (steps, attempt) =>
        Promise.all([
          steps.run('a', () => sleep(1).then(() => (attempt === 1 ? fail('not yet') : 1))),
          steps.run('b', () => 2),
        ]),
    ],
  ])('say which version began, also when a later one %s', async (_, first) => {
    const versions: number[] = [];
    workers.work['x'] = async (steps) => {
      versions.push(await steps.version());
      await first(steps, versions.length);
      await steps.sleep('c', '1d');
    };
    await asynq.enqueue(Changed, 'x');
    await tester.drain();
    // What is stored until now is of version 1.
    const { checkpoints } = broker;
    const read = checkpoints.read.bind(checkpoints);
    checkpoints.read = async (...args) => {
      const { checkpoints: all, ...rest } = await read(...args);
      const old = [...all].map(
        ([name, bytes]) => [name, Buffer.from(String(bytes).replace('"v":2', '"v":1'))] as const,
      );
      return { ...rest, checkpoints: new Map(old) };
    };
    await tester.advance('1m');
    checkpoints.read = read;
    await tester.advance('2d');
    expect(versions.length).toBeGreaterThan(2);
    expect(versions).toEqual([2, ...versions.slice(1).fill(1)]);
  });

  it('refuse tasks that another version has begun', async () => {
    workers.work['x'] = async (steps) => {
      await steps.run('a', () => 1);
      throw new Error('deploy');
    };
    const info = await asynq.enqueue(Strict, 'x');
    await tester.drain();
    // As version 1 has written it.
    const { checkpoints } = broker;
    const stored = (await checkpoints.read(info.queue, info.id)).checkpoints.get('a')!;
    broker.checkpoints.read = async () => ({
      checkpoints: new Map([['a', Buffer.from(String(stored).replace('"v":2', '"x":0'))]]),
      signals: new Map(),
      answers: new Map(),
    });
    await tester.advance('1m');
    expect(await lastErr(info)).toContain('has steps of version 1 of its handler, which is of version 2 now');
    workers.work['x'] = async (steps) => {
      for (const name of ['a', 'b']) await steps.run(name, () => workers.log.push(name)).catch(() => undefined);
    };
    expect(await tester.advance('1m')).toMatchObject({ retry: 1, total: 1 });
    expect(await lastErr(info)).toContain('has steps of version 1 of its handler, which is of version 2 now');
    expect(workers.log).toEqual([]);
  });

  it.each<[object, string]>([
    [{ onChange: 'ignore' }, "onChange of steps must be 'fail' or 'continue'"],
    [{ version: 0 }, 'version of steps must be a whole number from 1 on, not 0'],
    [{ versions: 2 }, 'did you mean "version"'],
  ])('say what is wrong: %j', (steps, message) => {
    expect(() => defineTask('x', { steps } as never)).toThrow(message);
    class Handlers {
      x(): void {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Handlers.prototype, 'x')!;
    expect(() => TaskHandler('x', { steps } as never)(Handlers.prototype, 'x', descriptor)).toThrow(message);
  });
});

function fail(message: string): never {
  throw new Error(message);
}
