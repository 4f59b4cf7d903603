import { hostname } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import type { ManualClock } from '../../../lib/clock.js';
import type { AsynqEventMap } from '../../../lib/events/events.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { Server } from '../../../lib/server/server.js';
import { PostponeTask } from '../../../lib/task/postpone.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { crashesOf, CRASHES_HEADER } from '../../../lib/wire/crashes.js';
import { closeRigs, gate, manualClock, type Rig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

const HERE = `${hostname()}:${process.pid}`;

async function pass(clock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000);
    await turn(3);
  }
}

/** A server on the same store that claims tasks and dies. */
async function crash({ memory }: Rig, ids: readonly string[]): Promise<void> {
  const server = { host: 'web-1', pid: 7, serverId: 'dead', concurrency: 1, queues: { default: 1 } };
  const info = { ...server, strictPriority: false, status: 'active', startTime: 0, activeWorkerCount: 0 };
  const { tasks } = await memory.consumer.exchange('default', { settle: [], take: ids.length });
  expect(tasks.map(({ lease }) => lease.id).sort()).toEqual([...ids].sort());
  await memory.monitoring.writeServerState(info, [], 10);
}

const recoverer = (clock: ManualClock, maxCrashes: number): Promise<Rig> =>
  startRig({ other: () => undefined }, { maxCrashes, retryDelay: () => 3_600_000 }, clock);

describe('the header of crashes', () => {
  it.each(['', '0', '-1', 'x', '1.5', '99999999999'])('is not read when it is %j', (text) => {
    expect(crashesOf({ [CRASHES_HEADER]: text })).toBeUndefined();
  });

  it('is read as far as it is whole', () => {
    expect(crashesOf({ [CRASHES_HEADER]: '3 5,0, x 7,2,a:1|b:2 9' })).toEqual({
      count: 3,
      last: [
        { at: 5, others: 0, servers: [] },
        { at: 7, others: 2, servers: ['a:1', 'b:2'] },
      ],
    });
  });
});

