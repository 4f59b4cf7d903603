import { defineSignal, SkipRetry, StepsChangedError, TaskSuspended, type TaskSteps } from 'nestjs-asynq';
import { beforeEach, describe, expect, it } from 'vitest';
import { fail, Pack, startStepsApp, type StepsApp, turns, Work } from './steps-app.js';

const Go = defineSignal<number>('go');

let app: StepsApp;

beforeEach(async () => {
  app = await startStepsApp();
});

describe('what a step has to store', () => {
  it.each(['first', 'last'])('is stored when one beside it fails in the same moment: a try, the %s', async (place) => {
    const { tester, asynq, workers, lastErr } = app;
    workers.work['x'] = async (steps) => {
      const flaky = () => steps.run('flaky', () => fail('flaky'), { retry: { max: 2, delay: '1s' } });
      const broken = () => steps.run('broken', () => fail('broken'));
      await Promise.all(place === 'first' ? [flaky(), broken()] : [broken(), flaky()]);
    };
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    expect(await lastErr(info)).toBe('broken');
    expect((await app.inspector.steps(info.queue, info.id))!.steps).toMatchObject([{ name: 'flaky', tries: 1 }]);
    await tester.advance('1m');
    expect((await app.inspector.steps(info.queue, info.id))!.steps).toMatchObject([{ name: 'flaky', tries: 2 }]);
  });

  it.each<[string, (steps: TaskSteps) => Promise<unknown>]>([
    ['a sleep', (steps) => steps.sleep('nap', '10m')],
    ['a wait', (steps) => steps.waitFor('nap', Go, { timeout: '10m' })],
  ])('is stored when something else fails beside it: the time of %s', async (_, nap) => {
    const { tester, asynq, workers } = app;
    workers.work['x'] = (steps) => Promise.all([nap(steps), Promise.resolve().then(() => fail('broken'))]);
    const info = await asynq.enqueue(Work, 'x');
    const began = tester.clock.now();
    await tester.advance('3m');
    const [step] = (await app.inspector.steps(info.queue, info.id))!.steps;
    expect(step!.wakeAt!.getTime()).toBe(began + 600_000);
  });
});

describe('steps in a row, for several rows side by side', () => {
  const chains = (steps: TaskSteps, slow: string, undo = false): Promise<unknown> => {
    const { workers } = app;
    const options = (name: string) => (undo ? { undo: workers.note(`undo ${name}`) } : {});
    const chain = async (row: string): Promise<void> => {
      for (const name of [`${row}1`, `${row}2`, `${row}3`]) {
        await turns(row === slow ? 10 : 0);
        await steps.run(name, workers.note(name), options(name));
      }
    };
    return Promise.all([chain('a'), chain('b')]);
  };
  const ALL = ['a1', 'a2', 'a3', 'b1', 'b2', 'b3'];

  it.each(['a', 'b'])('begin in another order the next time, and answer: %s is slow then', async (slow) => {
    const { tester, asynq, workers } = app;
    let calls = 0;
    workers.work['x'] = async (steps) => {
      calls += 1;
      await chains(steps, calls === 1 ? (slow === 'a' ? 'b' : 'a') : slow);
      if (calls < 3) fail('later');
      await steps.run('end', workers.note('end'));
    };
    await asynq.enqueue(Work, 'x');
    expect(await tester.advance('1h')).toMatchObject({ retry: 2, done: 1 });
    expect(workers.log.toSorted()).toEqual([...ALL, 'end']);
  });

  it.each(ALL)('go on behind a crash after %s, each step once', async (name) => {
    const { tester, asynq, workers } = app;
    let calls = 0;
    workers.work['x'] = async (steps) => {
      calls += 1;
      await chains(steps, calls === 1 ? 'a' : 'b');
    };
    await asynq.enqueue(Work, 'x');
    tester.crashAfter(name);
    expect(await tester.advance('1h')).toMatchObject({ lost: 1, done: 1 });
    expect(workers.log.toSorted()).toEqual(ALL);
  });

  it('are undone, in the order in which they began', async () => {
    const { tester, asynq, workers, lastErr } = app;
    let calls = 0;
    workers.work['x'] = async (steps) => {
      calls += 1;
      await chains(steps, calls === 1 ? 'a' : 'b', true);
      throw new SkipRetry('sold out');
    };
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    expect(await lastErr(info)).toBe(`sold out; undone: ${workers.log.slice(0, 6).reverse().join(', ')}`);
  });

  it('name a step that is new, and blame the code no more than a changed order', async () => {
    const { tester, asynq, workers, lastErr } = app;
    workers.work['x'] = async (steps) => {
      await chains(steps, 'a');
      fail('deploy');
    };
    const info = await asynq.enqueue(Work, 'x');
    await tester.drain();
    const done = workers.log.length;
    workers.work['x'] = (steps) =>
      Promise.all([
        steps.run('a1', workers.note('again')),
        steps.run('renamed', workers.note('again')).then(() => steps.run('b2', workers.note('again'))),
      ]);
    await tester.advance('1m');
    expect(await lastErr(info)).toMatch(
      /does not have the steps that are stored: step 1 was "b1", and is "renamed" now/,
    );
    expect(await lastErr(info)).toMatch(/steps beside one another come in another order: give it onChange: 'continue'/);
    expect(workers.log).toHaveLength(done);
  });
});

