import { SkipRetry, StepFailedError, TaskSuspended, type TaskSteps } from 'nestjs-asynq';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { fail, Pack, startStepsApp, type StepsApp, Work } from './steps-app.js';

let app: StepsApp;

beforeEach(async () => {
  app = await startStepsApp();
});

/** What a step that has failed for good throws. */
async function failureOf(step: Promise<unknown>): Promise<Error> {
  try {
    await step;
  } catch (error) {
    if (error instanceof TaskSuspended) throw error;
    return error as Error;
  }
  throw new Error('it did not fail');
}

describe('a step that has failed for good', () => {
  it.each<[string, (error: Error) => Error]>([
    ['begins with its text', ({ message }) => new Error(`${message}; and no way around`)],
    ['has its text', ({ message }) => new Error(message)],
  ])('is not tried again by the retries of a task, whose error %s', async (_, wrapped) => {
    const { tester, asynq, workers, lastErr } = app;
    workers.work['x'] = async (steps) => {
      const step = steps.run('capture', () => (workers.log.push('try'), fail('declined')), { retry: { max: 0 } });
      throw wrapped(await failureOf(step));
    };
    const info = await asynq.enqueue(Work, 'x');
    expect(await tester.advance('1h')).toMatchObject({ retry: 3, archived: 1 });
    expect(workers.log).toEqual(['try']);
    expect(await lastErr(info)).toContain('step "capture" has failed once, and is not tried again: declined');
    expect((await app.inspector.getTaskInfo(info.queue, info.id))!.headers).toEqual({});
  });

  it.each<[string, (error: Error) => Error]>([
    ['lets it pass', (error) => error],
    ['throws it as a cause', (cause) => new Error('the order failed', { cause })],
    ['throws a SkipRetry that has it as a cause', (cause) => new SkipRetry('no more', { cause })],
  ])('is tried again when its task is run by hand, and the handler %s', async (_, thrown) => {
    const { tester, asynq, workers, inspector } = app;
    let isBroken = true;
    workers.work['x'] = async (steps) => {
      const step = steps.run('capture', () => isBroken && fail('d'.repeat(5000)), { retry: { max: 0 } });
      if (isBroken) throw thrown(await failureOf(step));
      await step;
      await steps.sleep('nap', '1h');
    };
    const info = await asynq.enqueue(Work, 'x');
    expect(await tester.drain()).toMatchObject({ archived: 1 });
    isBroken = false;
    await inspector.runTask(info.queue, info.id);
    expect(await tester.advance('1h')).toMatchObject({ suspended: 1, done: 1, total: 2 });
  });

  it('keeps the success of its called task, once somebody has run both by hand, whatever fails then', async () => {
    const { tester, asynq, workers, inspector } = app;
    workers.pack = () => fail('no box');
    let failures = 0;
    workers.work['x'] = async (steps) => {
      workers.log.push(`packed ${await steps.call('pack', Pack, 2, { maxRetry: 0 })}`);
      if (failures++ < 1) fail('later');
    };
    const info = await asynq.enqueue(Work, 'x');
    expect(await tester.drain()).toMatchObject({ archived: 2 });
    workers.pack = (weight) => weight * 2;
    await inspector.runTask('default', `${info.id}~pack`);
    await tester.drain();
    await inspector.runTask(info.queue, info.id);
    expect(await tester.advance('1h')).toMatchObject({ retry: 1, done: 1, archived: 0 });
    expect(workers.log).toEqual(['pack 2', 'pack 2', 'packed 4', 'packed 4']);
  });

  it('leaves a later success of its called task to nobody who has gone another way', async () => {
    const { tester, asynq, workers, inspector } = app;
    workers.pack = () => fail('no box');
    let isAgain = false;
    workers.work['x'] = async (steps) => {
      const error = await failureOf(steps.call('pack', Pack, 2, { maxRetry: 0 }));
      expect(error).toBeInstanceOf(StepFailedError);
      if (!isAgain) throw new Error(`${error.message}; later`);
    };
    const info = await asynq.enqueue(Work, 'x');
    expect(await tester.drain()).toMatchObject({ archived: 1, retry: 1 });
    workers.pack = (weight) => weight * 2;
    await inspector.runTask('default', `${info.id}~pack`);
    isAgain = true;
    expect(await tester.advance('1h')).toMatchObject({ done: 2, total: 2 });
  });
});

