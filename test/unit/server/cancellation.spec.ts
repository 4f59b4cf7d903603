import { afterEach, describe, expect, it } from 'vitest';
import type { CancelOutcome } from '../../../lib/broker/cancellation.js';
import type { ManualClock } from '../../../lib/clock.js';
import { TaskCanceledError } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import type { ServerOptions } from '../../../lib/server/options.js';
import { Keyspace } from '../../../lib/wire/keys.js';
import { repeat } from '../../support/messages.js';
import { closeRigs, gate, manualClock, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

const SECOND = 1_000;

/** A server that runs one task `a`, whose handler waits. */
async function setUp(options: ServerOptions = {}) {
  const clock = manualClock();
  const held = gate();
  const rig = await startRig({ t: held.handle, other: () => undefined }, options, clock);
  const inspector = new AsynqInspector(rig.memory);
  const run = async (queue = 'default') => {
    await rig.add({ type: 't', id: 'a', queue, maxRetry: 5 });
    await pass(clock, 20);
    return held.entered;
  };
  return { ...rig, clock, inspector, run, held, open: held.open };
}

/** Lets the time pass, and the server do what is due. */
async function pass(clock: ManualClock, milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 10) {
    clock.advance(10);
    await turn(2);
  }
}

describe('a cancelled task', () => {
  const OUTCOMES = [
    ['retry', 'retry', 'retry'],
    ['archive', 'archived', 'archived'],
    ['delete', 'revoked', undefined],
  ] as const;

  it.each(OUTCOMES)('ends with the reason, and the outcome: %s', async (outcome, reported, state) => {
    const { clock, inspector, memory, run, outcomes } = await setUp();
    const task = await run();
    await inspector.cancelProcessing('a', { reason: 'withdrawn', outcome });
    await pass(clock, 10);
    expect(task.signal.reason).toBeInstanceOf(TaskCanceledError);
    expect((task.signal.reason as Error).message).toBe('withdrawn');
    expect(outcomes).toMatchObject([{ outcome: reported, error: task.signal.reason }]);
    const stored = await memory.inspection.getTask('default', 'a');
    expect(stored?.state).toBe(state);
    if (stored) expect(stored.message.errorMsg).toBe('withdrawn');
  });

  it('is retried by default', async () => {
    const { clock, inspector, memory, run } = await setUp();
    await run();
    await inspector.cancelProcessing('a');
    await pass(clock, 10);
    expect(await memory.inspection.getTask('default', 'a')).toMatchObject({
      state: 'retry',
      message: {
        retried: 1,
        errorMsg: 'context canceled',
      },
    });
  });

  it('ends in every queue in which its id runs', async () => {
    const { clock, inspector, memory, run } = await setUp({ queues: ['default', 'low'] });
    await run('default');
    await run('low');
    await inspector.cancelProcessing('a', { outcome: 'archive' });
    await pass(clock, 10);
    for (const queue of ['default', 'low'])
      expect((await memory.inspection.getTask(queue, 'a'))?.state).toBe('archived');
  });
});

describe('a lost message', () => {
  const cancel = (
    { memory, clock }: Awaited<ReturnType<typeof setUp>>,
    { at = clock.now(), outcome = 'archive' }: { at?: number; outcome?: CancelOutcome } = {},
  ) => memory.cancellation.recordCancellation({ id: 'a', at, outcome, reason: 'lost and found' });

  it('does not lose the cancellation', async () => {
    const rig = await setUp();
    const task = await rig.run();
    await cancel(rig);
    await pass(rig.clock, 5 * SECOND);
    expect((task.signal.reason as Error).message).toBe('lost and found');
    expect((await rig.memory.inspection.getTask('default', 'a'))?.state).toBe('archived');
  });

  it('does not cancel an attempt that began later', async () => {
    const rig = await setUp();
    await cancel(rig);
    rig.clock.advance(1);
    const task = await rig.run();
    await pass(rig.clock, 12 * SECOND);
    expect(task.signal.aborted).toBe(false);
    expect((await rig.memory.inspection.getTask('default', 'a'))?.state).toBe('active');
  });

  it('cancels one attempt and not the next, even if the clock of who cancels is ahead', async () => {
    const rig = await setUp({ retryDelay: () => 0 });
    await rig.run();
    await cancel(rig, { at: rig.clock.now() + 60 * SECOND, outcome: 'retry' });
    await pass(rig.clock, 20 * SECOND);
    expect(rig.outcomes).toMatchObject([{ outcome: 'retry' }]);
    expect(await rig.memory.inspection.getTask('default', 'a')).toMatchObject({
      state: 'active',
      message: { retried: 1 },
    });
  });

  it('is made good when Redis is back, with what was recorded meanwhile', async () => {
    const rig = await setUp();
    const task = await rig.run();
    rig.faults.set('findCancellations', 'before');
    await rig.inspector.cancelProcessing('a', { reason: 'r', outcome: 'archive' });
    await pass(rig.clock, 3 * SECOND);
    expect(task.signal.aborted).toBe(false);
    rig.faults.clear();
    await pass(rig.clock, 5 * SECOND);
    expect((task.signal.reason as Error).message).toBe('r');
    expect((await rig.memory.inspection.getTask('default', 'a'))?.state).toBe('archived');
  });

  it('is noted as acted on, even if that fails at first', async () => {
    const rig = await setUp();
    await rig.run();
    await cancel(rig);
    rig.faults.set('noteCancelled', 'before');
    await pass(rig.clock, 6 * SECOND);
    expect(await rig.memory.cancellation.findCancellations(['a'])).toMatchObject([{ acted: [] }]);
    rig.faults.clear();
    await pass(rig.clock, 6 * SECOND);
    expect(await rig.memory.cancellation.findCancellations(['a'])).toMatchObject([{ acted: ['default'] }]);
  });
});

