import { describe, expect } from 'vitest';
import type { StepCallPreparer } from '../../../lib/broker/checkpoints.js';
import { calledTask } from '../../../lib/enqueue/called-task.js';
import { Preparer } from '../../../lib/enqueue/preparer.js';
import { SkipRetry } from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { ActiveTask, type Verdict } from '../../../lib/server/attempt/active-task.js';
import type { SingleHandlerEntry } from '../../../lib/server/attempt/handler.js';
import { AttemptHistory } from '../../../lib/server/attempt/attempt-history.js';
import { Hooks } from '../../../lib/server/attempt/hooks.js';
import { Mux } from '../../../lib/server/attempt/mux.js';
import { Results } from '../../../lib/server/attempt/results.js';
import { withSteps } from '../../../lib/server/attempt/undoing.js';
import { Verdicts } from '../../../lib/server/attempt/verdict.js';
import { encodeJson } from '../../../lib/task/codec.js';
import type { TaskContext } from '../../../lib/task/context.js';
import type { Driver, DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';
import { type Death, playUntilDeath, requeueExpired } from '../mortal.js';

const QUEUES = ['default', 'other'];
const DEATHS: readonly Death[] = ['after', 'before'];
/** What is done outside, in its order. */
const EFFECTS = ['capture', 'invoice', 'reserve', 'undo reserve', 'undo capture'];

/** Handlers of the types `saga`, whose steps are undone, and `invoice`. */
export interface SagaHandlers {
  handle(task: TaskContext): Promise<void>;
  invoice(task: TaskContext): void;
}

/** A saga that fails for good at its end, and what it has done outside. */
class Saga implements SagaHandlers {
  readonly effects: string[] = [];
  private fails = 1;

  async handle({ steps }: TaskContext): Promise<void> {
    const note = (what: string) => () => void this.effects.push(what);
    await steps.run('capture', note('capture'), { undo: note('undo capture') });
    await steps.call('invoice', 'invoice', undefined, { queue: 'other' });
    const reserve = (): void => {
      if (this.fails-- > 0) throw new Error('busy');
      this.effects.push('reserve');
    };
    await steps.run('reserve', reserve, { undo: note('undo reserve'), retry: { max: 9, delay: '1m' } });
    throw new SkipRetry('sold out');
  }

  invoice(): void {
    this.effects.push('invoice');
  }

  times(effect: string): number {
    return this.effects.filter((one) => one === effect).length;
  }
}

/**
 * What a server does with the next task of a queue. Returns whether there was one.
 *
 * @param times how often whatever goes between the queues comes
 */
export async function work(
  driver: Driver,
  session: LinkSession,
  saga: SagaHandlers,
  queue: string,
  times = 2,
): Promise<boolean> {
  const { broker } = driver;
  const reply = session.took(await driver.exchange([], 1, queue));
  const [leased] = reply.tasks;
  if (!leased) return false;
  const { clock, checkpoints, consumer } = broker;
  const events = new AsynqEvents();
  const preparer = new Preparer(broker.keyPrefix);
  const calls: StepCallPreparer = {
    calledBy: (parentId: string, name: string, task: unknown, payload: unknown, options: unknown) =>
      calledTask({ parentId, name, task, payload, options }, clock.now(), preparer, undefined),
  };
  const relay = { carry: (caused: object) => void session.took(caused) };
  const results = new Results(consumer, 1000, encodeJson);
  const services = {
    results,
    steps: { checkpoints, clock, maxBytes: 1000, relay, calls },
    notes: { role: broker.notes, clock },
    events,
    contexts: undefined,
  };
  const saved: SingleHandlerEntry = { pattern: 'saga', handle: (task) => saga.handle(task), steps: {} };
  const invoice: SingleHandlerEntry = { pattern: 'invoice', handle: async (task) => saga.invoice(task) };
  const entry = leased.message.type === 'invoice' ? invoice : withSteps(saved);
  const mux = new Mux([entry]);
  const history = new AttemptHistory({ clock, server: 'host:1:id', most: 10 });
  const verdicts = new Verdicts({ clock, events, mux, services, history, hooks: new Hooks({}, events), maxCrashes: 3 });
  const task = new ActiveTask(services, leased, clock.now());
  task.handler = entry;
  let verdict: Verdict;
  try {
    verdict = verdicts.success(task, await entry.handle(task));
  } catch (error) {
    if ((error as Error).name === 'Killed') throw error;
    verdict = verdicts.failure(task, error);
  }
  session.took(await driver.exchange([verdict.settlement], 0, queue));
  await session.relay(times);
  return true;
}

/** The time that retries and sleeps take passes, as often as there is something to do. */
async function play(driver: Driver, session: LinkSession, saga: Saga, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const queue of QUEUES) while (await work(driver, session, saga, queue));
    driver.clock.advance(60_000);
    for (const queue of QUEUES) await driver.broker.maintenance.forward(queue);
  }
}

export function exerciseSagaKills(it: DriverTest): void {
  describe('a saga whose server dies', () => {
    it.for(DEATHS)('is undone, whenever that was, and nothing is left of it: %s a call', async (death, { driver }) => {
      let twice = 0;
      for (let calls = 1; ; calls++) {
        const saga = new Saga();
        const id = await driver.add({ type: 'saga' });
        const flow = (dying: Driver): Promise<void> => play(dying, new LinkSession(dying), saga, 4);
        const lived = await playUntilDeath(driver, calls, flow, death);
        const session = new LinkSession(driver);
        if (!lived) {
          for (let round = 0; round < 3; round++) {
            await requeueExpired(driver, QUEUES);
            await session.keep();
            await play(driver, session, saga, 5);
          }
        }
        const { tasks, ...queue } = await driver.queue();
        const message = tasks[id]?.message;
        expect([calls, tasks[id]?.state, message?.errorMsg, message?.headers]).toEqual([
          calls,
          'archived',
          'sold out; undone: reserve, capture',
          undefined,
        ]);
        expect(queue).toMatchObject({ pending: [], scheduled: [], active: [], lease: [] });
        expect((await driver.queue('other')).tasks).toEqual({});
        const firsts = EFFECTS.map((effect) => saga.effects.indexOf(effect));
        expect([calls, firsts]).toEqual([calls, firsts.toSorted((a, b) => a - b)]);
        expect(firsts[0], `${calls}: ${saga.effects.join()}`).toBe(0);
        const repeated = EFFECTS.filter((effect) => saga.times(effect) > 1);
        expect(repeated.length, `${calls}: ${saga.effects.join()}`).toBeLessThanOrEqual(1);
        twice += repeated.length;
        await driver.broker.administration.moveTasks('default', 'delete', [id]);
        await session.expectNothingKept();
        if (lived) {
          expect(saga.effects).toEqual(EFFECTS);
          break;
        }
      }
      // The one case that the docs allow: what was done was not stored.
      if (death === 'before') expect(twice).toBeGreaterThan(0);
      else expect(twice).toBe(0);
    });
  });
}
