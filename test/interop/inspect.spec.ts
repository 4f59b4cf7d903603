import { expect, it, onTestFinished } from 'vitest';

import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { TaskInfo } from '../../lib/task/info.js';
import { STORED_STATES, type StoredState } from '../../lib/wire/states.js';
import { describeWithGo } from '../support/go.js';
import type { GoQueue, GoTask } from '../support/go-peer.js';
import { PAIRS, useInterop } from './fixture.js';

/** As Go tells it, which does not say since when a task waits. Pending tasks are due "now", of which each side has its own; so is memory measured. */
const asGo = ({ pendingSince: _, ...task }: TaskInfo): GoTask => ({
  ...task,
  state: task.state as StoredState,
  payload: task.payload.length === 0 ? null : task.payload.toString('base64'),
  headers: Object.keys(task.headers).length === 0 ? null : { ...task.headers },
  lastFailedAt: task.lastFailedAt?.getTime() ?? null,
  deadline: task.deadline?.getTime() ?? null,
  nextProcessAt: task.state === 'pending' ? null : (task.nextProcessAt?.getTime() ?? null),
  completedAt: task.completedAt?.getTime() ?? null,
  result: task.result?.toString('base64') ?? null,
});

const withoutNow = (task: GoTask): GoTask => ({
  ...task,
  nextProcessAt: task.state === 'pending' ? null : task.nextProcessAt,
});

describeWithGo("Go's inspector and ours", () => {
  const interop = useInterop();
  const inspector = (): AsynqInspector => {
    const { host, port } = interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }));
    onTestFinished(() => broker.close());
    return new AsynqInspector(broker);
  };

  it.each(PAIRS)('tell the same of every state, enqueued by %s and run by %s', async (from, by) => {
    const queue = interop.queue();
    await interop.arrangeEveryState(queue, interop[from], interop[by]);
    const ours = inspector();
    for (const state of STORED_STATES) {
      const group = state === 'aggregating' ? 'g' : undefined;
      const { tasks, damaged } = await ours.listTasks(queue, state, { group });
      const theirs = await interop.go.list(queue, state, group);
      expect([theirs.length, damaged]).toEqual([2, []]);
      expect(tasks.map(asGo)).toEqual(theirs.map(withoutNow));
      const one = await ours.getTaskInfo(queue, theirs[0]!.id);
      expect(asGo(one!)).toEqual(withoutNow(await interop.go.taskInfo(queue, theirs[0]!.id)));
    }
    const { latency: least } = await interop.go.queueInfo(queue);
    const { timestamp, queue: name, waiting: _waiting, held, oldestHeld, ...info } = await ours.getQueueInfo(queue);
    const seen = await interop.go.queueInfo(queue);
    const rounded = ({ latency: _, memoryUsage: __, ...rest }: GoQueue): object => rest;
    expect([held, oldestHeld]).toEqual([0, 0]);
    expect(rounded(info)).toEqual(rounded(seen));
    expect(info.latency).toBeGreaterThanOrEqual(least - 1);
    expect(info.latency).toBeLessThanOrEqual(seen.latency + 1);
    expect(Math.abs(info.memoryUsage / seen.memoryUsage - 1)).toBeLessThan(0.2);
    expect([name, timestamp]).toEqual([queue, expect.any(Date)]);
    const days = (await ours.history(queue, 3)).map(({ date, processed, failed }) => ({ date, processed, failed }));
    expect(days).toEqual(await interop.go.history(queue, 3));
    const published = await interop.until(async () => {
      const servers = (await ours.servers()).filter(({ queues }) => queue in queues);
      expect(servers.map(({ activeWorkers }) => activeWorkers.length)).toEqual([2]);
      return servers[0]!;
    });
    const server = (await interop.go.servers()).find(({ queues }) => queue in queues)!;
    expect(published).toMatchObject({ id: server.id, host: server.host, pid: server.pid, queues: server.queues });
    const ids = published.activeWorkers.map(({ taskId }) => taskId);
    expect(ids.sort()).toEqual(server.workers.map(({ taskId }) => taskId).sort());
    for (const id of ids) await interop[by].release(id);
  });

  it('can both go on with what the other has moved', async () => {
    const { go } = interop;
    const queue = interop.queue();
    const ours = inspector();
    const add = async (): Promise<string> => (await go.enqueue({ type: 't', queue, processIn: 3_600_000 })).id;
    const [a, b, c] = [await add(), await add(), await add()];
    await ours.updateTaskPayload(queue, a, Buffer.from('new'));
    expect((await go.taskInfo(queue, a)).payload).toBe(Buffer.from('new').toString('base64'));
    await ours.archiveTask(queue, a);
    await go.archiveTask(queue, b);
    expect((await ours.listTasks(queue, 'archived')).tasks.map(({ id }) => id).sort()).toEqual([a, b].sort());
    await go.runTask(queue, a);
    await ours.runTask(queue, b);
    expect((await go.list(queue, 'pending')).map(({ id }) => id)).toEqual([a, b]);
    await ours.deleteTask(queue, c);
    await expect(go.taskInfo(queue, c)).rejects.toMatchObject({ kind: 'task not found' });
    await expect(go.deleteTask(queue, b)).resolves.toBeNull();
    expect(await ours.archiveAllTasks(queue, 'pending')).toEqual({ moved: 1, skipped: 0 });
    expect(await ours.runAllTasks(queue, 'archived')).toEqual({ moved: 1, skipped: 0 });
    await interop.serve(go, queue, { behaviours: { t: [{ do: 'ok' }] } });
    await interop.untilGone(queue, a);
  });

  it("leave nothing of each other's queue", async () => {
    const { go, ours: peer } = interop;
    const queue = interop.queue();
    await interop.arrangeEveryState(queue, go, peer);
    const ours = inspector();
    await expect(ours.deleteQueue(queue, { force: true })).rejects.toThrow(/active tasks/);
    await go.unpause(queue);
    for (const { id } of await go.list(queue, 'active')) await peer.release(id);
    await interop.until(async () => expect(await go.queueInfo(queue)).toMatchObject({ active: 0, pending: 0 }));
    await ours.deleteQueue(queue, { force: true });
    expect(await interop.raw.keys(`asynq:{${queue}}:*`)).toEqual([]);
    await expect(go.queueInfo(queue)).rejects.toThrow(`queue "${queue}" does not exist`);
  });
});