describe('a task whose server dies', () => {
  /** Kills its server, and lets another one recover it. */
  async function killed(made: Rig, clock: ManualClock, ids: readonly string[]): Promise<void> {
    await crash(made, ids);
    const recovered = new Promise((resolve) => made.server.events.on('tasksRecovered', resolve));
    await pass(clock, 75);
    await recovered;
  }

  async function alone(maxCrashes = 3): Promise<Rig & { clock: ManualClock; run: (id: string) => Promise<void> }> {
    const clock = manualClock();
    const made = await recoverer(clock, maxCrashes);
    made.server.pauseFetching();
    await turn();
    const run = async (id: string): Promise<void> =>
      void (await new AsynqInspector(made.memory).runTask('default', id));
    return Object.assign(made, { clock, run });
  }

  it('is retried, and says where, when and with how many that was', async () => {
    const made = await alone();
    const [one, two] = [await made.add({ maxRetry: 9 }), await made.add({ maxRetry: 9 })];
    const events: AsynqEventMap['taskRecovered'][] = [];
    made.server.events.on('taskRecovered', (event) => events.push(event));
    const at = made.clock.now();
    await killed(made, made.clock, [one.id, two.id]);
    const info = await new AsynqInspector(made.memory).getTaskInfo('default', one.id);
    expect(info).toMatchObject({ state: 'retry', retried: 1, crashes: 1, lastErr: 'asynq: task lease expired' });
    expect(info!.lastCrashes).toEqual([{ at: new Date(at), servers: ['web-1:7'], others: 1 }]);
    expect(events).toMatchObject([
      { outcome: 'retry', crashes: 1 },
      { outcome: 'retry', crashes: 1 },
    ]);
  });

  it('is archived as a suspect at maxCrashes, and again when somebody runs it and it crashes once more', async () => {
    const made = await alone();
    const { id } = await made.add({ maxRetry: 9 });
    const sums: AsynqEventMap['tasksRecovered'][] = [];
    made.server.events.on('tasksRecovered', (event) => sums.push(event));
    for (let count = 1; count <= 3; count++) {
      if (count > 1) await made.run(id);
      await killed(made, made.clock, [id]);
    }
    const inspector = new AsynqInspector(made.memory);
    expect(await inspector.getTaskInfo('default', id)).toMatchObject({ state: 'archived', crashes: 3, retried: 2 });
    expect((await inspector.getTaskInfo('default', id))!.lastErr).toMatch(
      /^archived as a suspect: its server has died 3 times while it ran: on web-1:7 at 2023-\S+Z, alone in its queue; on web-1:7 at .*; on web-1:7/,
    );
    expect(sums.at(-1)).toEqual({ queue: 'default', retried: 0, archived: 1, suspects: 1 });
    expect((await inspector.explain({ queue: 'default', id })).reasons).toMatchObject([
      { kind: 'archived', cause: 'crashes' },
    ]);
    await made.run(id);
    await killed(made, made.clock, [id]);
    expect(await inspector.getTaskInfo('default', id)).toMatchObject({ state: 'archived', crashes: 4 });
  });

  it('is retried longer when maxCrashes says so', async () => {
    const made = await alone(1_000);
    const { id } = await made.add({ maxRetry: 9 });
    for (let count = 1; count <= 7; count++) {
      if (count > 1) await made.run(id);
      await killed(made, made.clock, [id]);
    }
    const info = await new AsynqInspector(made.memory).getTaskInfo('default', id);
    expect(info).toMatchObject({ state: 'retry', crashes: 7 });
    expect(info!.lastCrashes).toHaveLength(5);
  });

  it('keeps its crashes over failures, postponements and requeues', async () => {
    const clock = manualClock();
    const [failing, waiting] = [new Error('failed'), gate()];
    const ends = [() => Promise.reject(failing), () => Promise.reject(new PostponeTask(0)), waiting.handle];
    const made = await startRig(
      { 'test:task': (task) => ends.shift()!(task as TaskContext) },
      { retryDelay: () => 0 },
      clock,
    );
    const { id } = await made.add({ headers: { [CRASHES_HEADER]: '2 5,0,' }, maxRetry: 9 });
    await pass(clock, 20);
    await waiting.entered;
    const info = async () => (await made.memory.inspection.getTask('default', id))?.message;
    expect((await info())!.headers).toEqual({ [CRASHES_HEADER]: '2 5,0,' });
    const closing = made.server.shutdown();
    await pass(clock, 15);
    await closing;
    expect(await made.memory.inspection.getTask('default', id)).toMatchObject({
      state: 'pending',
      message: { headers: { [CRASHES_HEADER]: '2 5,0,' }, retried: 1 },
    });
    waiting.open();
  });

  it('forgets them when its handler sleeps', async () => {
    const clock = manualClock();
    const made = await startRig({ 'test:task': (task) => task.steps.sleep('a', '1h') }, {}, clock);
    const { id } = await made.add({ headers: { [CRASHES_HEADER]: '2 5,0,', own: 'x' } });
    await made.finished(1);
    expect(await made.memory.inspection.getTask('default', id)).toMatchObject({
      state: 'scheduled',
      message: { headers: { own: 'x' } },
    });
  });
});