describe('a superseded task', () => {
  const uniqueKey = new Keyspace().queue('default').lock('t', 'last', ['k']);
  /** As somebody who dies right after that. */
  const supersede = async ({ memory }: Awaited<ReturnType<typeof setUp>>) => {
    const { message, ...rest } = repeat('supersede', 'b', { processAt: memory.clock.now() / 1000 + 3600 });
    const repeated = { ...rest, message: { ...message, uniqueKey }, repeat: { ...rest.repeat, lock: uniqueKey } };
    await memory.uniqueness.enqueue('default', [repeated]);
  };
  const setUpRunning = async () => {
    const rig = await setUp();
    await rig.add({ type: 't', id: 'a', uniqueKey }, { uniqueTtl: 60 });
    await pass(rig.clock, 20);
    return { ...rig, task: await rig.held.entered };
  };

  it('is cancelled by the call that supersedes it, and deleted', async () => {
    const rig = await setUpRunning();
    await supersede(rig);
    await pass(rig.clock, 10);
    expect((rig.task.signal.reason as Error).message).toBe('superseded by task "b"');
    expect(rig.outcomes).toMatchObject([{ outcome: 'revoked' }]);
    expect(await rig.memory.inspection.getTask('default', 'a')).toBeUndefined();
  });

  it('is found when the message is lost, and Redis is away for a while', async () => {
    const rig = await setUpRunning();
    rig.memory.cancellation.end(); // no message arrives
    rig.faults.set('findSuperseded', 'before');
    await supersede(rig);
    await pass(rig.clock, 6 * SECOND);
    expect(rig.task.signal.aborted).toBe(false);
    rig.faults.clear();
    await pass(rig.clock, 6 * SECOND);
    expect((rig.task.signal.reason as Error).message).toBe('superseded by task "b"');
    expect(await rig.memory.inspection.getTask('default', 'a')).toBeUndefined();
  });

  it('lets a cancellation of another task come through when its queue is away', async () => {
    const rig = await setUpRunning();
    rig.faults.set('findSuperseded', 'before');
    await rig.add({ type: 't', id: 'other' });
    await pass(rig.clock, 20);
    await rig.inspector.cancelProcessing('other', { outcome: 'archive' });
    await pass(rig.clock, 10);
    expect((await rig.memory.inspection.getTask('default', 'other'))?.state).toBe('archived');
    expect(rig.task.signal.aborted).toBe(false);
  });
});

describe('a message that arrives', () => {
  it('counts even if the clock of who cancels is behind', async () => {
    const { clock, memory, run } = await setUp();
    await run();
    await memory.cancellation.recordCancellation({ id: 'a', at: clock.now() - 3 * SECOND, outcome: 'archive' });
    await memory.cancellation.publishCancellation('a');
    await pass(clock, 10);
    expect((await memory.inspection.getTask('default', 'a'))?.state).toBe('archived');
  });

  it('from Go is a plain cancellation, whatever was recorded for the id long before', async () => {
    const { clock, memory, run } = await setUp();
    await memory.cancellation.recordCancellation({ id: 'a', at: clock.now() - 60 * SECOND, outcome: 'archive' });
    await run();
    await memory.cancellation.publishCancellation('a');
    await pass(clock, 10);
    expect(await memory.inspection.getTask('default', 'a')).toMatchObject({
      state: 'retry',
      message: { errorMsg: 'context canceled' },
    });
  });

  it('during a search that began before counts with what was recorded since', async () => {
    const { clock, inspector, memory, run } = await setUp();
    await run();
    const find = memory.cancellation.findCancellations.bind(memory.cancellation);
    let answer = (): void => {};
    const replied = new Promise<void>((resolve) => (answer = resolve));
    memory.cancellation.findCancellations = async (ids) => {
      const found = await find(ids);
      memory.cancellation.findCancellations = find;
      await replied;
      return found;
    };
    await pass(clock, 5 * SECOND);
    expect(memory.cancellation.findCancellations).toBe(find); // the search is under way
    await inspector.cancelProcessing('a', { outcome: 'archive' });
    await turn();
    answer();
    await turn();
    await pass(clock, 10);
    expect((await memory.inspection.getTask('default', 'a'))?.state).toBe('archived');
  });

  it('causes no search when the task does not run here; nothing is searched while nothing runs', async () => {
    const { clock, memory, calls, add } = await setUp();
    await add({ type: 'other' });
    await pass(clock, 20);
    await memory.cancellation.publishCancellation('a');
    await pass(clock, 11 * SECOND);
    expect(calls).not.toContain('findCancellations');
  });
});
