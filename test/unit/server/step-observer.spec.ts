import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../../lib/clock.js';
import { DeadlineExceededError, LeaseExpiredError, ShutdownError } from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import type { AsynqEventMap } from '../../../lib/events/event-map.js';
import { observed, type ObservedAttempt, StepReports } from '../../../lib/server/attempt/step-observer.js';
import type { StepSpan } from '../../../lib/tracing/tracing.js';

const STEP = { name: 'ship', kind: 'run' } as const;
const REF = { id: 'a', type: 'order', queue: 'default' };

let events: AsynqEvents;
let clock: ManualClock;
let seen: AsynqEventMap['stepFinished'][];

beforeEach(() => {
  events = new AsynqEvents();
  clock = new ManualClock(0);
  seen = [];
});

const reports = (attempt: Partial<ObservedAttempt> = {}): StepReports =>
  new StepReports({ ...REF, span: undefined, aborted: undefined, ...attempt }, { events, clock });
const listen = () => events.on('stepFinished', (event) => seen.push(event));

describe('the reports of steps', () => {
  it('are none when nobody listens, and there is no trace', () => {
    expect(reports().begin(STEP)).toBeUndefined();
    listen();
    expect(reports().begin(STEP)).toBeDefined();
  });

  it('have how long a step took', async () => {
    listen();
    const value = await observed(reports(), STEP, async () => {
      clock.advance(1_500);
      return 7;
    });
    expect(value).toBe(7);
    expect(seen).toEqual([
      { task: expect.objectContaining(REF) as object, step: 'ship', kind: 'run', outcome: 'done', duration: 1_500 },
    ]);
  });

  it.each([
    ['failed', undefined, new Error('no')],
    ['failed', new DeadlineExceededError(), new Error('late')],
    ['interrupted', new ShutdownError(), new Error('aborted')],
    ['interrupted', new LeaseExpiredError(), new Error('aborted')],
    ['interrupted', undefined, new LeaseExpiredError()],
  ])('say that a step has %s, after %s, with %s', async (outcome, aborted, error) => {
    listen();
    const work = observed(reports({ aborted }), STEP, () => Promise.reject(error));
    await expect(work).rejects.toBe(error);
    expect(seen).toMatchObject([{ outcome, error }]);
  });

  it('run the work and its listeners in the trace, and end the span once', async () => {
    const order: string[] = [];
    const within =
      (name: string) =>
      <T>(work: () => T): T => {
        order.push(`in ${name}`);
        return work();
      };
    const ends = vi.fn();
    const span: StepSpan = { run: within('step'), end: ends };
    const attempt = { run: within('attempt'), startStep: () => span, end: () => undefined };
    await observed(reports({ span: attempt }), STEP, async () => 1);
    expect(order).toEqual(['in step']);
    expect(ends.mock.calls).toEqual([['done', undefined]]);
    listen();
    await observed(reports({ span: attempt }), STEP, async () => 1);
    expect(order).toEqual(['in step', 'in step', 'in attempt']);
    expect(seen).toHaveLength(1);
  });

  it('do not change a step without an observer', async () => {
    expect(await observed(undefined, STEP, async () => 7)).toBe(7);
  });
});