describe('a task whose server has died', () => {
  const crashed = (count: number) => ({ headers: { [CRASHES_HEADER]: `${count} 5,0,` } });

  interface Gates {
    readonly started: string[];
    readonly open: (id: string) => void;
    readonly handle: (task: TaskContext) => Promise<void>;
  }

  function gates(): Gates {
    const started: string[] = [];
    const waiting = new Map<string, () => void>();
    return {
      started,
      open: (id) => waiting.get(id)?.(),
      handle: ({ id }) => {
        started.push(id);
        return new Promise((resolve) => waiting.set(id, resolve));
      },
    };
  }

  it('runs alone after two crashes: it waits for others, and others wait for it, for some time', async () => {
    const clock = manualClock();
    const tasks = gates();
    const made = await startRig({ 'test:task': tasks.handle }, { concurrency: 10 }, clock);
    await made.add({ id: 'before', timeout: 3_600 });
    await turn();
    await made.add({ id: 'suspect', timeout: 3_600, ...crashed(2) });
    await turn();
    await made.add({ id: 'after', timeout: 3_600 });
    await turn(20);
    expect(tasks.started).toEqual(['before']);
    tasks.open('before');
    await turn(20);
    expect(tasks.started).toEqual(['before', 'suspect']);
    await pass(clock, 31);
    expect(tasks.started).toEqual(['before', 'suspect', 'after']);
    for (const id of ['suspect', 'after']) tasks.open(id);
  });

  it('waits for others no longer than half a minute', async () => {
    const clock = manualClock();
    const tasks = gates();
    const made = await startRig({ 'test:task': tasks.handle }, { concurrency: 10 }, clock);
    await made.add({ id: 'long', timeout: 3_600 });
    await turn();
    await made.add({ id: 'suspect', timeout: 3_600, ...crashed(2) });
    await pass(clock, 29);
    expect(tasks.started).toEqual(['long']);
    await pass(clock, 2);
    expect(tasks.started).toEqual(['long', 'suspect']);
    for (const id of ['suspect', 'long']) tasks.open(id);
  });

  it('runs beside a tenth of the others after one crash', async () => {
    const clock = manualClock();
    const tasks = gates();
    const made = await startRig({ 'test:task': tasks.handle }, { concurrency: 30 }, clock);
    for (let n = 0; n < 8; n++) await made.add({ id: `suspect-${n}`, timeout: 3_600, ...crashed(1) });
    await turn(30);
    expect(tasks.started).toHaveLength(4);
    tasks.open(tasks.started[0]!);
    await turn(30);
    expect(tasks.started).toHaveLength(5);
    await pass(clock, 31);
    expect(tasks.started).toHaveLength(8);
    for (const id of tasks.started) tasks.open(id);
  });

  it('gives its slot back when it is cancelled, too late or interrupted while it waits', async () => {
    const clock = manualClock();
    const tasks = gates();
    const made = await startRig({ 'test:task': tasks.handle }, { concurrency: 10, shutdownTimeout: 1_000 }, clock);
    await made.add({ id: 'long', timeout: 3_600 });
    await turn();
    await made.add({ id: 'late', timeout: 5, maxRetry: 0, ...crashed(2) });
    await made.add({ id: 'suspect', timeout: 3_600, ...crashed(2) });
    await turn();
    expect(made.server.active).toBeGreaterThan(1);
    await pass(clock, 6);
    expect(made.outcomes).toMatchObject([{ outcome: 'archived', task: { id: 'late' } }]);
    const closing = made.server.shutdown();
    await pass(clock, 10);
    tasks.open('long');
    await closing;
    expect(tasks.started).toEqual(['long']);
    expect((await made.memory.inspection.getTask('default', 'suspect'))?.state).toBe('pending');
    expect(made.server.active).toBe(0);
  });

  it('is called alone by a batch handler', async () => {
    const clock = manualClock();
    const calls: string[][] = [];
    const handle = async (all: readonly TaskContext[]) => {
      calls.push(all.map(({ id }) => id));
      return all.map(() => undefined);
    };
    const entry = { pattern: 'test:task', batch: { size: 10, wait: 1_000, handle } };
    const made = await startRig({ 'test:task': entry }, { concurrency: 10 }, clock);
    await made.add({ id: 'suspect', ...crashed(1) });
    await made.add({ id: 'a' });
    await made.add({ id: 'b' });
    await pass(clock, 3);
    await made.finished(3);
    expect(calls.map((ids) => ids.join())).toEqual(expect.arrayContaining(['suspect', 'a,b']));
  });
});

it('names this process when it is the one that was lost', async () => {
  const clock = manualClock();
  const hung = gate();
  const made = await startRig({ 'test:task': hung.handle }, {}, clock);
  await made.add({ id: 'x', maxRetry: 3 });
  await hung.entered;
  await pass(clock, 6);
  for (const call of ['exchange', 'extendLeases', 'writeServerState'] as const) made.faults.set(call, 'before');
  const other = new Server({
    broker: made.memory,
    handlers: [{ pattern: 'o', handle: () => undefined }],
    events: undefined as never,
  });
  await other.start();
  await pass(clock, 80);
  const task = await made.memory.inspection.getTask('default', 'x');
  expect(crashesOf(task?.message.headers)).toMatchObject({ count: 1, last: [{ servers: [HERE], others: 0 }] });
  const closing = other.shutdown();
  await pass(clock, 5);
  await closing;
  hung.open();
});
