import { expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { PeriodicEntry } from '../../lib/inspector/periodic-entries.js';
import { describeWithGo } from '../support/go.js';
import type { GoSchedulerEntry } from '../support/go-peer.js';
import { useInterop } from './fixture.js';

/** As Go tells it; it does not tell of options it drops. */
const asGo = ({ id, spec, taskType, taskPayload, nextEnqueueAt, prevEnqueueAt }: PeriodicEntry) => ({
  id,
  spec,
  type: taskType,
  payload: taskPayload.length === 0 ? null : taskPayload.toString('base64'),
  next: nextEnqueueAt?.getTime() ?? null,
  prev: prevEnqueueAt?.getTime() ?? null,
});

const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);

describeWithGo("Go's scheduler, seen by us", () => {
  const interop = useInterop();
  let schedulers = 0;

  const inspector = (): AsynqInspector => {
    const { host, port } = interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }));
    onTestFinished(() => broker.close());
    return new AsynqInspector(broker);
  };

  async function start(location: string, entries: Parameters<typeof interop.go.startScheduler>[2]): Promise<string[]> {
    const name = `scheduler ${++schedulers}`;
    const ids = await interop.go.startScheduler(name, location, entries);
    onTestFinished(() => interop.go.stopScheduler(name));
    return ids;
  }

  it('has entries with times and options, as Go reads them', async () => {
    const deadline = Date.UTC(2050, 0, 2, 3, 4, 5);
    const all = {
      type: 'report',
      payload: Buffer.from([0, 255]),
      queue: 'low ü"',
      maxRetry: 3,
      timeout: 90_000,
      deadline,
      unique: 3_600_000,
      processIn: 5_000,
      retention: 86_400_000,
    };
    const [full] = await start('America/New_York', [
      { spec: 'CRON_TZ=Europe/Berlin 30 9 * * 1-5', task: all },
      { spec: '0 0 30 2 *', task: { type: 'never' } },
      { spec: '@daily', task: { type: 'odd', queue: 'a)b', group: 'g', taskId: 'fixed', processAt: deadline } },
    ]);
    const ours = await interop.until(async () => {
      const entries = await inspector().schedulerEntries();
      expect(entries).toHaveLength(3);
      return entries;
    });
    const theirs: GoSchedulerEntry[] = await interop.go.schedulerEntries();
    const withoutOptions = theirs.map(({ options: _, ...entry }) => entry);
    expect(ours.map(asGo).sort(byId)).toEqual(withoutOptions.sort(byId));

    const { options, taskOptions } = ours.find(({ id }) => id === full)!;
    expect(options).toEqual(theirs.find(({ id }) => id === full)!.options);
    expect(taskOptions).toEqual({
      queue: 'low ü"',
      maxRetry: 3,
      timeout: 90_000,
      deadline: new Date(deadline),
      unique: 3_600_000,
      processIn: 5_000,
      retention: 86_400_000,
    });
    const odd = ours.find(({ taskType }) => taskType === 'odd')!;
    expect(odd.options).toEqual(expect.arrayContaining(['Queue("a)b")', 'TaskID("fixed")', 'Group("g")']));
    expect(odd.taskOptions).toEqual({ processAt: new Date(deadline) });
    expect(ours.find(({ taskType }) => taskType === 'never')).toMatchObject({
      nextEnqueueAt: undefined,
      prevEnqueueAt: undefined,
      taskOptions: {},
    });
    expect(ours.map(({ replicas }) => replicas)).toEqual([1, 1, 1]);
  });

  it('has a history that we list as Go does, newest first', async () => {
    const queue = interop.queue();
    const [id] = await start('UTC', [{ spec: '@every 1s', task: { type: 'tick', queue, retention: 60_000 } }]);
    const events = await interop.until(async () => {
      const found = await inspector().schedulerEnqueueEvents(id!);
      expect(found.length).toBeGreaterThan(1);
      return found;
    });
    const theirs = await interop.go.enqueueEvents(id!);
    const told = events.map(({ taskId, enqueuedAt }) => ({ taskId, enqueuedAt: enqueuedAt.getTime() }));
    // A date holds milliseconds, and Go may have enqueued another one meanwhile.
    const known = theirs.map(({ taskId, enqueuedAt }) => ({ taskId, enqueuedAt: Math.floor(enqueuedAt) }));
    expect(known.slice(-told.length)).toEqual(told);
    expect(await inspector().getTaskInfo(queue, events[0]!.taskId)).toMatchObject({ type: 'tick', state: 'pending' });
    const [entry] = (await inspector().schedulerEntries()).filter((one) => one.id === id);
    expect(entry!.nextEnqueueAt!.getTime() - entry!.prevEnqueueAt!.getTime()).toBe(1_000);
  });
});
