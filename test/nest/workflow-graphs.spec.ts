import { Injectable } from '@nestjs/common';
import * as fc from 'fast-check';
import {
  AsynqClient,
  defineTask,
  Payload,
  RevokeTask,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type Workflow,
  workflow,
} from 'nestjs-asynq';
import { expect, it } from 'vitest';
import { testApp } from './support.js';

type Ending = 'succeeds' | 'fails' | 'is revoked' | 'fails once';

interface Step {
  readonly name: string;
  readonly queue: string;
  readonly after: readonly string[];
  readonly onFailure: 'cancel' | 'run' | 'wait';
  readonly optional: boolean;
  readonly ending: Ending;
}

const Work = defineTask<string, string>('work');
let endings: Map<string, Ending>;
let ran: string[];

@Injectable()
class Handlers {
  @TaskHandler(Work)
  work(@Payload() name: string, @TaskCtx() task: TaskContext) {
    ran.push(name);
    const ending = endings.get(name);
    if (ending === 'fails') throw new SkipRetry('planned');
    if (ending === 'is revoked') throw new RevokeTask('planned');
    if (ending === 'fails once' && task.retried === 0) throw new Error('planned');
    return name;
  }
}

/** Steps of which each may be after any before it. */
const graphs: fc.Arbitrary<Step[]> = fc
  .array(
    fc.record({
      queue: fc.constantFrom('default', 'mail', 'cpu'),
      after: fc.array(fc.nat(10), { maxLength: 3 }),
      onFailure: fc.constantFrom('cancel' as const, 'run' as const, 'wait' as const),
      optional: fc.boolean(),
      ending: fc.constantFrom<Ending>('succeeds', 'succeeds', 'fails once', 'fails', 'is revoked'),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((steps) =>
    steps.map((step, index) => ({
      ...step,
      name: `s${index}`,
      after: index === 0 ? [] : [...new Set(step.after.map((before) => `s${before % index}`))],
    })),
  );

const build = (steps: readonly Step[]): Workflow =>
  steps.reduce<Workflow>(
    (flow, { name, queue, after, onFailure, optional }) =>
      flow.add(name, Work, name, { after, onFailure, optional, options: { queue } }),
    workflow('random'),
  );

/** What becomes of each step, from the docs. */
function expected(steps: readonly Step[]): Map<string, string> {
  const states = new Map<string, string>();
  const optional = new Map(steps.map((step) => [step.name, step.optional]));
  for (const { name, after, onFailure, ending } of steps) {
    const before = after.map((other) => [other, states.get(other)!] as const);
    const isBad = ([other, state]: readonly [string, string]): boolean =>
      state === 'cancelled' || (state === 'failed' && !optional.get(other));
    const bad = before.some(isBad);
    const open = before.some(([, state]) => state === 'waiting');
    if (bad && onFailure === 'cancel') states.set(name, 'cancelled');
    else if (open || (bad && onFailure === 'wait')) states.set(name, 'waiting');
    else states.set(name, ending === 'succeeds' || ending === 'fails once' ? 'succeeded' : 'failed');
  }
  return states;
}

it('any graph ends as its steps say, each step at most once; a retry of what failed completes it', async () => {
  const queues = { default: 1, mail: 1, cpu: 1 };
  const { app, tasks } = await testApp({ providers: [Handlers] }, { server: { queues } });
  const asynq = app.get(AsynqClient);
  await fc.assert(
    fc.asyncProperty(graphs, async (steps) => {
      endings = new Map(steps.map(({ name, ending }) => [name, ending]));
      ran = [];
      const run = await asynq.start(build(steps));
      await tasks.advance('1h');
      const outcome = await run.done();
      const states = expected(steps);
      const statesOf = (given: typeof outcome.steps) =>
        Object.fromEntries(Object.entries(given).map(([name, { state }]) => [name, state]));
      expect(statesOf(outcome.steps)).toEqual(Object.fromEntries(states));
      const failed = steps.filter(({ name, optional }) => states.get(name) === 'failed' && !optional);
      const isWaiting = [...states.values()].includes('waiting');
      expect(outcome.state).toBe(failed.length > 0 || isWaiting ? 'failed' : 'succeeded');
      for (const step of steps) {
        if (!ran.includes(step.name)) continue;
        const position = ran.indexOf(step.name);
        for (const other of step.after) if (ran.includes(other)) expect(ran.lastIndexOf(other)).toBeLessThan(position);
      }
      const once = steps.filter(({ ending }) => ending !== 'fails once').map(({ name }) => name);
      for (const name of once) expect(ran.filter((other) => other === name).length).toBeLessThanOrEqual(1);

      const revoked = steps.some(({ name, ending }) => ending === 'is revoked' && states.get(name) === 'failed');
      if (outcome.state === 'failed' && !revoked) {
        endings = new Map();
        await run.retry();
        await tasks.advance('1h');
        const again = await run.done();
        expect(again.state).toBe('succeeded');
        expect(new Set(Object.values(statesOf(again.steps)))).toEqual(new Set(['succeeded']));
      }
      await run.delete();
      expect(tasks.archived()).toEqual([]);
      expect(tasks.enqueued()).toEqual([]);
    }),
    { numRuns: 80 },
  );
}, 120_000);