describe('a saga whose handler goes another way', () => {
  const pay = async (steps: TaskSteps): Promise<void> => {
    const { workers } = app;
    try {
      await steps.run('paypal', () => fail('declined'));
    } catch (error) {
      if (error instanceof TaskSuspended) throw error;
      await steps.run('card', workers.note('card'), { undo: workers.note('undo card') });
    }
    throw new SkipRetry('sold out');
  };

  it('when a step without retries of its own has failed is undone', async () => {
    const { tester, asynq, workers, lastErr } = app;
    workers.work['x'] = pay;
    const info = await asynq.enqueue(Work, 'x');
    expect(await tester.drain()).toMatchObject({ suspended: 1, archived: 1, total: 2 });
    expect(workers.log).toEqual(['card', 'undo card']);
    expect(await lastErr(info)).toBe('sold out; undone: card');
  });
});

describe('the log of a handler with steps', () => {
  const about = (id: string) => app.lines.filter(({ text }) => text.includes(id));

  it('says until when it sleeps', async () => {
    const { tester, asynq, workers } = app;
    workers.work['x'] = (steps) => steps.sleep('nap', '1h');
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    const until = new Date(tester.clock.now() + 3_600_000).toISOString();
    expect(about(info.id)).toEqual([
      {
        level: 'log',
        text: `Task work ${info.id} in queue "default" sleeps or waits in a step, and goes on at ${until} or before`,
        stack: undefined,
      },
    ]);
  });

  it('has the stack of what it failed with, and then what was undone', async () => {
    const { tester, asynq, workers } = app;
    workers.work['x'] = async (steps) => {
      await steps.run('reserve', () => 1, { undo: () => undefined });
      fail('no parcel');
    };
    const info = await asynq.enqueue(Work, 'x', { maxRetry: 0 });
    await tester.drain();
    const name = `Task work ${info.id} in queue "default"`;
    expect(about(info.id)).toEqual([
      {
        level: 'error',
        text: `${name} failed for good (failures before: 0), and its steps are undone now: no parcel`,
        stack: expect.stringContaining('steps-app.ts') as string, // `fail`
      },
      {
        level: 'error',
        text: `${name} failed and was archived (failures before: 0): no parcel; undone: reserve`,
        stack: undefined,
      },
    ]);
  });
});

describe('a compensation that always throws', () => {
  it('has its task archived in the end, which says what to do; run by hand it goes on, and begins with no step again', async () => {
    const { tester, asynq, workers, inspector, lastErr, states } = app;
    let isBroken = true;
    let undoes = 0;
    workers.work['x'] = async (steps) => {
      await steps.run('capture', workers.note('capture'), { undo: () => (undoes++, isBroken && fail('bank away')) });
      await steps.run('reserve', workers.note('reserve'), { undo: workers.note('undo reserve') });
      fail('no parcel');
    };
    const info = await asynq.enqueue(Work, 'x', { maxRetry: 0 });
    await tester.advance('30d');
    expect(undoes).toBe(26);
    expect(await lastErr(info)).toBe(
      'bank away; not all its steps are undone (it was at step "capture"): run the task by hand to go on with that. ' +
        'It had failed with: no parcel',
    );
    expect(await states(info)).toEqual(['capture done', 'reserve undone', 'undo:reserve done']);
    await inspector.runTask(info.queue, info.id);
    await tester.advance('1d');
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ state: 'archived' });
    isBroken = false;
    await inspector.runTask(info.queue, info.id);
    await tester.advance('1d');
    expect(workers.log).toEqual(['capture', 'reserve', 'undo reserve']);
    expect(await lastErr(info)).toBe('no parcel; undone: reserve, capture');
  });

  it.each(['undo:b', 'undo:a'])('goes on behind a crash in the middle: after %s', async (name) => {
    const { tester, asynq, workers, lastErr } = app;
    workers.work['x'] = async (steps) => {
      for (const step of ['a', 'b', 'c']) await steps.run(step, () => 1, { undo: workers.note(`undo ${step}`) });
      fail('no parcel');
    };
    const info = await asynq.enqueue(Work, 'x', { maxRetry: 0 });
    tester.crashAfter(name);
    expect(await tester.advance('1h')).toMatchObject({ lost: 1, archived: 1 });
    expect(workers.log).toEqual(['undo c', 'undo b', 'undo a']);
    expect(await lastErr(info)).toBe('no parcel; undone: c, b, a');
  });
});

