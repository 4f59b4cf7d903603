import { defineSignal, type TaskSteps } from 'nestjs-asynq';
import { beforeEach, describe, expect, it } from 'vitest';
import { fail, Pack, startStepsApp, type StepsApp, Work } from './steps-app.js';

const Go = defineSignal<number>('go');

let app: StepsApp;

beforeEach(async () => {
  app = await startStepsApp();
});

const WAITS: readonly [string, (steps: TaskSteps) => Promise<unknown>][] = [
  ['sleeps', (steps) => steps.sleep('wait', '1h')],
  ['waits for a signal', (steps) => steps.waitFor('wait', Go)],
  ['waits for a task that it calls', (steps) => steps.call('wait', Pack, 1, { processIn: '1h' })],
];

/** A task whose handler has done a step, and waits in the next one. */
async function waiting(wait: (steps: TaskSteps) => Promise<unknown>) {
  const { tester, asynq, workers } = app;
  workers.work['x'] = async (steps) => {
    await steps.run('before', workers.note('before'), { undo: workers.note('undo before') });
    await wait(steps);
    await steps.run('after', workers.note('after'));
  };
  const info = await asynq.enqueue(Work, 'x');
  expect(await tester.drain()).toMatchObject({ suspended: 1, total: 1 });
  return info;
}

/** What it waits for comes. */
async function comes(id: string): Promise<void> {
  const { tester, asynq } = app;
  await tester.advance('2h');
  await asynq.signal({ queue: 'default', id }, Go, 1).catch(() => undefined);
  await tester.drain();
}

const effects = (): string[] => app.workers.log.filter((line) => !line.startsWith('pack'));

describe.each(WAITS)('a task that %s', (_, wait) => {
  it('is not changed by a cancellation, which is for one that runs', async () => {
    const { id } = await waiting(wait);
    await app.inspector.cancelProcessing(id, { outcome: 'delete' });
    await comes(id);
    expect(effects()).toEqual(['before', 'after']);
  });

  it('is gone when it is deleted, whatever comes then', async () => {
    const { queue, id } = await waiting(wait);
    await app.inspector.deleteTask(queue, id);
    await comes(id);
    expect(effects()).toEqual(['before']);
    expect(app.tester.all()).toEqual([]);
  });

  it('stays archived when it is archived, and goes on when it is run by hand', async () => {
    const { queue, id } = await waiting(wait);
    await app.inspector.archiveTask(queue, id);
    await comes(id);
    expect(effects()).toEqual(['before']);
    await app.inspector.runTask(queue, id);
    await comes(id);
    expect(effects()).toEqual(['before', 'after']);
  });

  it('goes on to wait when it is run by hand, as often as that is', async () => {
    const { queue, id } = await waiting(wait);
    for (let n = 0; n < 3; n++) {
      await app.inspector.runTask(queue, id);
      expect(await app.tester.drain()).toMatchObject({ suspended: 1, total: 1 });
    }
    await comes(id);
    expect(effects()).toEqual(['before', 'after']);
  });
});

describe('a called task', () => {
  const calling = async () => waiting((steps) => steps.call('pack', Pack, 1, { processIn: '1h', maxRetry: 0 }));

  it.each<[string, (id: string) => Promise<unknown>, string]>([
    ['deleted', (id) => app.inspector.deleteTask('default', id), 'deleted'],
    ['archived', (id) => app.inspector.archiveTask('default', id), 'archived'],
  ])('that is %s by hand fails its step, and the caller is undone', async (_, end, why) => {
    const { id } = await calling();
    await end(`${id}~pack`);
    await app.tester.advance('1m');
    const text = await app.lastErr({ queue: 'default', id });
    expect(text).toContain(
      `step "pack" has failed, and so has the task "${id}~pack" of queue "default" that it called`,
    );
    expect(text).toContain(why);
    expect(effects()).toEqual(['before', 'undo before']);
  });

  it('that is cancelled while it runs fails its step with the reason, when it has no retries', async () => {
    const { tester, inspector, workers } = app;
    const { id } = await calling();
    workers.pack = () => {
      void inspector.cancelProcessing(`${id}~pack`, { reason: 'no longer wanted', outcome: 'archive' });
      return fail('it was cancelled');
    };
    await tester.advance('2h');
    expect(await app.lastErr({ queue: 'default', id })).toMatch(/that it called: .*; undone: before$/);
    expect(effects()).toEqual(['before', 'undo before']);
  });

  it('of a queue that is paused waits, and fails its step when the queue is deleted', async () => {
    const { tester, inspector, lastErr } = app;
    const { id } = await waiting((steps) => steps.call('pack', Pack, 1, { queue: 'other' }));
    await inspector.pauseQueue('other');
    await tester.advance('3h');
    expect(await app.states({ queue: 'default', id })).toEqual(['before done', 'pack waiting']);
    await inspector.deleteQueue('other', { force: true });
    await tester.advance('3h');
    expect(await lastErr({ queue: 'default', id })).toMatch(/that it called: deleted; undone: before$/);
  });

  it('beside a thousand others may be deleted or archived: the caller ends once all have, with the first failure', async () => {
    const { tester, asynq, workers, inspector, lastErr } = app;
    const names = Array.from({ length: 1_000 }, (_, n) => `c${n}`);
    workers.work['x'] = (steps) =>
      steps.all(Object.fromEntries(names.map((name, n) => [name, [Pack, n, { processIn: '1h' }] as const])));
    const { queue, id } = await asynq.enqueue(Work, 'x');
    await tester.drain();
    for (const n of [7, 500]) await inspector.deleteTask(queue, `${id}~c${n}`);
    for (const n of [3, 999]) await inspector.archiveTask(queue, `${id}~c${n}`);
    await tester.advance('30m');
    expect(await inspector.getTaskInfo(queue, id)).toMatchObject({ state: 'scheduled' });
    await tester.advance('90m');
    expect(workers.log).toHaveLength(996);
    expect(await lastErr({ queue, id })).toContain(`so has the task "${id}~c3" of queue "default" that it called`);
    const { steps } = (await inspector.steps(queue, id))!;
    const failed = steps.filter(({ state }) => state === 'failed').map(({ name }) => name);
    expect(failed).toEqual(['c3', 'c7', 'c500', 'c999']);
  });

  it('that is run early by hand wakes its caller', async () => {
    const { id } = await calling();
    await app.inspector.runTask('default', `${id}~pack`);
    await app.tester.drain();
    expect(effects()).toEqual(['before', 'after']);
  });
});

it('two signals of one name go to the waits in the order of both, also those that came before the task had begun', async () => {
  const { tester, asynq, workers } = app;
  workers.work['x'] = async (steps) => {
    const got = await Promise.all(['one', 'two'].map((name) => steps.waitFor(name, Go)));
    workers.log.push(got.join(), String(await steps.waitFor('three', Go)));
  };
  const info = await asynq.enqueue(Work, 'x');
  for (const n of [1, 2]) await asynq.signal(info, Go, n);
  await tester.drain();
  await asynq.signal(info, Go, 3);
  await tester.drain();
  expect(workers.log).toEqual(['1,2', '3']);
});

it('has ten thousand steps, and no further one', async () => {
  const { tester, asynq, workers, lastErr } = app;
  let runs = 0;
  workers.work['x'] = async (steps) => {
    for (let n = 0; n <= 10_000; n++) await steps.run('row', () => void runs++);
  };
  const info = await asynq.enqueue(Work, 'x');
  await tester.drain();
  expect(await lastErr(info)).toContain('has 10000 steps; the most. Enqueue further tasks instead');
  expect(runs).toBe(10_000);
});
