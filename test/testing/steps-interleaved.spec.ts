import fc from 'fast-check';
import { defineSignal, StepsChangedError, TaskSuspended, type TaskSteps } from 'nestjs-asynq';
import { beforeEach, expect, it } from 'vitest';
import { fail, Pack, startStepsApp, type StepsApp, turns, Work } from './steps-app.js';

const Go = defineSignal<number>('go');
const Never = defineSignal('never');

const KINDS = ['run', 'retry', 'caught', 'rows', 'caught rows', 'sleep', 'wait', 'late', 'call', 'lost call'] as const;
type Kind = (typeof KINDS)[number];

/** What fails is passed over, as in a handler that goes another way. */
async function passing(step: Promise<unknown>): Promise<void> {
  try {
    await step;
  } catch (error) {
    if (error instanceof TaskSuspended || error instanceof StepsChangedError) throw error;
  }
}

let app: StepsApp;

beforeEach(async () => {
  app = await startStepsApp();
});

const histories = fc.record({
  rows: fc.array(fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 4 }),
  /** How many turns of the event loop something takes, by call, row and step. */
  pause: fc.func(fc.nat(6)),
  /** In which calls of the handler a step that may fail does. */
  isFailing: fc.func(fc.boolean()),
  /** How often the handler fails behind its last step. */
  failures: fc.nat(3),
});

it('steps of any kinds in a row, for several rows side by side, never seem changed, and each is done once', async () => {
  const { tester, asynq, workers, inspector, lines } = app;
  let runs = 0;
  workers.pack = (weight) => (weight < 0 ? fail('no box') : weight);
  await fc.assert(
    fc.asyncProperty(histories, async ({ rows, pause, isFailing, failures }) => {
      const key = `run ${runs++}`;
      const [done, said]: [string[], number] = [[], lines.length];
      let [calls, failed] = [0, 0];
      const step = (steps: TaskSteps, name: string, kind: Kind): Promise<unknown> => {
        const work = async (): Promise<void> => {
          await turns(pause(calls, name, 'work'));
          if (kind !== 'run' && isFailing(calls, name)) fail(name);
          done.push(name);
        };
        if (kind === 'run') return steps.run(name, work);
        if (kind === 'retry') return passing(steps.run(name, work, { retry: { max: 1, delay: '1m' } }));
        if (kind === 'caught') return passing(steps.run(name, work));
        if (kind === 'rows') return steps.each(name, [1, 2], () => turns(pause(calls, name)));
        if (kind === 'caught rows') return passing(steps.each(name, [1], work));
        if (kind === 'sleep') return steps.sleep(name, '2m');
        if (kind === 'wait') return steps.waitFor(name, Go);
        if (kind === 'late') return passing(steps.waitFor(name, Never, { timeout: '3m' }));
        if (kind === 'call') return steps.call(name, Pack, 1);
        return passing(steps.call(name, Pack, -1, { maxRetry: 0 }));
      };
      workers.work[key] = async (steps) => {
        calls += 1;
        const chain = async (row: readonly Kind[], r: number): Promise<void> => {
          for (const [n, kind] of row.entries()) {
            await turns(pause(calls, r, n));
            await step(steps, `${r}.${n} ${kind}`, kind);
          }
        };
        await Promise.all(rows.map(chain));
        if (failed++ < failures) fail('later');
      };
      const info = await asynq.enqueue(Work, key, { maxRetry: 3, retention: '1h' });
      const waits = rows.flat().filter((kind) => kind === 'wait').length;
      for (let n = 0; n < waits; n++) await asynq.signal(info, Go, n);
      await tester.advance('50m', { patience: '10s' });
      const changed = lines
        .slice(said)
        .find(({ text }) => text.includes('does not have the steps') || text.includes('any more'));
      expect(changed).toBeUndefined();
      expect(await inspector.getTaskInfo(info.queue, info.id)).toMatchObject({ state: 'completed', retried: failures });
      expect(done.filter((name) => name.endsWith('run')).toSorted()).toEqual(
        rows.flatMap((row, r) => row.flatMap((kind, n) => (kind === 'run' ? [`${r}.${n} run`] : []))),
      );
      expect(done).toHaveLength(new Set(done).size);
      await tester.advance('2h', { patience: '10s' });
    }),
    { numRuns: 60 },
  );
});