describe('a step that fails beside others, and whose handler goes on', () => {
  const passing = async (step: Promise<unknown>): Promise<void> => {
    try {
      await step;
    } catch (error) {
      if (error instanceof TaskSuspended || error instanceof StepsChangedError) throw error;
    }
  };

  it.each<[string, (steps: TaskSteps) => Promise<unknown>]>([
    ['a step without retries', (steps) => steps.run('flaky', () => fail('flaky'))],
    ['one whose result is no JSON', (steps) => steps.run('flaky', () => 1n)],
    ['rows', (steps) => steps.each('flaky', [1], () => fail('flaky'))],
    ['a call with a wrong option', (steps) => steps.call('flaky', Pack, 1, { maxRetry: -1 })],
  ])('keeps its place, as in another order what comes then would wait for it: %s', async (_, flaky) => {
    const { tester, asynq, workers, states } = app;
    let calls = 0;
    workers.work['x'] = async (steps) => {
      const isFirst = ++calls === 1;
      const one = async (): Promise<void> => {
        await turns(isFirst ? 0 : 5);
        await passing(flaky(steps));
        await turns(isFirst ? 5 : 0);
        await steps.run('a', workers.note('a'));
      };
      const other = async (): Promise<void> => {
        await turns(isFirst ? 1 : 0);
        await steps.run('b', workers.note('b'));
      };
      await Promise.all([one(), other()]);
      if (isFirst) fail('later');
    };
    const info = await asynq.enqueue(Work, 'x', { retention: '1d' });
    expect(await tester.advance('1h')).toMatchObject({ retry: 1, completed: 1, total: 2 });
    expect(workers.log.toSorted()).toEqual(['a', 'b']);
    expect((await states(info)).toSorted()).toEqual(['a done', 'b done']);
  });

  it('has its place until it succeeds, and is asked for no more than that', async () => {
    const { tester, asynq, workers, states } = app;
    let calls = 0;
    workers.work['x'] = async (steps) => {
      calls += 1;
      if (calls !== 3) await passing(steps.run('flaky', () => calls < 4 && fail('flaky')));
      await steps.run('a', workers.note('a'));
      if (calls < 5) fail('later');
    };
    const info = await asynq.enqueue(Work, 'x', { retention: '1d', maxRetry: 9 });
    expect(await tester.advance('1h')).toMatchObject({ retry: 4, completed: 1 });
    expect(await states(info)).toEqual(['flaky done', 'a done']);
    expect(workers.log).toEqual(['a']);
  });

  it('costs one write, once', async () => {
    const { tester, asynq, workers, broker } = app;
    const written: string[] = [];
    const write = broker.checkpoints.write.bind(broker.checkpoints);
    broker.checkpoints.write = (...args) => (written.push(args[1]), write(...args));
    let calls = 0;
    workers.work['x'] = async (steps) => {
      await passing(steps.run('flaky', () => fail('flaky')));
      await steps.run('a', workers.note('a'));
      await passing(steps.run('last', () => fail('last')));
      if (++calls < 3) fail('later');
    };
    await asynq.enqueue(Work, 'x');
    await tester.advance('1h');
    expect(written).toEqual(['!place:flaky', 'a']);
  });
});

