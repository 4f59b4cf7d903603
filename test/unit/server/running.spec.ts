import { afterEach, describe, expect, it, vi } from 'vitest';
import { DeadlineExceededError, LeaseExpiredError, ShutdownError, TaskCanceledError } from '../../../lib/errors.js';
import { closeRigs, gate, manualClock, rig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

describe('a running server', () => {
  it('wakes at once when a task arrives, without polling', async () => {
    const { add, finished, outcomes } = await startRig({ t: () => 'ok' }, { taskCheckInterval: '1h' });
    await turn();
    await add({ type: 't' });
    await finished(1);
    expect(outcomes[0]?.outcome).toBe('done');
  });

  it('runs every task of a burst once, with at most `concurrency` at a time', async () => {
    let running = 0;
    let most = 0;
    const seen = new Set<string>();
    const { add, finished } = await startRig(
      {
        t: async (task) => {
          most = Math.max(most, ++running);
          seen.add(task.id);
          await turn(1);
          running -= 1;
        },
      },
      { concurrency: 7, queues: { a: 5, b: 1 } },
    );
    await Promise.all(Array.from({ length: 500 }, (_, n) => add({ type: 't', queue: n % 2 ? 'a' : 'b' })));
    await finished(500);
    expect(seen.size).toBe(500);
    expect(most).toBe(7);
  });

  it('starts scheduled and retried tasks when they are due, not at the next interval', async () => {
    const clock = manualClock();
    const { add, outcomes } = await startRig({ t: () => undefined }, { delayedTaskCheckInterval: '1h' }, clock);
    clock.advance(0);
    await turn();
    await add({ type: 't' }, { processAt: clock.now() / 1000 + 3 });
    await turn();
    clock.advance(100); // a notice reports the new score to the forwarder
    await turn();
    clock.advance(2_899);
    await turn();
    expect(outcomes).toHaveLength(0);
    clock.advance(1);
    await turn();
    expect(outcomes).toHaveLength(1);
  });

  it('stops when a queue is paused and goes on when it is resumed, without polling', async () => {
    const { add, memory, finished, outcomes } = await startRig({ t: () => undefined }, { taskCheckInterval: '1h' });
    await memory.administration.pauseQueue('default');
    await add({ type: 't' });
    await turn(20);
    expect(outcomes).toHaveLength(0);
    await memory.administration.resumeQueue('default');
    await finished(1);
  });

  it('ends an attempt at its deadline, writes the retry at once, and keeps the slot until the handler settles', async () => {
    const clock = manualClock();
    const held = gate();
    const { add, server, memory, outcomes, events } = await startRig({ t: held.handle }, { concurrency: 1 }, clock);
    clock.advance(0);
    const { id } = await add({ type: 't', timeout: 30 });
    const task = await held.entered;
    let reason: unknown;
    task.signal.addEventListener('abort', () => (reason = task.signal.reason));
    clock.advance(30_000);
    await turn();
    expect(reason).toBeInstanceOf(DeadlineExceededError);
    expect(outcomes[0]).toMatchObject({ outcome: 'retry' });
    expect((await memory.inspection.getTask('default', id))?.message.errorMsg).toBe('context deadline exceeded');
    expect(server.active).toBe(1);
    clock.advance(10_000);
    expect(events.filter(({ name }) => name === 'handlerStuck')).toHaveLength(1);
    held.open('too late');
    await turn();
    expect(server.active).toBe(0);
    expect(outcomes).toHaveLength(1);
  });

  it('applies a timeout beyond the 24.8 days of a Node timer', async () => {
    const clock = manualClock();
    const held = gate();
    const { add, outcomes } = await startRig({ t: held.handle }, {}, clock);
    clock.advance(0);
    await add({ type: 't', timeout: 40 * 86_400 });
    const task = await held.entered;
    expect(task.deadline.getTime()).toBe(clock.now() + 40 * 86_400_000);
    expect(task.signal.aborted).toBe(false);
    held.open();
    await turn();
    expect(outcomes[0]?.outcome).toBe('done');
  });

  it('treats a cancellation by id as an ordinary failure', async () => {
    const held = gate();
    const clock = manualClock();
    const { add, memory, finished, outcomes } = await startRig({ t: held.handle }, {}, clock);
    clock.advance(0);
    await turn();
    const { id } = await add({ type: 't' });
    const task = await held.entered;
    await memory.cancellation.publishCancellation(id);
    clock.advance(0);
    await finished(1);
    expect(task.signal.reason).toBeInstanceOf(TaskCanceledError);
    expect(outcomes[0]).toMatchObject({ outcome: 'retry' });
    expect((await memory.inspection.getTask('default', id))?.message).toMatchObject({
      retried: 1,
      errorMsg: 'context canceled',
    });
    held.open();
  });

  it('extends the lease of a long task; a late result changes nothing once the lease is lost', async () => {
    const clock = manualClock();
    const held = gate();
    const { add, memory, outcomes } = await startRig({ t: held.handle }, {}, clock);
    clock.advance(0);
    const { id } = await add({ type: 't', retention: 60 });
    const task = await held.entered;
    for (let second = 0; second < 180; second += 5) {
      clock.advance(5_000);
      await turn(3);
    }
    expect((await memory.inspection.getTask('default', id))?.state).toBe('active');
    expect(outcomes).toHaveLength(0);
    const lease = (await memory.maintenance.listExpiredLeases('default', clock.now() / 1000 + 3_600, 10)).tasks[0]!
      .lease;
    await memory.consumer.exchange('default', { settle: [{ kind: 'requeue', lease }], take: 0 }); // another server took it
    await memory.administration.pauseQueue('default');
    for (let second = 0; second < 30; second += 5) {
      clock.advance(5_000);
      await turn(3);
    }
    expect(task.signal.reason).toBeInstanceOf(LeaseExpiredError);
    expect(outcomes.at(-1)?.outcome).toBe('lost');
    held.open('late');
    await turn();
    expect(await memory.inspection.getTask('default', id)).toMatchObject({ state: 'pending', result: undefined });
  });

  it('changes concurrency and queues while it runs', async () => {
    let running = 0;
    let most = 0;
    const { add, server, finished } = await startRig(
      {
        t: async () => {
          most = Math.max(most, ++running);
          await turn(2);
          running -= 1;
        },
      },
      { concurrency: 1 },
    );
    server.setConcurrency(4);
    await Promise.all(Array.from({ length: 40 }, () => add({ type: 't' })));
    await finished(40);
    expect(most).toBe(4);
    await add({ type: 't', queue: 'late' });
    server.addQueue('late', 3);
    await finished(41);
    server.removeQueue('late');
    expect(() => server.removeQueue('late')).toThrow(/cannot remove queue "late".*it serves default/);
    await add({ type: 't', queue: 'late' });
    await add({ type: 't' });
    await finished(42);
    expect(() => server.setConcurrency(0)).toThrow(/concurrency must be a whole number/);
    expect(() => server.addQueue(' ')).toThrow(/queue name/);
  });

  it('pauses and resumes fetching; what runs goes on', async () => {
    const held = gate();
    const { add, server, finished, outcomes } = await startRig({ t: held.handle, u: () => undefined });
    await add({ type: 't' });
    await held.entered;
    server.pauseFetching();
    await add({ type: 'u' });
    held.open();
    await finished(1);
    await turn(20);
    expect(outcomes).toHaveLength(1);
    server.resumeFetching();
    await finished(2);
  });

  it('publishes itself and its running tasks, and withdraws at shutdown', async () => {
    const held = gate();
    const clock = manualClock();
    const options = { concurrency: 3, queues: { default: 2 } };
    const { add, server, memory } = await startRig({ t: held.handle }, options, clock);
    clock.advance(0);
    await add({ type: 't' });
    await held.entered;
    server.setConcurrency(5); // publishes
    clock.advance(0);
    await turn();
    const [published] = await memory.publications.servers();
    expect(published?.info).toMatchObject({
      concurrency: 5,
      queues: { default: 2 },
      status: 'active',
      activeWorkerCount: 1,
    });
    expect(published?.workers[0]).toMatchObject({ taskType: 't', queue: 'default' });
    held.open();
    await turn();
    await server.shutdown();
    expect(await memory.publications.servers()).toHaveLength(0);
  });
});

describe('a server driven by hand', () => {
  it('runs a task of a queue it does not serve, and does not serve that queue afterwards', async () => {
    const { add, server, memory } = rig({ t: () => undefined });
    await add({ type: 't', queue: 'elsewhere' });
    const { tasks } = await memory.consumer.exchange('elsewhere', { settle: [], take: 1 });
    expect(await server.byHand.work(tasks[0]!)).toMatchObject({ outcome: 'done', task: { queue: 'elsewhere' } });
    await add({ type: 't', queue: 'elsewhere' });
    expect(await server.runOnce()).toEqual([]);
  });
});

describe('shutdown', () => {
  it('waits for running tasks and settles them', async () => {
    const held = gate();
    const { add, server, finished, outcomes } = await startRig({ t: held.handle });
    await add({ type: 't' });
    await held.entered;
    const closing = server.shutdown();
    held.open();
    await closing;
    await finished(1);
    expect(outcomes[0]?.outcome).toBe('done');
    expect(server.status).toBe('closed');
  });

  it('asks the rest to stop after the timeout, and puts them back to the front without counting the attempt', async () => {
    const { add, server, memory, outcomes, events, next } = await startRig(
      {
        t: (task) =>
          new Promise((_, reject) =>
            task.signal.addEventListener('abort', () => reject(task.signal.reason as ShutdownError)),
          ),
      },
      { concurrency: 1, shutdownTimeout: '30ms' },
    );
    const begun = next('taskStarted');
    const { id } = await add({ type: 't' });
    const second = await add({ type: 't' });
    await begun;
    await server.shutdown();
    expect(events.map(({ name }) => name)).toContain('shutdownTimedOut');
    expect(outcomes).toHaveLength(1);
    expect(outcomes[0]).toMatchObject({ outcome: 'requeued', task: { id } });
    const left = await memory.consumer.exchange('default', { settle: [], take: 2 });
    expect(left.tasks.map(({ message }) => message.id)).toEqual([id, second.id]);
    expect(left.tasks[0]?.message.retried).toBe(0);
  });

  it('keeps the success of a handler that still finishes when asked to stop', async () => {
    const { add, server, outcomes, next } = await startRig(
      { t: (task) => new Promise((resolve) => task.signal.addEventListener('abort', () => resolve('saved'))) },
      { shutdownTimeout: '20ms' },
    );
    const begun = next('taskStarted');
    await add({ type: 't' });
    await begun;
    await server.shutdown();
    expect(outcomes[0]?.outcome).toBe('done');
  });

  it('requeues the task of a handler that ignores the signal, and does not wait for ever', async () => {
    const clock = manualClock();
    const held = gate();
    const { add, server, memory, events } = await startRig({ t: held.handle }, { shutdownTimeout: 1_000 }, clock);
    clock.advance(0);
    const { id } = await add({ type: 't' });
    await held.entered;
    const closing = server.shutdown();
    for (let step = 0; step < 10; step++) {
      clock.advance(500);
      await turn(2);
    }
    await closing;
    expect((await memory.inspection.getTask('default', id))?.state).toBe('pending');
    expect(events.find(({ name }) => name === 'serverClosed')?.event).toEqual({ requeued: 1 });
    held.open();
  });

  it('reports how long tasks were pending, never less than 0, and only while somebody asks', async () => {
    const clock = manualClock();
    const { add, server, memory, outcomes } = rig({ t: () => undefined }, {}, clock);
    const started: (number | undefined)[] = [];
    server.events.on('taskStarted', ({ waited }) => started.push(waited));
    await add({ type: 't' });
    await server.runOnce();
    const [end, endOther] = [server.events.measureWaits(), server.events.measureWaits()];
    end();
    end();
    await add({ type: 't' });
    clock.advance(1_500);
    await server.runOnce();
    await add({ type: 't' });
    const behind = vi.spyOn(memory.clock, 'now').mockReturnValue(clock.now() - 60_000);
    await server.runOnce();
    behind.mockRestore();
    endOther();
    await add({ type: 't' });
    await server.runOnce();
    expect(outcomes.map(({ waited }) => waited)).toEqual([undefined, 1_500, 0, undefined]);
    expect(started).toEqual([undefined, 1_500, 0, undefined]);
  });

  it('requeues several tasks in their order', async () => {
    const options = { concurrency: 3, shutdownTimeout: 0 };
    const { add, server, memory, finished, outcomes } = await startRig({ t: () => new Promise(() => {}) }, options);
    const started = new Promise<void>((resolve) => {
      let count = 0;
      server.events.on('taskStarted', () => ++count === 3 && resolve());
    });
    const added = [await add({ type: 't' }), await add({ type: 't' }), await add({ type: 't' })];
    await started;
    await server.shutdown();
    await finished(3);
    expect(outcomes.every(({ outcome }) => outcome === 'requeued')).toBe(true);
    const { tasks } = await memory.consumer.exchange('default', { settle: [], take: 3 });
    expect(tasks.map(({ message }) => message.id)).toEqual(added.map(({ id }) => id));
  });

  it('is idempotent, and a closed server does not start', async () => {
    const { server } = await startRig({ t: () => undefined });
    await expect(server.start()).rejects.toThrow('asynq: the server is already running');
    server.stop();
    await expect(server.start()).rejects.toThrow('asynq: the server is in the stopped state. Waiting for shutdown.');
    await Promise.all([server.shutdown(), server.shutdown()]);
    await expect(server.start()).rejects.toThrow('asynq: Server closed');
    const fresh = rig({ t: () => undefined });
    await fresh.server.shutdown();
    await expect(fresh.server.start()).rejects.toThrow('asynq: Server closed');
    await expect(rig({}).server.start()).rejects.toThrow('asynq: server cannot run with nil handler');
  });
});
