import { describe, expect, it, vi } from 'vitest';
import { RevokeTask, SkipRetry } from '../../../lib/errors.js';
import { PostponeTask } from '../../../lib/task/postpone.js';
import { manualClock, rig } from '../../support/server-rig.js';

const START = 1_700_000_000;

describe('outcomes', () => {
  it('deletes a task that succeeded; with a retention keeps it with its result', async () => {
    const { server, memory, add, outcomes } = rig({ t: () => ({ ok: true }) }, {}, manualClock());
    const gone = await add({ type: 't' });
    const kept = await add({ type: 't', retention: 60 });
    await server.runOnce();
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['done', 'completed']);
    expect(await memory.inspection.getTask('default', gone.id)).toBeUndefined();
    const stored = await memory.inspection.getTask('default', kept.id);
    expect(stored?.state).toBe('completed');
    expect(stored?.result?.toString()).toBe('{"ok":true}');
    expect(stored?.message.completedAt).toBe(START);
  });

  it('retries a failure after the delay, stores its text and counts it', async () => {
    const clock = manualClock();
    const { server, memory, add } = rig(
      {
        t: () => {
          throw new Error('boom');
        },
      },
      { retryDelay: (retried) => (retried + 1) * 1_500 },
      clock,
    );
    const { id } = await add({ type: 't', maxRetry: 2 });
    await server.runOnce();
    const first = await memory.inspection.getTask('default', id);
    expect(first).toMatchObject({ state: 'retry', nextProcessAt: START + 2 }); // 1.5 s, rounded up
    expect(first?.message).toMatchObject({ retried: 1, errorMsg: 'boom', lastFailedAt: START });
    clock.moveTo((START + 2) * 1000);
    await server.runOnce();
    clock.moveTo((START + 5) * 1000);
    const [last] = await server.runOnce();
    expect(last).toMatchObject({ outcome: 'archived', retried: 2 });
    expect((await memory.inspection.getTask('default', id))?.state).toBe('archived');
  });

  it('does not count what is no failure, any number of times', async () => {
    const clock = manualClock();
    const { server, memory, add } = rig(
      {
        t: async () => {
          throw new Error('busy');
        },
      },
      { retryDelay: () => 0, isFailure: (error) => (error as Error).message !== 'busy' },
      clock,
    );
    const { id } = await add({ type: 't', maxRetry: 1 });
    for (let attempt = 0; attempt < 5; attempt++) {
      await server.runOnce();
      clock.advance(1_000);
    }
    expect((await memory.inspection.getTask('default', id))?.message).toMatchObject({ retried: 0, errorMsg: 'busy' });
  });

  it.each([
    ['at once', new PostponeTask('1500ms')],
    ['wrapped', new Error('outer', { cause: new PostponeTask(1_500) })],
  ])('postpones without a trace of the attempt, thrown %s', async (_, error) => {
    const clock = manualClock();
    const onError = vi.fn();
    const postpone = (): never => {
      throw error;
    };
    const { server, memory, add } = rig({ t: postpone }, { onError }, clock);
    const { id } = await add({ type: 't', maxRetry: 0 });
    const before = await memory.inspection.getTask('default', id);
    for (let attempt = 1; attempt <= 3; attempt++) {
      const due = Math.ceil((clock.now() + 1_500) / 1_000);
      expect(await server.runOnce()).toMatchObject([
        { outcome: 'postponed', retried: 0, retryAt: new Date(due * 1000) },
      ]);
      expect(await memory.inspection.getTask('default', id)).toEqual({
        ...before,
        pendingSince: undefined,
        state: 'retry',
        nextProcessAt: due,
      });
      clock.moveTo(due * 1000);
    }
    expect(onError).not.toHaveBeenCalled();
    expect(memory.snapshot().default).toMatchObject({ processed: 0, failed: 0 });
  });

  it.each([[-1], ['soon'], [NaN], [undefined]])('refuses to be postponed by %o', (delay) => {
    expect(() => new PostponeTask(delay as number)).toThrow(/delay of PostponeTask/);
  });

  it('archives on SkipRetry and drops on RevokeTask, also when wrapped', async () => {
    const failures: Record<string, unknown> = {
      skip: new SkipRetry('bad input'),
      wrapped: new Error('outer', { cause: new SkipRetry() }),
      revoke: new Error('outer', { cause: new RevokeTask() }),
    };
    const onError = vi.fn();
    const fail = (task: { type: string }): never => {
      throw failures[task.type];
    };
    const { server, memory, add } = rig({ skip: fail, wrapped: fail, revoke: fail }, { onError });
    const skipped = await add({ type: 'skip' });
    const wrapped = await add({ type: 'wrapped' });
    const revoked = await add({ type: 'revoke', retention: 60 });
    const outcomes = await server.runOnce();
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['archived', 'archived', 'revoked']);
    expect((await memory.inspection.getTask('default', skipped.id))?.message.errorMsg).toBe('bad input');
    expect((await memory.inspection.getTask('default', wrapped.id))?.state).toBe('archived');
    expect(await memory.inspection.getTask('default', revoked.id)).toBeUndefined();
    expect(onError).toHaveBeenCalledTimes(3);
  });

  it("retries a type without a handler, with asynq's text", async () => {
    const { server, memory, add } = rig({ t: () => undefined });
    const { id } = await add({ type: 'other' });
    await server.runOnce();
    expect((await memory.inspection.getTask('default', id))?.message.errorMsg).toBe(
      'handler not found for task "other"',
    );
  });

  it.each([
    ['a string', 'plain text', 'plain text'],
    ['undefined', undefined, 'undefined was thrown'],
    ['a lone surrogate', new Error('a\ud800b'), 'a\ufffdb'],
  ])('stores what was thrown: %s', async (_, thrown, text) => {
    const { server, memory, add } = rig({
      t: () => {
        throw thrown;
      },
    });
    const { id } = await add({ type: 't' });
    await server.runOnce();
    expect((await memory.inspection.getTask('default', id))?.message.errorMsg).toBe(text);
  });

  it('applies the default of a hook that throws', async () => {
    const broken = (): never => {
      throw new Error('hook');
    };
    const { server, add, events, outcomes } = rig(
      {
        t: () => {
          throw new Error('x');
        },
      },
      { onError: broken, retryDelay: broken, isFailure: broken },
    );
    await add({ type: 't' });
    await server.runOnce();
    expect(outcomes[0]).toMatchObject({ outcome: 'retry' });
    expect(events.map(({ event }) => (event as { hook: string }).hook).sort()).toEqual([
      'isFailure',
      'onError',
      'retryDelay',
    ]);
  });

  it('succeeds without a result that cannot be encoded, and reports it', async () => {
    const loop: { self?: unknown } = {};
    loop.self = loop;
    const { server, memory, add, events } = rig({ t: () => loop });
    const { id } = await add({ type: 't', retention: 60 });
    await server.runOnce();
    expect((await memory.inspection.getTask('default', id))?.state).toBe('completed');
    expect(events[0]?.name).toBe('resultDropped');
  });

  it('prefers the retry delay and isFailure of the handler', async () => {
    const handle = (): never => {
      throw new Error('x');
    };
    const own = { pattern: 't', handle, retryDelay: () => 7_000, isFailure: () => false };
    const { server, memory, add } = rig({ t: own }, { retryDelay: () => 1_000 }, manualClock());
    const { id } = await add({ type: 't' });
    await server.runOnce();
    const stored = await memory.inspection.getTask('default', id);
    expect(stored).toMatchObject({ nextProcessAt: START + 7 });
    expect(stored?.message.retried).toBe(0);
  });

  it('lets a handler write a result while it runs, and not afterwards', async () => {
    let late: (() => Promise<void>) | undefined;
    const { server, memory, add } = rig({
      t: async (task) => {
        await task.writeResult({ half: true });
        await task.writeResult(Buffer.from([0, 255]));
        late = () => task.writeResult('late');
      },
    });
    const { id } = await add({ type: 't', retention: 60 });
    await server.runOnce();
    expect((await memory.inspection.getTask('default', id))?.result).toEqual(Buffer.from([0, 255]));
    await expect(late!()).rejects.toThrow('failed to write task result: the handler has returned');
  });
});
