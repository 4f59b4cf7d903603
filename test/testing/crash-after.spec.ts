import { defineSignal } from 'nestjs-asynq';
import { beforeEach, describe, expect, it } from 'vitest';
import { Pack, startStepsApp, type StepsApp, turns, Work } from './steps-app.js';

const Go = defineSignal('go');

let app: StepsApp;

beforeEach(async () => {
  app = await startStepsApp();
  const { workers } = app;
  workers.work['x'] = async (steps) => {
    await steps.run('capture', workers.note('capture'));
    await steps.call('pack', Pack, 1);
    await steps.sleep('nap', '1h');
    await steps.waitFor('approved', Go);
    await steps.run('ship', workers.note('ship'));
  };
});

describe('crashAfter', () => {
  it('of a call has the server die when the task is called, before the handler has ended', async () => {
    const { tester, asynq, workers } = app;
    const info = await asynq.enqueue(Work, 'x');
    tester.crashAfter('pack');
    expect(await tester.drain()).toMatchObject({ lost: 1, done: 1 });
    await tester.advance('2h');
    await asynq.signal(info, Go);
    expect(await tester.drain()).toMatchObject({ done: 1 });
    expect(workers.log).toEqual(['capture', 'pack 1', 'ship']);
  });

  it.each(['nap', 'approved'])('of %s, which ends the call of the handler, is an error', async (step) => {
    const { tester, asynq } = app;
    await asynq.enqueue(Work, 'x');
    await tester.drain();
    tester.crashAfter(step);
    await expect(tester.advance('2h')).rejects.toThrow(
      `no server died after step "${step}" in this run: it was stored before, or it is a sleep or a wait`,
    );
    await tester.advance('1h'); // once
  });

  it('of a name that no step has names those that there are', async () => {
    const { tester, asynq } = app;
    await asynq.enqueue(Work, 'x');
    tester.crashAfter('captrue');
    await expect(tester.drain()).rejects.toThrow('no step "captrue" was stored in this run; did you mean "capture"?');
    tester.crashAfter('elsewhere');
    await expect(tester.drain()).rejects.toThrow('stored are "capture", "pack", "nap". Call it right before the run');
  });

  it('says so when no task has a step', async () => {
    const { tester } = app;
    tester.crashAfter('capture');
    await expect(tester.drain()).rejects.toThrow('no step "capture" was stored in this run; no task has a step.');
  });

  it('may be met in any run of drainWhile', async () => {
    const { tester, asynq, workers } = app;
    workers.work['y'] = (steps) => steps.run('only', workers.note('only'));
    tester.crashAfter('only');
    const work = async (): Promise<void> => {
      await turns(200);
      await asynq.enqueue(Work, 'y');
      while (workers.log.length === 0) await turns(1);
    };
    await tester.drainWhile(work);
    expect(await tester.advance('2m')).toMatchObject({ done: 1 });
    expect(workers.log).toEqual(['only']);
  });
});