it('a step waits longer for those before it while something keeps the event loop busy', async () => {
  const { tester, asynq, workers } = app;
  let calls = 0;
  workers.work['x'] = async (steps) => {
    const isFirst = ++calls === 1;
    const one = async (): Promise<void> => {
      if (!isFirst) {
        await turns(3);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
        await turns(20);
      }
      await steps.run('a', workers.note('a'));
    };
    await Promise.all([one(), steps.run('b', workers.note('b'))]);
    if (isFirst) fail('later');
  };
  await asynq.enqueue(Work, 'x');
  expect(await tester.advance('1h', { patience: '10s' })).toMatchObject({ retry: 1, done: 1, total: 2 });
});

/** A generator of numbers from 0 to 1, the same ones for a seed. */
function random(seed: number): () => number {
  let at = seed;
  return () => (at = (at * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}

const KINDS = ['run', 'run', 'retry', 'caught', 'sleep', 'call', 'wait'] as const;

it.each(Array.from({ length: 20 }, (_, n) => n + 1))(
  'any chains side by side end, each step once: seed %i',
  async (seed) => {
    const { tester, asynq, workers, inspector } = app;
    const next = random(seed);
    const upTo = (most: number): number => Math.floor(next() * (most + 1));
    const rows = Array.from({ length: 2 + upTo(2) }, () => Array.from({ length: 1 + upTo(3) }, () => KINDS[upTo(6)]!));
    const fails = new Map<string, number>();
    const work = (name: string) => async (): Promise<void> => {
      await turns(upTo(8));
      const left = fails.get(name) ?? upTo(2);
      fails.set(name, left - 1);
      if (left > 0) fail(name);
      workers.log.push(name);
    };
    const undone: string[] = [];
    const step = async (steps: TaskSteps, name: string, kind: (typeof KINDS)[number]): Promise<unknown> => {
      const undo = (): void => void undone.push(name);
      if (kind === 'run') return steps.run(name, work(name), { undo });
      if (kind === 'retry') return steps.run(name, work(name), { undo, retry: { max: 2, delay: '1m' } });
      if (kind === 'sleep') return steps.sleep(name, `${1 + upTo(4)}m`);
      if (kind === 'wait') return steps.waitFor(name, Go);
      if (kind === 'call') return steps.call(name, Pack, 1);
      return steps.run(name, work(name)).catch((error: unknown) => {
        if (error instanceof TaskSuspended) throw error;
      });
    };
    workers.work['x'] = async (steps) => {
      const chain = async (row: (typeof rows)[number], r: number): Promise<void> => {
        for (const [n, kind] of row.entries()) {
          await turns(upTo(4)); // so that they come in another order each time
          await step(steps, `${r}.${n}`, kind);
        }
      };
      await Promise.all(rows.map(chain));
      throw new SkipRetry('end');
    };
    const info = await asynq.enqueue(Work, 'x', { maxRetry: 100 });
    const isOver = async (): Promise<boolean> =>
      (await inspector.getTaskInfo('default', info.id))!.state === 'archived';
    for (let n = 0; n < 40 && !(await isOver()); n++) {
      await tester.advance('5m');
      if (!(await isOver())) await asynq.signal(info, Go, n);
    }
    const names = (kinds: readonly string[]): string[] =>
      rows.flatMap((row, r) => row.flatMap((kind, n) => (kinds.includes(kind) ? [`${r}.${n}`] : [])));
    const effects = workers.log.filter((line) => !line.startsWith('pack'));
    expect(effects).toHaveLength(new Set(effects).size);
    expect(effects).toEqual(expect.arrayContaining(names(['run', 'retry'])));
    expect(workers.log.length - effects.length).toBe(names(['call']).length);
    expect(undone.toSorted()).toEqual(names(['run', 'retry']));
    expect(await app.lastErr(info)).toMatch(undone.length > 0 ? /^end; undone: / : /^end$/);
  },
);
