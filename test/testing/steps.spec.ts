import {
  type CallHandler,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  defineSignal,
  defineTask,
  Payload,
  SkipRetry,
  Steps,
  TaskCtx,
  TaskHandler,
  TaskSuspended,
  type TaskContext,
  type TaskInfo,
  type TaskSteps,
} from 'nestjs-asynq';
import { AsynqTester } from 'nestjs-asynq/testing';
import { catchError, type Observable } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { compile, rejection } from '../nest/support.js';

interface Order {
  readonly orderId: string;
}

const Fulfil = defineTask<Order, { captureId: string; by: string }>('order:fulfil', { retention: '1d' });
const Free = defineTask<string>('free', { retryDelay: () => 60_000 });
const Caught = defineTask('caught');
const Approval = defineSignal<{ by: string }>('approval');
const Ping = defineSignal('ping');

@Injectable()
class Passing implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      catchError((error: unknown) => {
        throw error;
      }),
    );
  }
}

/** As one that reports errors. */
@Catch()
class Reports implements ExceptionFilter {
  static readonly seen: string[] = [];
  catch(error: Error): void {
    Reports.seen.push(error.message);
  }
}

@Injectable()
class Orders {
  readonly log: string[] = [];
  calls = 0;
  fails = 0;
  /** What the handler of `free` does, by its payload. */
  readonly work: Record<string, (steps: TaskSteps, task: TaskContext) => Promise<unknown>> = {};

  @TaskHandler(Fulfil)
  @UseInterceptors(Passing)
  @UseFilters(Reports)
  async fulfil(@Payload() { orderId }: Order, @Steps() steps: TaskSteps): Promise<{ captureId: string; by: string }> {
    this.calls += 1;
    const { captureId } = await steps.run('capture', async () => {
      this.log.push(`capture ${orderId}`);
      return { captureId: `c-${orderId}` };
    });
    await steps.sleep('cooling-off', '3d');
    const { by } = await steps.waitFor('approved', Approval, { timeout: '7d' });
    await steps.run('ship', () => {
      this.log.push('ship');
      if (this.fails-- > 0) throw new Error('no parcel');
    });
    return { captureId, by };
  }

  @TaskHandler(Free)
  async free(@Payload() name: string, @Steps() steps: TaskSteps, @TaskCtx() task: TaskContext): Promise<unknown> {
    return this.work[name]!(steps, task);
  }

  @TaskHandler(Caught)
  async caught(@Steps() steps: TaskSteps): Promise<void> {
    await steps.sleep('nap', '1h').catch(() => undefined);
  }
}

let tester: AsynqTester;
let asynq: AsynqClient;
let inspector: AsynqInspector;
let orders: Orders;

beforeEach(async () => {
  const builder = Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: 'memory' })],
    providers: [Orders],
  });
  const module = await compile(builder);
  await module.init();
  tester = AsynqTester.from(module);
  asynq = module.get(AsynqClient);
  inspector = module.get(AsynqInspector);
  orders = module.get(Orders);
});

function circle(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}

const seen = async ({ queue, id }: TaskInfo): Promise<string[]> =>
  (await inspector.steps(queue, id))!.steps.map(({ name, state, result }) =>
    [name, state, JSON.stringify(result)].filter(Boolean).join(' '),
  );

