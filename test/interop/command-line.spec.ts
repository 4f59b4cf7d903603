import { expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { STORED_STATES } from '../../lib/wire/states.js';
import { runInProcess } from '../support/command-line.js';
import { describeWithGo } from '../support/go.js';
import type { GoTask } from '../support/go-peer.js';
import { PAIRS, useInterop } from './fixture.js';

/** A task as our command tells it in JSON. */
interface JsonTask extends Omit<GoTask, 'lastFailedAt' | 'deadline' | 'nextProcessAt' | 'completedAt' | 'headers'> {
  readonly payloadEncoding: BufferEncoding;
  readonly resultEncoding: BufferEncoding;
  readonly headers: Record<string, string>;
  readonly lastFailedAt: string | null;
  readonly deadline: string | null;
  readonly nextProcessAt: string | null;
  readonly pendingSince: string | null;
  readonly enqueuedAt: string | null;
  readonly heldBy: string | null;
  readonly heldSince: string | null;
  readonly expiresAt: string | null;
  readonly crashes: number;
  readonly lastCrashes: readonly unknown[];
  readonly completedAt: string | null;
}

const base64 = (text: string | null, encoding: BufferEncoding): string | null =>
  text ? Buffer.from(text, encoding).toString('base64') : null;

const milliseconds = (time: string | null): number | null => (time === null ? null : Date.parse(time));

/** As Go tells it. Pending tasks are due "now", of which each side has its own. */
const asGo = ({
  payloadEncoding,
  resultEncoding,
  pendingSince: _,
  enqueuedAt: _______,
  heldBy: ___,
  heldSince: ____,
  expiresAt: __,
  crashes: _____,
  lastCrashes: ______,
  ...task
}: JsonTask): GoTask => ({
  ...task,
  payload: base64(task.payload, payloadEncoding),
  result: base64(task.result, resultEncoding),
  headers: Object.keys(task.headers).length > 0 ? task.headers : null,
  lastFailedAt: milliseconds(task.lastFailedAt),
  deadline: milliseconds(task.deadline),
  completedAt: milliseconds(task.completedAt),
  nextProcessAt: task.state === 'pending' ? null : milliseconds(task.nextProcessAt),
});

const withoutNow = (task: GoTask): GoTask => (task.state === 'pending' ? { ...task, nextProcessAt: null } : task);

/*
 * The module proxy has no github.com/hibiken/asynq/tools, so asynq's command itself cannot be built here. Its answers are those of
 * asynq's inspector, which stands in for it, and its JSON is Go's encoding of asynq's own struct.
 */
describeWithGo("Go's inspector and our command line", () => {
  const interop = useInterop();

  const run = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await runInProcess(['-u', interop.redis.url, ...args]);
    expect([status, stderr]).toEqual([0, '']);
    return stdout;
  };
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await run(...args, '--json')) as T;

  it.each(PAIRS)('tell the same of every state, enqueued by %s and run by %s', async (from, by) => {
    const { go } = interop;
    const queue = interop.queue();
    await interop.arrangeEveryState(queue, interop[from], interop[by]);
    for (const state of STORED_STATES) {
      const group = state === 'aggregating' ? 'g' : undefined;
      // Ours lists what has ended newest first, unless told otherwise.
      const place = ['-q', queue, '-s', state, '--order', 'oldest', ...(group ? ['-g', group] : [])];
      const theirs = await go.list(queue, state, group);
      const { tasks, damaged } = await json<{ tasks: JsonTask[]; damaged: unknown[] }>('task', 'list', ...place);
      expect([theirs.length, damaged]).toEqual([2, []]);
      expect(tasks.map(asGo)).toEqual(theirs.map(withoutNow));
      const rows = (await run('task', 'ls', ...place)).split('\n').slice(1, -1);
      expect(rows.map((row) => row.split(/ {2,}/).slice(0, 2))).toEqual(theirs.map(({ id, type }) => [id, type]));
      const one = await json<JsonTask>('task', 'inspect', '-q', queue, '-i', theirs[0]!.id);
      expect(asGo(one)).toEqual(withoutNow(await go.taskInfo(queue, theirs[0]!.id)));
    }
    const before = await go.queueInfoAsIs(queue);
    const { queues } = await json<{ queues: Record<string, unknown>[] }>('stats');
    const ours = queues.find(({ Queue }) => Queue === queue)!;
    const seen = await go.queueInfoAsIs(queue);
    expect(Object.keys(ours).sort()).toEqual(Object.keys(seen).sort());
    const measured = { Latency: expect.any(Number), MemoryUsage: expect.any(Number), Timestamp: expect.any(String) };
    expect(ours).toEqual({ ...seen, ...measured });
    const [least, latency, most] = [before, ours, seen].map((info) => info['Latency'] as number) as [
      number,
      number,
      number,
    ];
    expect(latency).toBeGreaterThanOrEqual(least - 1e6);
    expect(latency).toBeLessThanOrEqual(most + 1e6);
    const days = await json<object[]>('queue', 'history', queue, '-x', '3');
    expect(days).toEqual((await go.history(queue, 3)).map((day) => ({ queue, ...day })));
    const groups = (await go.groups(queue)).map(({ Group, Size }) => ({ group: Group, size: Size }));
    expect(await json('group', 'list', '-q', queue)).toEqual(groups);
    for (const { id } of await go.list(queue, 'active')) await interop[by].release(id);
  });

  it('tell the same of servers', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    await interop.serve(ours, [queue, 'other'], { concurrency: 3, behaviours: { t: [{ do: 'hold' }] } });
    const { id: held } = await go.enqueue({ type: 't', queue, payload: Buffer.from('{}') });
    await ours.event('start', { id: held });
    const server = await interop.until(async () => {
      const found = (await go.servers()).find(({ queues: served }) => queue in served);
      expect(found?.workers).toHaveLength(1);
      return found!;
    });
    const servers = await json<{ id: string; startedAt: string }[]>('server', 'list');
    const { id, host, pid, concurrency, queues: served, strictPriority, status } = server;
    const published = servers.find((one) => one.id === id)!;
    const activeWorkers = [{ taskId: held, taskType: 't', taskPayload: '{}', queue }];
    expect(published).toMatchObject({
      activeWorkers,
      id,
      host,
      pid,
      concurrency,
      queues: served,
      strictPriority,
      status,
    });
    expect(Date.parse(published.startedAt)).toBe(Math.floor(server.started));
    await ours.release(held);
  });

  it('agree about what the command line has done', async () => {
    const { go } = interop;
    const queue = interop.queue();
    const enqueue = (...flags: string[]) =>
      run('task', 'enqueue', '-t', 't', '-l', '{"é":1}', '--queue', queue, ...flags);
    await enqueue(
      '--id',
      'a',
      '--retry',
      '3',
      '--timeout',
      '90s',
      '--retention',
      '24h',
      '--deadline',
      '2100-01-01T00:00:00Z',
    );
    expect(await go.taskInfo(queue, 'a')).toMatchObject({
      type: 't',
      payload: Buffer.from('{"é":1}').toString('base64'),
      state: 'pending',
      maxRetry: 3,
      timeout: 90_000,
      retention: 86_400_000,
      deadline: Date.UTC(2100, 0),
    });
    for (const id of ['b', 'c', 'd']) await enqueue('--id', id, '--process_in', '1h');
    await enqueue('--id', 'e', '--group', 'g');
    expect((await go.taskInfo(queue, 'e')).group).toBe('g');
    await run('task', 'update-payload', '-q', queue, '-i', 'b', '-l', 'new');
    expect((await go.taskInfo(queue, 'b')).payload).toBe(Buffer.from('new').toString('base64'));
    await run('task', 'reschedule', '-q', queue, '-i', 'b', '--process_at', '2100-01-01T00:00:00Z');
    expect(await go.taskInfo(queue, 'b')).toMatchObject({ state: 'scheduled', nextProcessAt: Date.UTC(2100, 0) });
    await run('task', 'run', '-q', queue, '-i', 'b');
    await run('task', 'archive', '-q', queue, '-i', 'c');
    await run('task', 'delete', '-q', queue, '-i', 'd');
    const ids = async (state: 'pending' | 'archived') => (await go.list(queue, state)).map(({ id }) => id);
    expect([await ids('pending'), await ids('archived')]).toEqual([['a', 'b'], ['c']]);
    await run('queue', 'pause', queue);
    expect(await go.queueInfo(queue)).toMatchObject({ paused: true, size: 4 });
    await run('task', 'archiveall', '-q', queue, '-s', 'pending');
    expect((await ids('archived')).sort()).toEqual(['a', 'b', 'c']);
    await run('task', 'runall', '-q', queue, '-s', 'archived');
    await run('queue', 'resume', queue);
    await interop.serve(go, queue, { behaviours: { t: [{ do: 'ok' }] } });
    await interop.untilState(queue, 'a', 'completed');
    await interop.until(async () => expect(await go.queueInfo(queue)).toMatchObject({ processed: 3, active: 0 }));
    await run('task', 'deleteall', '-q', queue, '-s', 'completed', '--yes');
    await run('queue', 'remove', queue, '--force', '--yes');
    await expect(go.queueInfo(queue)).rejects.toThrow(`queue "${queue}" does not exist`);
  });

  it('tell the same of periodic tasks', async () => {
    const { go, redis } = interop;
    const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
    onTestFinished(() => broker.close());
    const enqueueOptions = ['Queue("low")', 'MaxRetry(3)'];
    const next = Math.ceil(Date.now() / 1000) * 1000 + 60_000;
    const entry = { id: 'daily', spec: '@daily', taskType: 't', taskPayload: Buffer.from('{}'), enqueueOptions };
    const times = { nextEnqueueTime: next, prevEnqueueTime: next - 120_000 };
    for (const scheduler of ['h:1:x', 'h:2:y'])
      await broker.scheduling.writeSchedulerEntries(scheduler, [{ ...entry, ...times }], 60);
    for (const taskId of ['t1', 't2'])
      await broker.scheduling.recordEnqueueEvent('daily', { taskId, enqueueTime: next - 120_000 });
    const seen = await go.schedulerEntries();
    expect(seen).toHaveLength(2);
    const { id, spec, type, payload, options } = seen[0]!;
    expect(await json('cron', 'list')).toEqual([
      {
        id,
        spec,
        taskType: type,
        options,
        taskPayload: '{}',
        taskPayloadEncoding: 'utf8',
        replicas: 2,
        canPause: false,
        pausedAt: null,
        nextEnqueueAt: new Date(seen[0]!.next!).toISOString(),
        prevEnqueueAt: new Date(seen[0]!.prev!).toISOString(),
      },
    ]);
    expect(payload).toBe(base64('{}', 'utf8'));
    const events = await json<{ taskId: string; enqueuedAt: string }[]>('cron', 'history', 'daily');
    const ours = events.map(({ taskId, enqueuedAt }) => ({ taskId, enqueuedAt: Date.parse(enqueuedAt) }));
    expect(ours).toEqual(await go.enqueueEvents('daily'));
  });
});
