import { hostname } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import type { ManualClock } from '../../../lib/clock.js';
import { RevokeTask, SkipRetry } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import type { ServerOptions } from '../../../lib/server/options.js';
import type { AttemptList } from '../../../lib/task/attempts.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { PostponeTask } from '../../../lib/task/postpone.js';
import { closeRigs, manualClock, type Rig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

const START = 1_700_000_000_000;

async function pass(clock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000);
    await turn(3);
  }
}

type Attempt = (task: TaskContext, clock: ManualClock) => unknown;

interface Tried extends Rig {
  readonly clock: ManualClock;
  read(): Promise<AttemptList>;
}

/** A task whose attempts do these one after the other, five seconds apart. */
async function tried(attempts: readonly Attempt[], options: ServerOptions = {}, partial: object = {}): Promise<Tried> {
  const clock = manualClock();
  const left = [...attempts];
  const made = await startRig(
    { 'test:task': async (task) => left.shift()?.(task as TaskContext, clock) },
    { retryDelay: () => (left.length > 0 ? 5_000 : 3_600_000), ...options },
    clock,
  );
  const { id } = await made.add({ maxRetry: 9, ...partial });
  await pass(clock, 6 * attempts.length);
  const inspector = new AsynqInspector(made.memory);
  return { ...made, clock, read: async () => (await inspector.attempts('default', id))! };
}

const fails =
  (text: string, took = 0): Attempt =>
  (_, clock) => {
    clock.advance(took);
    throw new Error(text);
  };

describe('the history of attempts', () => {
  it('says when, where and how long each ran, and how it failed', async () => {
    const { read } = await tried([fails('first', 1_250), fails('second')], {}, { maxRetry: 1 });
    const { attempts, total } = await read();
    expect(total).toBe(2);
    const [one, two] = attempts;
    expect(one).toEqual({
      number: 1,
      outcome: 'failed',
      startedAt: expect.any(Date) as Date,
      endedAt: new Date(one!.startedAt!.getTime() + 1_250),
      duration: 1_250,
      server: expect.stringMatching(new RegExp(`^${hostname()}:${process.pid}:[0-9a-f-]{36}$`)) as string,
      error: 'first',
      stack: expect.stringMatching(/^Error: first\nat .*attempt-history\.spec\.ts:\d+/) as string,
    });
    expect(two).toMatchObject({ number: 2, error: 'second', server: one!.server, duration: 0 });
    const starts = [one, two].map((attempt) => attempt!.startedAt!.getTime());
    expect(starts[0]).toBeGreaterThanOrEqual(START);
    expect(starts[1]! - starts[0]!).toBeGreaterThanOrEqual(5_000);
  });

  it('is nothing for a task that succeeds at once, though it is kept', async () => {
    const { read } = await tried([() => 'ok'], {}, { retention: 3_600 });
    expect(await read()).toEqual({ attempts: [], total: 0 });
  });

  it('ends with the success after failures, of a task that is kept', async () => {
    const { read } = await tried([fails('first'), () => 'ok'], {}, { retention: 3_600 });
    const { attempts, total } = await read();
    expect(total).toBe(2);
    expect(attempts.map(({ number, outcome, error }) => [number, outcome, error])).toEqual([
      [1, 'failed', 'first'],
      [2, 'completed', ''],
    ]);
    expect(attempts[1]!.stack).toBeUndefined();
  });

  it('has attempts that do not count, and none of those that were postponed', async () => {
    const { read } = await tried([fails('a'), () => Promise.reject(new PostponeTask(1_000)), fails('b'), fails('c')], {
      isFailure: (error) => (error as Error).message !== 'a',
    });
    const { attempts, total } = await read();
    expect(attempts.map(({ number, error }) => [number, error])).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    expect(total).toBe(3);
  });

  it('has what a handler throws to end its task, and attempts that ran out of time, which have no stack', async () => {
    const slow: Attempt = (task) =>
      new Promise((_, reject) => task.signal.addEventListener('abort', () => reject(task.signal.reason as Error)));
    const { read } = await tried([slow, () => Promise.reject(new SkipRetry('broken'))], {}, { timeout: 2 });
    const { attempts } = await read();
    expect(attempts).toMatchObject([
      { error: 'context deadline exceeded', stack: undefined, outcome: 'failed' },
      { error: 'broken', stack: expect.stringContaining('attempt-history.spec.ts') as string },
    ]);
    expect(attempts[0]!.duration).toBeGreaterThanOrEqual(2_000);
  });

  it('has a cancelled attempt', async () => {
    const clock = manualClock();
    const made = await startRig({ 'test:task': () => new Promise(() => undefined) }, { shutdownTimeout: 0 }, clock);
    const { id } = await made.add({ maxRetry: 9 });
    await pass(clock, 2);
    const inspector = new AsynqInspector(made.memory);
    await inspector.cancelProcessing(id, { reason: 'withdrawn', outcome: 'archive' });
    await pass(clock, 2);
    const { attempts } = (await inspector.attempts('default', id))!;
    expect(attempts).toMatchObject([{ error: 'withdrawn', outcome: 'failed', stack: undefined }]);
  });

  it('goes with a task that is revoked', async () => {
    const { memory, read } = await tried([fails('a'), () => Promise.reject(new RevokeTask('no more'))]);
    expect(await read()).toBeUndefined();
    expect(memory.snapshot()['default']?.tasks).toEqual({});
  });

  it('names the type of a task that nobody handles', async () => {
    const clock = manualClock();
    const made = await startRig({ other: () => undefined }, { retryDelay: () => 3_600_000 }, clock);
    const { id } = await made.add({ type: 'email:welcome', maxRetry: 9 });
    await pass(clock, 2);
    expect(await new AsynqInspector(made.memory).attempts('default', id)).toMatchObject({
      attempts: [{ error: 'handler not found for task "email:welcome"', stack: undefined }],
    });
  });

  it('says where the server of a task has died, as far as that is known', async () => {
    const clock = manualClock();
    const made = await startRig({ other: () => undefined }, { retryDelay: () => 3_600_000 }, clock);
    made.server.pauseFetching();
    const { id } = await made.add({ maxRetry: 9 });
    await made.memory.consumer.exchange('default', { settle: [], take: 1 });
    const server = { host: 'web-1', pid: 7, serverId: 'dead', concurrency: 1, queues: { default: 1 } };
    const info = { ...server, strictPriority: false, status: 'active', startTime: 0, activeWorkerCount: 0 };
    await made.memory.monitoring.writeServerState(info, [], 10);
    const at = clock.now();
    const recovered = made.next('tasksRecovered');
    await pass(clock, 75);
    await recovered;
    expect(await new AsynqInspector(made.memory).attempts('default', id)).toEqual({
      total: 1,
      attempts: [
        {
          number: 1,
          outcome: 'crashed',
          startedAt: undefined,
          endedAt: new Date(at),
          duration: undefined,
          server: 'web-1:7',
          error: 'asynq: task lease expired',
          stack: undefined,
        },
      ],
    });
  });

  it('keeps as many as the option says, and knows of the others', async () => {
    const failing = Array.from({ length: 6 }, (_, n) => fails(`${n + 1}`));
    const { read } = await tried(failing, { attemptHistory: 2 });
    const { attempts, total } = await read();
    expect(attempts.map(({ number, error }) => [number, error])).toEqual([
      [5, '5'],
      [6, '6'],
    ]);
    expect(total).toBe(6);
  });

  it('keeps nothing when the option is false', async () => {
    const { read, memory } = await tried([fails('a'), fails('b')], { attemptHistory: false });
    expect(await read()).toEqual({ attempts: [], total: 2 });
    for (const record of Object.values(memory.snapshot()['default']!.tasks)) {
      expect(JSON.stringify(record)).not.toContain('attempt');
    }
  });

  it('leaves a gap where a server without a history has failed', async () => {
    const { read } = await tried([fails('mine')], {}, { retried: 3 });
    expect(await read()).toMatchObject({ attempts: [{ number: 4, error: 'mine' }], total: 4 });
  });
});