describe('a handler with steps', () => {
  it('sleeps three days, waits for a signal, and does each thing once', async () => {
    const info = await asynq.enqueue(Fulfil, { orderId: '7' });
    expect(await tester.drain()).toMatchObject({ suspended: 1, total: 1 });
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ state: 'scheduled', retried: 0 });
    expect(await tester.advance('2d')).toMatchObject({ total: 0 });
    expect(await seen(info)).toEqual(['capture done {"captureId":"c-7"}', 'cooling-off asleep']);
    expect(await tester.advance('1d')).toMatchObject({ suspended: 1, total: 1 });
    expect((await seen(info)).slice(1)).toEqual(['cooling-off done', 'approved waiting']);
    await asynq.signal(info, Approval, { by: 'anna' });
    expect((await seen(info)).slice(2)).toEqual(['approved done {"by":"anna"}']);
    expect(await tester.drain()).toMatchObject({ completed: 1, total: 1 });
    expect((await seen(info)).slice(3)).toEqual(['ship done']);
    expect(orders.log).toEqual(['capture 7', 'ship']);
    expect(orders.calls).toBe(3);
    const task = await inspector.getTaskInfo(info.queue, info.id);
    expect(JSON.parse(String(task!.result))).toEqual({ captureId: 'c-7', by: 'anna' });
  });

  it('goes on behind its last step after a failure', async () => {
    orders.fails = 1;
    Reports.seen.length = 0;
    const info = await asynq.enqueue(Fulfil, { orderId: '8' });
    await asynq.signal(info, Approval, { by: 'early' });
    await tester.advance('3d');
    expect(orders.log).toEqual(['capture 8', 'ship']);
    expect(await tester.advance('1h')).toMatchObject({ completed: 1, total: 1 });
    expect(orders.log).toEqual(['capture 8', 'ship', 'ship']);
    expect(Reports.seen).toEqual(['no parcel']); // and no suspension
  });

  it('fails when the signal does not come in time, the same way each time', async () => {
    const times: number[] = [];
    orders.work['late'] = async (steps) => {
      times.push(tester.clock.now());
      const error = await rejection(steps.waitFor('approved', Ping, { timeout: '1h' }));
      if (error instanceof TaskSuspended) throw error;
      await steps.run('note', () => orders.log.push(String(error.message)));
      if (times.length === 2) throw new Error('again');
    };
    const info = await asynq.enqueue(Free, 'late');
    await tester.advance('1h');
    await asynq.signal(info, Ping); // too late: the wait is over
    await tester.advance('1h');
    expect(times).toHaveLength(3);
    expect(orders.log).toEqual(['step "approved" has waited for the signal "ping" until its timeout']);
  });

  it('counts steps of one name, and runs steps side by side before it sleeps', async () => {
    orders.work['loop'] = async (steps) => {
      for (const n of [1, 2, 3]) await steps.run('row', () => orders.log.push(`row ${n}`));
      const side = steps.run('side', async () => {
        await new Promise((resolve) => setImmediate(resolve));
        orders.log.push('side');
        return 5;
      });
      const [, five] = await Promise.all([steps.sleep('nap', '1m'), side]);
      return five;
    };
    await asynq.enqueue(Free, 'loop', { retention: '1d' });
    expect(await tester.advance('2m')).toMatchObject({ suspended: 1, completed: 1 });
    expect(orders.log).toEqual(['row 1', 'row 2', 'row 3', 'side']);
  });

  it('waits for whatever comes first', async () => {
    orders.work['race'] = async (steps) => {
      const first = await Promise.all([
        steps.waitFor('approved', Approval, { timeout: '1d' }).then(({ by }) => by),
        steps.waitFor('pinged', Ping, { timeout: '2d' }),
        steps.sleep('nap', '1h'),
      ]);
      orders.log.push(String(first[0]));
    };
    const info = await asynq.enqueue(Free, 'race');
    expect(await tester.drain()).toMatchObject({ suspended: 1 });
    expect(await tester.advance('1h')).toMatchObject({ suspended: 1 });
    await asynq.signal(info, Ping);
    expect(await tester.drain()).toMatchObject({ suspended: 1 });
    await asynq.signal(info, Approval, { by: 'anna' });
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(orders.log).toEqual(['anna']);
  });

  it('does not expire while it sleeps, once it has begun in time', async () => {
    orders.work['expires'] = async (steps) => {
      await steps.sleep('nap', '1d');
      orders.log.push('awake');
    };
    await asynq.enqueue(Free, 'expires', { expiresIn: '1h' });
    expect(await tester.drain()).toMatchObject({ suspended: 1 });
    expect(await tester.advance('1d')).toMatchObject({ done: 1 });
    expect(orders.log).toEqual(['awake']);
  });

  it('gets results as JSON leaves them, the first time, too', async () => {
    const seen: unknown[] = [];
    let calls = 0;
    orders.work['json'] = async (steps) => {
      seen.push(await steps.run('date', () => ({ at: new Date(0), none: undefined })));
      seen.push(await steps.run('nothing', () => undefined));
      if (++calls === 1) throw new Error('again');
    };
    await asynq.enqueue(Free, 'json');
    await tester.advance('1h');
    expect(seen).toEqual([
      { at: '1970-01-01T00:00:00.000Z' },
      undefined,
      { at: '1970-01-01T00:00:00.000Z' },
      undefined,
    ]);
  });

  it.each<[string, () => unknown, string]>([
    ['a Map', () => new Map(), 'it has a Map'],
    ['a function', () => ({ deep: { call: () => 1 } }), 'it has a function at deep.call'],
    ['NaN', () => [Number.NaN], 'it has NaN at 0'],
    ['a bigint', () => 1n, 'it has a bigint'],
    ['bytes', () => Buffer.from('x'), 'it has a Buffer'],
    ['an object of a class', () => ({ order: new URL('http://a') }), 'it has a URL at order'],
    ['an invalid date', () => [new Date(NaN)], 'it has an invalid Date at 0'],
    ['a circle', () => circle(), 'it has a circle at self'],
    ['too much', () => 'x'.repeat(6 * 1024 * 1024), 'the result of step "bad"'],
  ])('is archived when a step returns %s', async (_, result, message) => {
    orders.work['bad'] = (steps) => steps.run('bad', result);
    const info = await asynq.enqueue(Free, 'bad');
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    expect((await inspector.getTaskInfo(info.queue, info.id))?.lastErr).toContain(message);
  });

  it('is archived when a step is in a step, or has no name', async () => {
    orders.work['nested'] = (steps) => steps.run('outer', () => steps.run('inner', () => 1));
    orders.work['unnamed'] = (steps) => steps.run('a#1', () => 1);
    const infos = [await asynq.enqueue(Free, 'nested'), await asynq.enqueue(Free, 'unnamed')];
    expect(await tester.drain()).toMatchObject({ archived: 2 });
    const errors = await Promise.all(
      infos.map(async ({ queue, id }) => (await inspector.getTaskInfo(queue, id))?.lastErr),
    );
    expect(errors).toEqual([
      expect.stringContaining('step "inner" is in step "outer"; call it after that one'),
      expect.stringContaining('name of a step "a#1" must be 1 to 100 characters'),
    ]);
  });

  it('fails when it swallows a suspension, and names the step', async () => {
    const info = await asynq.enqueue(Caught, undefined);
    expect(await tester.drain()).toMatchObject({ retry: 1 });
    const task = await inspector.getTaskInfo(info.queue, info.id);
    expect(task?.lastErr).toContain(
      'the handler caught what step "nap" throws to suspend it, or went on without that step (Promise.race,',
    );
  });

  it('keeps what it has done when its archived task is run again', async () => {
    let broken = true;
    orders.work['archived'] = async (steps) => {
      await steps.run('first', () => orders.log.push('first'));
      if (broken) throw new SkipRetry('broken');
      await steps.run('second', () => orders.log.push('second'));
    };
    const info = await asynq.enqueue(Free, 'archived');
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    broken = false;
    await inspector.runTask(info.queue, info.id);
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(orders.log).toEqual(['first', 'second']);
  });
});

