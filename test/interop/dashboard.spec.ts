import { expect, it, onTestFinished } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { describeWithGo } from '../support/go.js';
import type { GoState, GoTask } from '../support/go-peer.js';
import { useInterop } from './fixture.js';

/* asynqmon's shapes (wire-protocol 9.3), made here of what Go's inspector says, and what the console answers, field by field. */

const ZERO = '0001-01-01T00:00:00Z';
const time = (ms: number | null): string => (ms === null ? ZERO : new Date(ms).toISOString().replace(/\.?0+Z$/, 'Z'));
const timeOrEmpty = (ms: number | null): string => (ms === null ? '' : time(ms));

function printable(base64: string | null): string {
  const bytes = Buffer.from(base64 ?? '', 'base64');
  return bytes.includes(0) ? 'non-printable bytes' : bytes.toString();
}

const base = (task: GoTask): object => ({
  id: task.id,
  type: task.type,
  payload: printable(task.payload),
  queue: task.queue,
  max_retry: task.maxRetry,
  retried: task.retried,
  error_message: task.lastErr,
});

/** What asynqmon adds for a state. */
const more: Readonly<Record<GoState, (task: GoTask) => object>> = {
  active: (task) => ({ is_orphaned: task.isOrphaned }),
  pending: () => ({}),
  scheduled: (task) => ({ next_process_at: time(task.nextProcessAt) }),
  retry: (task) => ({ next_process_at: time(task.nextProcessAt) }),
  archived: (task) => ({ last_failed_at: time(task.lastFailedAt) }),
  completed: (task) => ({ completed_at: time(task.completedAt), result: printable(task.result) }),
  aggregating: (task) => ({ group: task.group }),
};

describeWithGo("asynqmon's API over what Go has written", () => {
  const interop = useInterop();
  const start = async (): Promise<TestConsole> => {
    const { host, port } = interop.redis;
    const web = await startConsole({ access: 'destroy', refresh: '250ms' }, { asynq: { connection: { host, port } } });
    onTestFinished(() => web.close());
    return web;
  };

  it('has the fields of asynqmon, with the values of Go', async () => {
    const { go } = interop;
    const queue = interop.queue();
    await interop.arrangeEveryState(queue, go, go);
    const web = await start();
    const at = (path: string) => `queues/${queue}${path}`;
    for (const [state, added] of Object.entries(more) as [GoState, (task: GoTask) => object][]) {
      const group = state === 'aggregating' ? 'g' : undefined;
      const theirs = await go.list(queue, state, group);
      const reply = await web.get<{ tasks: object[] }>(at(group ? `/groups/g/aggregating_tasks` : `/${state}_tasks`));
      expect(reply.tasks).toHaveLength(2);
      expect(reply.tasks).toMatchObject(theirs.map((task) => ({ ...base(task), ...added(task) })));
      const one = await go.taskInfo(queue, theirs[0]!.id);
      expect(await web.get(at(`/tasks/${one.id}`))).toMatchObject({
        ...base(one),
        state,
        last_failed_at: timeOrEmpty(one.lastFailedAt),
        timeout_seconds: one.timeout / 1000,
        deadline: timeOrEmpty(one.deadline),
        completed_at: timeOrEmpty(one.completedAt),
        result: printable(one.result),
        ...(state !== 'pending' && { next_process_at: timeOrEmpty(one.nextProcessAt) }),
      });
    }
    const info = await go.queueInfo(queue);
    const { pending, active, scheduled, retry, archived, completed, aggregating, size, groups, paused } = info;
    expect((await web.get<{ current: object }>(at(''))).current).toMatchObject({
      queue,
      pending,
      active,
      scheduled,
      retry,
      archived,
      completed,
      aggregating,
      size,
      groups,
      paused,
      processed: info.processed,
      failed: info.failed,
      succeeded: info.processed - info.failed,
      latency_msec: expect.any(Number),
      display_latency: expect.stringMatching(/^[\d.]+(ms|s)$/),
      memory_usage_bytes: expect.any(Number),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect(await web.get(at('/groups'))).toMatchObject({ groups: [{ group: 'g', size: 2 }] });
    const [day] = await go.history(queue, 1);
    const { stats } = await web.get<{ stats: Record<string, object[]> }>('queue_stats');
    expect(stats[queue]![0]).toEqual({ queue, ...day, succeeded: day!.processed - day!.failed });
    expect(stats[queue]).toHaveLength(90);
    for (const { id } of await go.list(queue, 'active')) await go.release(id);
  });

  it("shows Go's servers and schedules, and runs one now", async () => {
    const { go } = interop;
    const queue = interop.queue();
    await interop.serve(go, queue, { behaviours: {} });
    const web = await start();
    await interop.until(async () => {
      const { servers } = await web.get<{ servers: { queue_priorities: object }[] }>('servers');
      const server = servers.find(({ queue_priorities }) => queue in queue_priorities);
      const fixed = { pid: go.pid, concurrency: 10, strict_priority_enabled: false, status: 'active' };
      expect(server).toMatchObject({ ...fixed, queue_priorities: { [queue]: 1 }, active_workers: [] });
    });
    const task = { type: 'cron', queue: 'cron', payload: Buffer.from('[1]'), maxRetry: 3, retention: 60_000 };
    const [entry] = await go.startScheduler('s', 'UTC', [{ spec: '@every 24h', task }]);
    const { entries } = await interop.until(async () => {
      const reply = await web.get<{ entries: object[] }>('scheduler_entries');
      expect(reply.entries).toHaveLength(1);
      return reply;
    });
    expect(entries).toMatchObject([
      { id: entry, spec: '@every 24h', task_type: 'cron', task_payload: '[1]', queue: 'cron', prev_enqueue_at: null },
    ]);
    const made = await web.api('POST', `scheduler_entries/${entry}:run`);
    const ran = JSON.parse(made.text) as { id: string };
    const seen = { queue: 'cron', type: 'cron', payload: Buffer.from('[1]').toString('base64'), maxRetry: 3 };
    expect(await go.taskInfo('cron', ran.id)).toMatchObject({ ...seen, retention: 60_000, state: 'pending' });
    await go.stopScheduler('s');
  });
});