describe('a compensation', () => {
  it.each<[string, (steps: TaskSteps) => Promise<unknown>]>([
    ['run', (steps) => steps.run('bank', () => 1)],
    ['sleep', (steps) => steps.sleep('bank', '1h')],
    ['call', (steps) => steps.call('bank', Pack, 1)],
  ])(
    'can have no step: %s; its task is archived at once, and undone once it is run by hand after a fix',
    async (_, undo) => {
      const { tester, asynq, workers, inspector, lastErr } = app;
      let isBroken = true;
      workers.work['x'] = async (steps) => {
        await steps.run('capture', workers.note('capture'), {
          undo: () => (isBroken ? undo(steps) : workers.note('undo capture')()),
        });
        fail('no parcel');
      };
      const info = await asynq.enqueue(Work, 'x', { maxRetry: 0 });
      expect(await tester.drain()).toMatchObject({ suspended: 1, archived: 1, total: 2 });
      expect(await lastErr(info)).toMatch(
        /^step "bank" is in the compensation of step "capture", which can have no steps; not all its steps are undone/,
      );
      isBroken = false;
      await inspector.runTask(info.queue, info.id);
      await tester.drain();
      expect(workers.log).toEqual(['capture', 'undo capture']);
      expect(await lastErr(info)).toBe('no parcel; undone: capture');
    },
  );
});

describe('a step of which nothing can be stored', () => {
  it.each<[string, 'read' | 'write' | 'call']>([
    ['its records cannot be read', 'read'],
    ['its record cannot be written', 'write'],
    ['what it calls cannot be enqueued', 'call'],
  ])('has its task retried, which does not count, when %s', async (_, operation) => {
    const { tester, asynq, workers, broker, inspector, lastErr } = app;
    workers.work['x'] = async (steps) => {
      await steps.run('capture', workers.note('capture'), { undo: workers.note('undo') });
      await steps.call('pack', Pack, 1);
      await steps.run('close', workers.note('close'));
    };
    const info = await asynq.enqueue(Work, 'x', { maxRetry: 0 });
    vi.spyOn(broker.checkpoints, operation).mockRejectedValueOnce(new Error('Connection is closed.'));
    await tester.drain();
    expect(await lastErr(info)).toContain('cannot be read or written: Connection is closed.');
    expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ state: 'retry', retried: 0 });
    await tester.advance('1h');
    expect(await inspector.getTaskInfo(info.queue, info.id)).toBeUndefined(); // done
    expect(workers.log).toEqual(
      operation === 'write' ? ['capture', 'capture', 'pack 1', 'close'] : ['capture', 'pack 1', 'close'],
    );
  });

  it('has its task archived when the handler decides so', async () => {
    const { tester, asynq, workers, broker } = app;
    workers.work['x'] = async (steps) => {
      const step = steps.run('capture', workers.note('capture'));
      throw new SkipRetry('no more', { cause: await failureOf(step) });
    };
    await asynq.enqueue(Work, 'x');
    vi.spyOn(broker.checkpoints, 'write').mockRejectedValueOnce(new Error('Connection is closed.'));
    expect(await tester.drain()).toMatchObject({ archived: 1, total: 1 });
  });
});