describe('a handler whose code has changed', () => {
  const before = async (steps: TaskSteps): Promise<never> => {
    await steps.run('a', () => 1);
    await steps.run('b', () => 2);
    throw new Error('deploy');
  };

  it.each<[string, (steps: TaskSteps) => Promise<unknown>, string]>([
    ['asks for another step', (steps) => steps.run('new', () => 0), 'step 1 was "a", and is "new" now'],
    ['has another order', (steps) => steps.run('b', () => 0), 'step 1 was "a", and is "b" now'],
    [
      'has another kind of step',
      (steps) => steps.sleep('a', '1m'),
      'step "a" was another kind of step (run), and is sleep now',
    ],
    [
      'asks for fewer steps',
      (steps) => steps.run('a', () => 0),
      'has stored steps that its handler does not ask for any more: "b"',
    ],
  ])('and %s fails, and says so', async (_, after, message) => {
    orders.work['x'] = before;
    const info = await asynq.enqueue(Free, 'x');
    expect(await tester.drain()).toMatchObject({ retry: 1 });
    orders.work['x'] = after;
    expect(await tester.advance('1m')).toMatchObject({ retry: 1 });
    expect((await inspector.getTaskInfo(info.queue, info.id))?.lastErr).toContain(message);
    orders.work['x'] = async (steps) => [await steps.run('a', () => 0), await steps.run('b', () => 0)];
    expect(await tester.advance('1m')).toMatchObject({ done: 1 });
  });

  it('fails also when it catches that: no step goes on behind it', async () => {
    orders.work['x'] = before;
    const info = await asynq.enqueue(Free, 'x');
    await tester.drain();
    orders.work['x'] = async (steps) => {
      await steps.run('new', () => orders.log.push('new')).catch(() => undefined);
      await steps.run('a', () => 0).catch(() => orders.log.push('not a'));
      await steps.run('b', () => 0).catch(() => undefined);
    };
    expect(await tester.advance('1m')).toMatchObject({ retry: 1, total: 1 });
    expect((await inspector.getTaskInfo(info.queue, info.id))?.lastErr).toContain('step 1 was "a", and is "new" now');
    expect(orders.log).toEqual(['not a']);
  });
});

describe('a signal', () => {
  it('says what is wrong with it', async () => {
    const info = await asynq.enqueue(Free, 'gone');
    await expect(asynq.signal({ queue: 'default', id: 'none' }, Ping)).rejects.toThrow('task not found: id="none"');
    await expect(asynq.signal({} as never, Ping)).rejects.toThrow('queue of the task to signal must be a text');
    await expect(asynq.signal(info, { name: '' } as never)).rejects.toThrow('name of a signal "" must be 1 to 100');
    await expect(asynq.signal(info, Approval, { by: 1n } as never)).rejects.toThrow('payload of signal "approval"');
    orders.work['gone'] = () => Promise.reject(new SkipRetry('no'));
    await tester.drain();
    await expect(asynq.signal(info, Ping)).rejects.toThrow(
      'cannot get the signal "ping": it has succeeded, or is archived',
    );
  });

  it('wakes each wait once', async () => {
    orders.work['two'] = async (steps) => {
      await steps.waitFor('one', Ping);
      await steps.waitFor('two', Ping);
      orders.log.push('both');
    };
    const info = await asynq.enqueue(Free, 'two');
    expect(await tester.drain()).toMatchObject({ suspended: 1 });
    await asynq.signal(info, Ping);
    expect(await tester.drain()).toMatchObject({ suspended: 1 });
    expect(orders.log).toEqual([]);
    await asynq.signal(info, Ping);
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(orders.log).toEqual(['both']);
  });
});