describe('what is stored of an error', () => {
  it('is bounded, however long its message and stack are', async () => {
    const { memory, read } = await tried([
      () => {
        const error = new Error('ü'.repeat(50_000));
        error.stack = `Error: ${error.message}\n${'    at somewhere (/a/file.js:1:1)\n'.repeat(5_000)}`;
        throw error;
      },
    ]);
    const { attempts } = await read();
    expect(attempts[0]!.error).toHaveLength(1_000);
    expect(attempts[0]!.error.endsWith('…')).toBe(true);
    expect(attempts[0]!.stack).toHaveLength(2_000);
    expect(attempts[0]!.stack).toContain('\nat somewhere (/a/file.js:1:1)\nat somewhere');
    const [entry] = await memory.inspection.attempts('default', Object.keys(memory.snapshot()['default']!.tasks)[0]!);
    expect(Buffer.byteLength(entry!.text)).toBeLessThan(5_000);
  });

  it('has its causes', async () => {
    const { read } = await tried([
      () => {
        throw new Error('cannot save', { cause: new TypeError('no column', { cause: 'a text' }) });
      },
    ]);
    expect((await read()).attempts[0]!.stack).toMatch(
      /^Error: cannot save\nat [^]+\ncaused by: TypeError: no column\nat /,
    );
  });

  it.each<[string, unknown, string]>([
    ['a text', 'just text', 'just text'],
    ['nothing', undefined, 'undefined was thrown'],
    ['an error without a stack', Object.assign(new Error('bare'), { stack: undefined }), 'bare'],
    ['an error whose stack has no lines', Object.assign(new Error('bare'), { stack: 'Error: bare' }), 'bare'],
    [
      'an error whose stack throws',
      Object.defineProperty(new Error('evil'), 'stack', {
        get: () => {
          throw new Error('no stack');
        },
      }),
      'evil',
    ],
  ])('has no stack for %s', async (_, thrown, text) => {
    const { read } = await tried([() => Promise.reject(thrown as Error)]);
    expect((await read()).attempts).toMatchObject([{ error: text, stack: undefined }]);
  });

  it('does not follow causes in a circle', async () => {
    const { read } = await tried([
      () => {
        const error = new Error('round');
        error.cause = error;
        throw error;
      },
    ]);
    expect((await read()).attempts[0]!.stack!.length).toBeLessThanOrEqual(2_000);
  });
});
