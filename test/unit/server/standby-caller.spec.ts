import { expect, it } from 'vitest';
import type { SeatsRole } from '../../../lib/broker/seats.js';
import { ManualClock } from '../../../lib/clock.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { StandbyCaller } from '../../../lib/server/crew/standby-caller.js';
import { BrokerUnavailableError } from '../../../lib/errors.js';

/** Lets what is due and what it awaits happen. */
async function pass(clock: ManualClock, milliseconds: number): Promise<void> {
  clock.advance(milliseconds);
  for (let turn = 0; turn < 10; turn++) await undefined;
}

function rig(replies: readonly (number | Error)[], looks: readonly (Error | undefined)[] = []) {
  const clock = new ManualClock();
  const events = new AsynqEvents();
  const failures: unknown[] = [];
  events.on('loopFailed', ({ error }) => failures.push(error));
  const state = { calls: 0, looks: 0, isOverloaded: true };
  const seats = {
    call: async () => {
      const reply = replies[state.calls++] ?? 30_000;
      if (reply instanceof Error) throw reply;
      return reply;
    },
  } as Partial<SeatsRole> as SeatsRole;
  const seat = { isCrowded: true, crew: 'crew' };
  const caller = new StandbyCaller({ broker: { seats }, clock, events, seat });
  const overload = {
    get isOverloaded() {
      return state.isOverloaded;
    },
    lookAgain: async () => {
      const failure = looks[state.looks++];
      if (failure) throw failure;
    },
  };
  return { clock, caller, overload, state, failures, seat };
}

const away = new BrokerUnavailableError('Redis is away');

it('calls part by part while tasks wait, then rests for the window', async () => {
  const { clock, caller, overload, state } = rig([0, 0, 0, 10_000]);
  caller.check(overload);
  await pass(clock, 0);
  expect(state.calls).toBe(1);
  for (const calls of [2, 3, 4]) {
    await pass(clock, 20);
    expect(state.calls).toBe(calls);
  }
  await pass(clock, 9_999);
  expect(state.calls).toBe(4);
  await pass(clock, 1);
  expect(state.calls).toBe(5);
});

it('ends when nothing waits any more, and begins again', async () => {
  const { clock, caller, overload, state } = rig([0, 0]);
  caller.check(overload);
  await pass(clock, 0);
  state.isOverloaded = false;
  await pass(clock, 20);
  await pass(clock, 60_000);
  expect(state.calls).toBe(1);
  state.isOverloaded = true;
  caller.check(overload);
  await pass(clock, 0);
  expect(state.calls).toBe(2);
});

it('goes on when calls and looks fail', async () => {
  const { clock, caller, overload, state, failures } = rig([away, 0, 0], [away, away, undefined]);
  caller.check(overload);
  await pass(clock, 0);
  for (let second = 0; second < 3; second++) await pass(clock, 1_000);
  expect(failures).toEqual([away, away, away]);
  expect(state.calls).toBe(2);
});

it('calls nobody in a crew with seats for all, and nobody once it is closed', async () => {
  const { clock, caller, overload, state, seat } = rig([0, 0]);
  seat.isCrowded = false;
  caller.check(overload);
  await pass(clock, 0);
  expect(state.calls).toBe(0);
  seat.isCrowded = true;
  caller.check(overload);
  await pass(clock, 0);
  caller.close();
  await pass(clock, 60_000);
  expect(state.calls).toBe(1);
});
