import { describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../../lib/clock.js';
import {
  InvalidOptionError,
  InvalidTaskError,
  QueueNotEmptyError,
  QueueNotFoundError,
  TaskNotFoundError,
  TaskStateError,
} from '../../../lib/errors.js';
import type { BulkProgress } from '../../../lib/inspector/bulk.js';
import type { CancelOptions } from '../../../lib/inspector/cancel-options.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import type { MoveOptions } from '../../../lib/inspector/move-options.js';
import type { ListOptions } from '../../../lib/inspector/list-options.js';
import type { SearchOptions } from '../../../lib/inspector/search.js';
import { request } from '../../support/messages.js';

describe('AsynqInspector', () => {
  const now = 1_700_000_000_000;
  const setUp = async () => {
    const broker = new MemoryBroker(new ManualClock(now));
    return { broker, inspector: new AsynqInspector(broker) };
  };

  it('tells how a task stands, in each state', async () => {
    const { broker, inspector } = await setUp();
    const pending = request({ headers: { k: 'v' }, retention: 60 });
    const later = request();
    await broker.producer.enqueue('default', [pending, { ...later, processAt: now / 1000 + 90 }]);
    const info = await inspector.getTaskInfo('default', pending.message.id);
    expect(info).toMatchObject({
      state: 'pending',
      retention: 60_000,
      headers: { k: 'v' },
      nextProcessAt: new Date(now),
    });
    const scheduled = await inspector.getTaskInfo('default', later.message.id);
    expect(scheduled).toMatchObject({ state: 'scheduled', nextProcessAt: new Date(now + 90_000) });
    expect(await inspector.getTaskInfo('default', 'nobody')).toBeUndefined();
    expect(await inspector.getTaskInfo('elsewhere', pending.message.id)).toBeUndefined();
  });

  it('pauses and unpauses, telling whether it changed anything', async () => {
    const { broker, inspector } = await setUp();
    await broker.producer.enqueue('default', [request()]);
    expect(await inspector.pauseQueue('default')).toBe(true);
    expect(await inspector.pauseQueue('default')).toBe(false);
    expect((await broker.consumer.exchange('default', { settle: [], take: 1 })).tasks).toHaveLength(0);
    expect(await inspector.unpauseQueue('default')).toBe(true);
    expect(await inspector.unpauseQueue('default')).toBe(false);
    expect((await broker.consumer.exchange('default', { settle: [], take: 1 })).tasks).toHaveLength(1);
    expect(await inspector.queues()).toEqual(['default']);
  });

  it.each([
    ['', 'id'],
    ['q', ' '],
    [undefined, 'id'],
  ])('refuses blank names: %j, %j', async (queue, id) => {
    const { inspector } = await setUp();
    await expect(inspector.getTaskInfo(queue as string, id)).rejects.toThrow(InvalidOptionError);
  });

  it('gives a queue whole: its numbers, its days, its groups and its tasks', async () => {
    const { broker, inspector } = await setUp();
    await broker.producer.enqueue('default', [request({ id: 'a' }), request({ groupKey: 'g' }), request({ id: 'c' })]);
    expect(await inspector.getQueueInfo('default')).toMatchObject({
      queue: 'default',
      size: 3,
      pending: 2,
      aggregating: 1,
      groups: 1,
      paused: false,
      timestamp: new Date(now),
    });
    expect(await inspector.groups('default')).toEqual([{ group: 'g', size: 1 }]);
    expect(await inspector.history('default', 2)).toEqual([
      { queue: 'default', date: '2023-11-14', processed: 0, failed: 0 },
      { queue: 'default', date: '2023-11-13', processed: 0, failed: 0 },
    ]);
    const first = await inspector.listTasks('default', 'pending', { size: 1 });
    expect(first.tasks).toMatchObject([{ id: 'a', state: 'pending', nextProcessAt: new Date(now), isOrphaned: false }]);
    const second = await inspector.listTasks('default', 'pending', { size: 1, cursor: first.cursor });
    expect([second.tasks[0]?.id, second.cursor, second.damaged]).toEqual(['c', undefined, []]);
    expect((await inspector.listTasks('default', 'pending', { size: 1, page: 2 })).tasks[0]?.id).toBe('c');
    expect((await inspector.listTasks('default', 'aggregating', { group: 'g' })).tasks).toMatchObject([{ group: 'g' }]);
    expect([await inspector.clusterKeySlot('default'), await inspector.clusterNodes('default')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('shows servers and what they run, with dates', async () => {
    const { broker, inspector } = await setUp();
    const identity = { host: 'h', pid: 1, serverId: 's' };
    await broker.monitoring.writeServerState(
      {
        ...identity,
        concurrency: 2,
        queues: { q: 1 },
        strictPriority: false,
        status: 'active',
        startTime: now,
        activeWorkerCount: 1,
      },
      [
        {
          ...identity,
          taskId: 'a',
          taskType: 't',
          taskPayload: Buffer.alloc(0),
          queue: 'q',
          startTime: now,
          deadline: now + 1,
        },
      ],
      10,
    );
    expect(await inspector.servers()).toEqual([
      {
        id: 's',
        host: 'h',
        pid: 1,
        concurrency: 2,
        queues: { q: 1 },
        strictPriority: false,
        status: 'active',
        startedAt: new Date(now),
        activeWorkers: [
          {
            taskId: 'a',
            taskType: 't',
            taskPayload: Buffer.alloc(0),
            queue: 'q',
            startedAt: new Date(now),
            deadline: new Date(now + 1),
          },
        ],
      },
    ]);
  });

  it('says which group is missing: the option, and where the names are', async () => {
    const { inspector } = await setUp();
    const message =
      'aggregating tasks are kept by group: give the option group; ' +
      'AsynqInspector.groups(queue) returns the groups';
    for (const call of [
      () => inspector.listTasks('default', 'aggregating'),
      () => inspector.searchTasks('default', 'aggregating', { type: 'a' }),
      () => inspector.runAllTasks('default', 'aggregating'),
      () => inspector.runTask('default', 'a', { state: 'aggregating' }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'ASYNQ_INVALID_OPTION', message });
    }
  });

  it('does not know queues to which nothing was enqueued', async () => {
    const { inspector, broker } = await setUp();
    await broker.producer.enqueue('default', [request({ id: 'a' })]);
    expect([await inspector.hasQueue('nobody'), await inspector.hasQueue('default')]).toEqual([false, true]);
    for (const call of [
      () => inspector.getQueueInfo('nobody'),
      () => inspector.history('nobody', 1),
      () => inspector.groups('nobody'),
      () => inspector.listTasks('nobody', 'pending'),
    ]) {
      await expect(call()).rejects.toThrow(QueueNotFoundError);
      await expect(call()).rejects.toThrow(
        'queue not found: queue="nobody"; it has had no task yet, or its name is wrong: AsynqInspector.queues() lists the names',
      );
    }
  });

  it.each([
    ['size 0', { size: 0 }],
    ['more than 1000', { size: 1001 }],
    ['half a task', { size: 1.5 }],
    ['page 0', { page: 0 }],
    ['a page and a cursor', { page: 1, cursor: 'x' }],
    ['a cursor that is none', { cursor: 'x' }],
    ['a blank cursor', { cursor: '' }],
    ['a group where there is none', { group: 'g' }],
    ['an unknown option', { limit: 3 }],
  ])('refuses %s', async (_, options) => {
    const { broker, inspector } = await setUp();
    await broker.producer.enqueue('default', [request()]);
    await expect(inspector.listTasks('default', 'pending', options as ListOptions)).rejects.toThrow(InvalidOptionError);
  });

  it('refuses states that are none, groups without a name, and days that were not kept', async () => {
    const { broker, inspector } = await setUp();
    await broker.producer.enqueue('default', [request()]);
    await expect(inspector.listTasks('default', 'achived' as 'archived')).rejects.toThrow(/did you mean "archived"/);
    await expect(inspector.listTasks('default', 'aggregating')).rejects.toThrow(InvalidOptionError);
    await expect(inspector.deleteAllTasks('default', 'completed', { grace: 1 } as never)).rejects.toThrow(
      'unknown option of deleteAllTasks: "grace"; here it is olderThan',
    );
    for (const days of [0, -1, 92, 1.5, NaN]) {
      await expect(inspector.history('default', days)).rejects.toThrow(InvalidOptionError);
    }
  });

  describe('changes a task', () => {
    it('runs, archives, updates and deletes it', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue('default', [request({ id: 'a' }, { processAt: now / 1000 + 9 })]);
      await inspector.updateTaskPayload('default', 'a', { n: 2 });
      expect((await inspector.getTaskInfo('default', 'a'))?.payload.toString()).toBe('{"n":2}');
      await inspector.updateTaskPayload('default', 'a', undefined);
      expect((await inspector.getTaskInfo('default', 'a'))?.payload).toHaveLength(0);
      await inspector.archiveTask('default', 'a');
      expect((await inspector.getTaskInfo('default', 'a'))?.state).toBe('archived');
      await inspector.runTask('default', 'a');
      expect((await inspector.getTaskInfo('default', 'a'))?.state).toBe('pending');
      await inspector.deleteTask('default', 'a');
      expect(await inspector.getTaskInfo('default', 'a')).toBeUndefined();
    });

    it("refuses in asynq's words what its state does not allow", async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue(
        'default',
        ['active', 'pending'].map((id) => request({ id })),
      );
      await broker.consumer.exchange('default', { settle: [], take: 1 });
      await broker.producer.enqueue('default', [request({ id: 'old' })]);
      await inspector.archiveTask('default', 'old');
      const refusals: [Promise<void>, string][] = [
        [inspector.runTask('default', 'active'), 'task is already running'],
        [inspector.runTask('default', 'pending'), 'task is already in pending state'],
        [inspector.archiveTask('default', 'active'), 'cannot archive task in active state'],
        [inspector.archiveTask('default', 'old'), 'task is already archived: id=old, queue=default'],
        [inspector.deleteTask('default', 'active'), 'cannot delete task in active state'],
        [inspector.updateTaskPayload('default', 'active', 1), 'the payload of task "active" cannot be changed now'],
        [inspector.rescheduleTask('default', 'active', '1m'), 'cannot reschedule task in active state'],
        [inspector.rescheduleTask('default', 'old', '1m', { state: 'retry' }), 'is not in state retry any more'],
      ];
      for (const [call, text] of refusals) {
        const error = await call.catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(TaskStateError);
        expect((error as Error).message).toContain(text);
      }
    });

    it('has a task run at a Date, or so long from now, in whole seconds and never too early', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue('default', [request({ id: 'a' })]);
      const due = async (): Promise<number> => (await inspector.getTaskInfo('default', 'a'))!.nextProcessAt!.getTime();
      await inspector.rescheduleTask('default', 'a', new Date(now + 60_500));
      expect(await due()).toBe(Math.ceil((now + 60_500) / 1000) * 1000);
      await inspector.rescheduleTask('default', 'a', '1m');
      expect(await due()).toBe(Math.ceil((now + 60_000) / 1000) * 1000);
      for (const wrong of [new Date(NaN), new Date(-1), 'soon', undefined, null]) {
        await expect(inspector.rescheduleTask('default', 'a', wrong as Date)).rejects.toThrow(InvalidOptionError);
      }
    });

    it('tells nothing of Redis where there is none', async () => {
      expect(await (await setUp()).inspector.redisInfo()).toBeUndefined();
    });

    it('knows neither tasks nor queues that are not there, nor payloads that cannot be stored', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue('default', [request({ id: 'a' })]);
      for (const method of ['runTask', 'archiveTask', 'deleteTask'] as const) {
        await expect(inspector[method]('default', 'x')).rejects.toThrow(TaskNotFoundError);
        await expect(inspector[method]('nobody', 'a')).rejects.toThrow(QueueNotFoundError);
        await expect(inspector[method]('default', ' ')).rejects.toThrow(InvalidOptionError);
      }
      await expect(inspector.updateTaskPayload('default', 'x', 1)).rejects.toThrow(TaskNotFoundError);
      await expect(inspector.rescheduleTask('default', 'x', 1)).rejects.toThrow(TaskNotFoundError);
      await expect(inspector.rescheduleTask('nobody', 'x', 1)).rejects.toThrow(QueueNotFoundError);
      await expect(inspector.updateTaskPayload('default', 'a', 1n)).rejects.toThrow(InvalidTaskError);
    });
  });

  describe('changes all tasks of a state', () => {
    it('moves what is there, in steps, and tells how far it is', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue(
        'default',
        Array.from({ length: 1_300 }, () => request()),
      );
      const progress: BulkProgress[] = [];
      const onProgress = (step: BulkProgress): number => progress.push(step);
      expect(await inspector.archiveAllTasks('default', 'pending', { onProgress })).toEqual({
        moved: 1_300,
        skipped: 0,
      });
      expect(progress.map(({ done }) => done)).toEqual([200, 400, 600, 800, 1000, 1200, 1300]);
      expect(new Set(progress.map(({ total }) => total))).toEqual(new Set([1_300]));
      expect(await inspector.runAllTasks('default', 'archived')).toEqual({ moved: 1_300, skipped: 0 });
      expect(await inspector.deleteAllTasks('default', 'pending')).toEqual({ moved: 1_300, skipped: 0 });
      expect(await inspector.deleteAllTasks('default', 'pending')).toEqual({ moved: 0, skipped: 0 });
      expect((await inspector.getQueueInfo('default')).size).toBe(0);
    });

    it('does not touch what comes after it has begun, nor what has left the state', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue(
        'default',
        Array.from({ length: 250 }, () => request()),
      );
      let late = 0;
      const onProgress = (): void => {
        if (late++ > 0) return;
        void broker.producer.enqueue('default', [request({ id: 'late' })]);
        void broker.consumer.exchange('default', { settle: [], take: 10 });
      };
      expect(await inspector.deleteAllTasks('default', 'pending', { onProgress })).toEqual({ moved: 240, skipped: 10 });
      expect((await inspector.listTasks('default', 'pending')).tasks.map(({ id }) => id)).toEqual(['late']);
    });

    it('moves the tasks of one group', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue('default', [request({ groupKey: 'g' }), request({ groupKey: 'h' })]);
      expect(await inspector.runAllTasks('default', 'aggregating', { group: 'g' })).toEqual({ moved: 1, skipped: 0 });
      expect(await inspector.groups('default')).toEqual([{ group: 'h', size: 1 }]);
    });

    it('stops between two steps when it is called off', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue(
        'default',
        Array.from({ length: 500 }, () => request()),
      );
      const controller = new AbortController();
      const reason = new Error('enough');
      const onProgress = (): void => controller.abort(reason);
      const call = inspector.deleteAllTasks('default', 'pending', { onProgress, signal: controller.signal });
      await expect(call).rejects.toBe(reason);
      expect((await inspector.getQueueInfo('default')).pending).toBe(300);
    });

    it('acts only where the task was seen, when somebody says where', async () => {
      const { broker, inspector } = await setUp();
      const later = { processAt: now / 1000 + 60 };
      await broker.producer.enqueue('default', [
        { ...request({ id: 's' }), ...later },
        { ...request({ id: 't' }), ...later },
        request({ id: 'g', groupKey: 'g' }),
      ]);
      for (const method of ['runTask', 'archiveTask', 'deleteTask'] as const) {
        const error = await inspector[method]('default', 's', { state: 'retry' }).catch((reason: Error) => reason);
        expect(error).toBeInstanceOf(TaskStateError);
        expect((error as Error).message).toBe('task "s" is not in state retry any more');
        await expect(inspector[method]('default', 'g', { state: 'aggregating', group: 'h' })).rejects.toThrow(
          'task "g" is not in group "h" any more',
        );
        await expect(inspector[method]('default', 'nobody', { state: 'retry' })).rejects.toBeInstanceOf(
          TaskNotFoundError,
        );
        for (const options of [
          { state: 'active' },
          { group: 'g' },
          { state: 'retired' },
          { states: 'retry' },
          { state: 'aggregating' },
        ]) {
          await expect(inspector[method]('default', 's', options as MoveOptions)).rejects.toBeInstanceOf(
            InvalidOptionError,
          );
        }
      }
      expect(await inspector.getQueueInfo('default')).toMatchObject({ scheduled: 2, aggregating: 1 });
      await inspector.runTask('default', 's', { state: 'scheduled' });
      await inspector.archiveTask('default', 't', { state: 'scheduled' });
      await inspector.deleteTask('default', 'g', { state: 'aggregating', group: 'g' });
      expect(await inspector.getQueueInfo('default')).toMatchObject({ pending: 1, archived: 1, size: 2 });
    });

    it('refuses what makes no sense', async () => {
      const { broker, inspector } = await setUp();
      await broker.producer.enqueue('default', [request()]);
      const calls = [
        inspector.runAllTasks('default', 'pending'),
        inspector.archiveAllTasks('default', 'archived'),
        inspector.deleteAllTasks('default', 'active' as 'pending'),
        inspector.deleteAllTasks('default', 'aggregating'),
        inspector.deleteAllTasks('default', 'pending', { group: 'g' }),
        inspector.deleteAllTasks('default', 'pending', { progress: 1 } as object),
        inspector.deleteAllTasks('default', 'pending', { signal: {} as AbortSignal }),
        inspector.deleteQueue('default', { force: 'yes' as unknown as boolean }),
      ];
      for (const call of calls) await expect(call).rejects.toThrow(InvalidOptionError);
      await expect(inspector.deleteAllTasks('nobody', 'pending')).rejects.toThrow(QueueNotFoundError);
    });
  });

  it('deletes a queue, but not one with tasks unless forced, nor one with active tasks', async () => {
    const { broker, inspector } = await setUp();
    await expect(inspector.deleteQueue('default')).rejects.toThrow(QueueNotFoundError);
    await broker.producer.enqueue('default', [request()]);
    await expect(inspector.deleteQueue('default')).rejects.toThrow(/queue is not empty: queue="default"/);
    await broker.producer.enqueue('busy', [request()]);
    await broker.consumer.exchange('busy', { settle: [], take: 1 });
    await expect(inspector.deleteQueue('busy', { force: true })).rejects.toThrow(QueueNotEmptyError);
    const progress: number[] = [];
    await inspector.deleteQueue('default', { force: true, onProgress: (deleted) => progress.push(deleted) });
    expect([await inspector.queues(), progress]).toEqual([['busy'], [1]]);
  });

  it('deletes a queue that keeps a batch only when it is forced, and leaves it in the list', async () => {
    const { broker, inspector } = await setUp();
    const batch = { id: 'batch-1', name: 'b', callbacks: {}, closeBy: now / 1000 + 60, retention: 60 };
    await broker.batches.open('default', batch);
    await expect(inspector.deleteQueue('default')).rejects.toThrow(
      /queue keeps workflows or batches: queue="default"; delete them first/,
    );
    await inspector.deleteQueue('default', { force: true });
    expect(await inspector.queues()).toEqual(['default']);
    expect(await inspector.getBatch('default', 'batch-1')).toMatchObject({ state: 'open' });
  });

  it('shows periodic tasks and what became of them', async () => {
    const { broker, inspector } = await setUp();
    const entry = {
      id: 'e',
      spec: '@daily',
      taskType: 't',
      taskPayload: Buffer.alloc(0),
      enqueueOptions: ['Queue("q")'],
    };
    await broker.scheduling.writeSchedulerEntries(
      'h:1:x',
      [{ ...entry, nextEnqueueTime: now + 5, prevEnqueueTime: undefined }],
      20,
    );
    for (const [index, taskId] of ['a', 'b', 'c'].entries()) {
      await broker.scheduling.recordEnqueueEvent('e', { taskId, enqueueTime: now + index });
    }
    expect(await inspector.schedulerEntries()).toEqual([
      {
        id: 'e',
        spec: '@daily',
        taskType: 't',
        taskPayload: Buffer.alloc(0),
        options: ['Queue("q")'],
        taskOptions: { queue: 'q' },
        nextEnqueueAt: new Date(now + 5),
        prevEnqueueAt: undefined,
        replicas: 1,
        canPause: false,
        pausedAt: undefined,
      },
    ]);
    expect(await inspector.schedulerEnqueueEvents('e', { size: 2 })).toEqual([
      { taskId: 'c', enqueuedAt: new Date(now + 2) },
      { taskId: 'b', enqueuedAt: new Date(now + 1) },
    ]);
    expect(await inspector.schedulerEnqueueEvents('e', { size: 2, page: 2 })).toHaveLength(1);
    await expect(inspector.schedulerEnqueueEvents('e', { size: 0 })).rejects.toThrow(InvalidOptionError);
    await expect(inspector.schedulerEnqueueEvents('')).rejects.toThrow(InvalidOptionError);
  });

  it('shows a periodic task once that several processes have, as the one has it that got furthest', async () => {
    const { broker, inspector } = await setUp();
    const common = { id: 'e', spec: '@every 1h', taskType: 't', taskPayload: Buffer.from('p'), enqueueOptions: [] };
    const at = (hours: number): number => now + hours * 3_600_000;
    const times = [
      { nextEnqueueTime: at(2), prevEnqueueTime: at(1) },
      { nextEnqueueTime: at(3), prevEnqueueTime: at(2) },
      { nextEnqueueTime: at(1), prevEnqueueTime: undefined },
    ];
    for (const [index, time] of times.entries()) {
      await broker.scheduling.writeSchedulerEntries(`h:${index}:x`, [{ ...common, ...time }], 20);
    }
    // Another deployment has another spec for the id: that is another entry.
    await broker.scheduling.writeSchedulerEntries('h:9:x', [{ ...common, spec: '@every 2h', ...times[2]! }], 20);
    expect(await inspector.schedulerEntries()).toMatchObject([
      { id: 'e', spec: '@every 1h', replicas: 3, nextEnqueueAt: new Date(at(3)), prevEnqueueAt: new Date(at(2)) },
      { id: 'e', spec: '@every 2h', replicas: 1, nextEnqueueAt: new Date(at(1)), prevEnqueueAt: undefined },
    ]);
  });

  it('reads the options of a periodic task', async () => {
    const { broker, inspector } = await setUp();
    const enqueueOptions = [
      'Queue("a")',
      'Queue("b")',
      'ProcessIn(5s)',
      'ProcessAt(Tue Jan  2 03:04:05 UTC 2024)',
      'Group("g")',
      'Header(["k","v"])',
      'Header(["l","w"])',
      'Header(["k","last"])',
      'Timeout(1m30s)',
      'Unheard(1)',
      'broken',
    ];
    const entry = { id: 'e', spec: '@daily', taskType: 't', taskPayload: Buffer.alloc(0), enqueueOptions };
    const never = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
    await broker.scheduling.writeSchedulerEntries('h:1:x', [{ ...entry, ...never }], 20);
    const [{ options, taskOptions } = { options: [] }] = await inspector.schedulerEntries();
    expect(options).toEqual(enqueueOptions);
    expect(taskOptions).toEqual({
      queue: 'b',
      timeout: 90_000,
      headers: {
        k: 'last',
        l: 'w',
      },
      processAt: new Date(Date.UTC(2024, 0, 2, 3, 4, 5)),
      processIn: undefined,
    });
  });

  it('asks for a task to be cancelled', async () => {
    const { broker, inspector } = await setUp();
    const cancelled: string[] = [];
    await broker.cancellation.subscribeCancellations((id) => cancelled.push(id));
    await inspector.cancelProcessing('a');
    expect(cancelled).toEqual(['a']);
    expect(await broker.cancellation.findCancellations(['a'])).toMatchObject([{ outcome: 'retry', reason: undefined }]);
    await inspector.cancelProcessing('a', { reason: 'r', outcome: 'delete' });
    expect(await broker.cancellation.findCancellations(['a'])).toMatchObject([{ outcome: 'delete', reason: 'r' }]);
    await expect(inspector.cancelProcessing(' ')).rejects.toThrow(InvalidOptionError);
  });

  it('has recorded what is to become of a task when the message is heard', async () => {
    const { broker, inspector } = await setUp();
    const recorded = new Promise((resolve) => {
      void broker.cancellation.subscribeCancellations((id) => resolve(broker.cancellation.findCancellations([id])));
    });
    await inspector.cancelProcessing('a', { outcome: 'archive' });
    expect(await recorded).toMatchObject([{ id: 'a', outcome: 'archive' }]);
  });

  it.each([
    [{ reason: ' ' }, /reason must contain/],
    [{ reason: 'x'.repeat(1_001) }, /reason has 1001 characters; at most 1000 are allowed/],
    [{ outcome: 'archived' }, /outcome is "archived"; did you mean "archive"\?/],
    [{ outcome: 7 }, /outcome is 7; it must be one of retry, archive, delete/],
    [{ why: 'r' }, /unknown option of cancelProcessing "why"; known are reason, outcome/],
    [null, /the options of cancelProcessing must be an object/],
  ])('refuses to cancel with %o, before anything is sent', async (options, problem) => {
    const { broker, inspector } = await setUp();
    const cancelled: string[] = [];
    await broker.cancellation.subscribeCancellations((id) => cancelled.push(id));
    await expect(inspector.cancelProcessing('a', options as CancelOptions)).rejects.toThrow(problem);
    expect(cancelled).toEqual([]);
    expect(await broker.cancellation.findCancellations(['a'])).toEqual([]);
  });

  describe('searches', () => {
    const searchable = async () => {
      const { broker, inspector } = await setUp();
      const fields = [
        { id: 'u-1', type: 'email:welcome', payload: Buffer.from('{"user":1}'), errorMsg: 'connect ECONNREFUSED' },
        { id: 'u-2', type: 'email:bye', payload: Buffer.from('{"user":"ü"}'), errorMsg: 'timeout' },
        { id: 'v-1', type: 'img:resize', payload: Buffer.from([0, 255]), errorMsg: '' },
      ];
      await broker.producer.enqueue(
        'default',
        fields.map((partial) => request(partial)),
      );
      return inspector;
    };

    it.each<[SearchOptions, string[]]>([
      [{ type: 'email:' }, ['u-1', 'u-2']],
      [{ id: 'u-' }, ['u-1', 'u-2']],
      [{ payload: '"ü"' }, ['u-2']],
      [{ error: 'ECONN' }, ['u-1']],
      [{ id: 'u-', error: 'timeout' }, ['u-2']],
      [{ type: 'mail' }, []],
    ])('for %j', async (options, expected) => {
      const { tasks, scanned, cursor } = await (await searchable()).searchTasks('default', 'pending', options);
      expect([tasks.map(({ id }) => id), scanned, cursor]).toEqual([expected, 3, undefined]);
    });

    it('looks at so many tasks at most, and goes on from there', async () => {
      const inspector = await searchable();
      const first = await inspector.searchTasks('default', 'pending', { id: 'v', scan: 2 });
      expect(first).toMatchObject({ tasks: [], scanned: 2, cursor: expect.any(String) });
      const second = await inspector.searchTasks('default', 'pending', { id: 'v', scan: 2, cursor: first.cursor });
      expect(second).toMatchObject({ tasks: [{ id: 'v-1' }], scanned: 1, cursor: undefined });
    });

    it.each(['big', 'nobody'])('looks at fewer when they are large, whether they fit or not: %s', async (type) => {
      const { broker, inspector } = await setUp();
      const payload = Buffer.alloc(20_000);
      const tasks = Array.from({ length: 1_600 }, (_, index) => request({ id: `t${index}`, type: 'big', payload }));
      await broker.producer.enqueue('default', tasks);
      const { scanned, cursor } = await inspector.searchTasks('default', 'pending', { type, scan: 10_000 });
      expect([scanned, cursor]).toEqual([1_000, expect.any(String)]); // 20 MB, in steps of 10
    });

    it.each([
      [{}],
      [{ type: '' }],
      [{ type: 'a', scan: 0 }],
      [{ type: 'a', scan: 10_001 }],
      [{ text: 'a' }],
      [{ id: 'a', cursor: 'x' }],
    ])('refuses %j', async (options) => {
      const inspector = await searchable();
      await expect(inspector.searchTasks('default', 'pending', options as SearchOptions)).rejects.toThrow(
        InvalidOptionError,
      );
    });
  });
});
