import { afterEach, describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { BrokerUnavailableError, LeaseExpiredError, WakeUpRefusedError } from '../../../lib/errors.js';
import { Server } from '../../../lib/server/server.js';
import { onTaskEvents, type TaskEvent } from '../../../lib/events/task-events.js';
import { closeRigs, gate, manualClock, openRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

describe('Redis away', () => {
  it('keeps finished tasks and settles them when it is back, leases first', async () => {
    const clock = manualClock();
    const held = gate();
    const current = openRig({ t: held.handle }, {}, clock);
    const { add, server, faults, calls, memory, outcomes, events } = current;
    await server.start();
    clock.advance(0);
    const { id } = await add({ type: 't', retention: 60 });
    await held.entered;
    faults.set('exchange', 'before').set('extendLeases', 'before');
    held.open('kept');
    for (let second = 0; second < 45; second++) {
      clock.advance(1_000); // longer than a lease
      await turn(3);
    }
    expect(outcomes).toHaveLength(0);
    expect(events.filter(({ name }) => name === 'queueUnreachable')).toHaveLength(1);
    const tries = calls.filter((call) => call === 'extendLeases').length;
    expect(tries).toBeGreaterThan(20);
    expect(tries).toBeLessThan(120); // no busy loop
    faults.clear();
    calls.length = 0;
    for (let step = 0; step < 3; step++) {
      clock.advance(1_000);
      await turn(3);
    }
    expect(calls).toContain('exchange');
    expect(calls.indexOf('extendLeases')).toBeGreaterThanOrEqual(0);
    expect(calls.indexOf('extendLeases')).toBeLessThan(calls.indexOf('exchange'));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['completed']);
    expect(await memory.inspection.getTask('default', id)).toMatchObject({ state: 'completed' });
    expect(events.map(({ name }) => name)).toContain('queueReachable');
  });

  it('treats a settlement whose reply was lost as final, and runs nothing twice', async () => {
    let runs = 0;
    const current = openRig({ t: () => void runs++ });
    const { add, server, faults, finished, outcomes, next, memory } = current;
    await server.start();
    await turn();
    const began = next('taskStarted');
    await add({ type: 't' });
    await began;
    faults.set('exchange', 'after');
    await next('queueUnreachable');
    faults.clear();
    await finished(1);
    expect(runs).toBe(1);
    expect(outcomes[0]?.outcome).toBe('lost'); // it was settled by the call whose reply was lost
    expect(memory.tasks()).toHaveLength(0);
  });

  it('gives a lease up before other servers may take the task', async () => {
    const clock = manualClock();
    const held = gate();
    const current = openRig({ t: held.handle }, {}, clock);
    const { add, server, faults } = current;
    await server.start();
    clock.advance(0);
    await add({ type: 't' });
    const task = await held.entered;
    const taken = clock.now();
    faults.set('exchange', 'before').set('extendLeases', 'before');
    let lostAt: number | undefined;
    task.signal.addEventListener('abort', () => (lostAt = clock.now()));
    for (let second = 0; second < 70; second++) {
      clock.advance(1_000);
      await turn(3);
    }
    expect(task.signal.reason).toBeInstanceOf(LeaseExpiredError);
    expect(lostAt! - taken).toBeGreaterThan(40_000); // an outage of half a minute costs nothing
    expect(lostAt! - taken).toBeLessThan(60_000); // from then on a recoverer may run it elsewhere
    held.open();
  });

  it('serves the other queues while one does not reply', async () => {
    const current = openRig({ t: () => undefined }, { queues: ['good', 'bad'], taskCheckInterval: 5 });
    const { memory, server, add, finished, outcomes } = current;
    const exchange = memory.consumer.exchange.bind(memory.consumer);
    memory.consumer.exchange = (queue, request) =>
      queue === 'bad' ? Promise.reject(new Error('node away')) : exchange(queue, request);
    await server.start();
    for (let count = 0; count < 20; count++) await add({ type: 't', queue: 'good' });
    await add({ type: 't', queue: 'bad' });
    await finished(20);
    expect(outcomes.every(({ task }) => task.queue === 'good')).toBe(true);
    memory.consumer.exchange = exchange;
    await finished(21);
  });

  it('backs off, and reports it once, when Redis replies but refuses writes', async () => {
    const clock = manualClock();
    const { memory, server, add, outcomes, events } = openRig({ t: () => undefined }, {}, clock);
    const exchange = memory.consumer.exchange.bind(memory.consumer);
    let [takes, refuses] = [0, true];
    memory.consumer.exchange = (queue, request) => {
      if (request.take > 0) takes += 1;
      return refuses && request.take > 0 ? Promise.reject(new Error('MISCONF')) : exchange(queue, request);
    };
    for (let count = 0; count < 3; count++) await add({ type: 't' });
    await server.start();
    for (let step = 0; step < 300; step++) {
      clock.advance(100);
      await turn(3);
    }
    const emitted = (name: string): number => events.filter((event) => event.name === name).length;
    expect(takes).toBeGreaterThan(15);
    expect(takes).toBeLessThan(120); // half a minute; no busy loop
    expect(emitted('queueUnreachable')).toBeLessThanOrEqual(2);
    expect(emitted('queueReachable')).toBeLessThanOrEqual(1);
    refuses = false;
    for (let step = 0; step < 20; step++) {
      clock.advance(100);
      await turn(3);
    }
    expect(outcomes).toHaveLength(3);
    expect(emitted('queueReachable')).toBe(emitted('queueUnreachable'));
  });

  it('polls when wake-ups cannot be armed, and reports it once', async () => {
    const current = openRig({ t: () => undefined }, { taskCheckInterval: 5 });
    const { memory, server, add, finished, events } = current;
    const source = memory.wake.watch.bind(memory.wake);
    memory.wake.watch = (listener) => ({
      ...source(listener),
      armPending: () => Promise.reject(new Error('tracking is forbidden')),
      armDelayed: () => Promise.reject(new Error('tracking is forbidden')),
      close: async () => {},
    });
    const { Server } = await import('../../../lib/server/server.js');
    const other = new Server({
      broker: memory,
      handlers: [{ pattern: 't', handle: () => undefined }],
      options: { taskCheckInterval: 5 },
      events: server.events,
    });
    await other.start();
    await turn();
    await add({ type: 't' });
    await finished(1);
    await add({ type: 't' });
    await finished(2);
    expect(events.filter(({ name }) => name === 'wakeUnavailable')).toHaveLength(1);
    await other.shutdown();
  });
});

describe('wake-ups that cannot be armed', () => {
  it.each([
    ['soon when the connection was lost', new BrokerUnavailableError('connection lost'), true],
    ['later when they were refused', new WakeUpRefusedError('forbidden'), false],
  ])('are armed again %s', async (_, error, soon) => {
    const clock = manualClock();
    const memory = new MemoryBroker(clock);
    let tries = 0;
    const watch = memory.wake.watch.bind(memory.wake);
    memory.wake.watch = (listener) => {
      const source = watch(listener);
      return {
        armPending: (queues) => (++tries === 1 ? Promise.reject(error) : source.armPending(queues)),
        armDelayed: (queues) => source.armDelayed(queues),
        armPlaces: () => source.armPlaces(),
        close: () => source.close(),
      };
    };
    const server = new Server({ broker: memory, handlers: [{ pattern: 't', handle: () => undefined }] });
    await server.start();
    const began = clock.now();
    while (tries < 2) {
      clock.advance(500);
      await turn();
    }
    expect(clock.now() - began < 5_000).toBe(soon);
    const closing = server.shutdown();
    clock.advance(0);
    await closing;
  });
});

describe('the recoverer', () => {
  it('recovers tasks of a crashed server after the grace: retries them, or archives exhausted ones', async () => {
    const clock = manualClock();
    const current = openRig({ t: () => undefined }, { retryDelay: () => 3_600_000 }, clock);
    const { add, server, memory, events } = current;
    const emitted: TaskEvent[] = [];
    onTaskEvents(server.events, 'default', ['finished', 'failed', 'retried', 'archived'], {}, (event) =>
      emitted.push(event),
    );
    const again = await add({ type: 't', maxRetry: 3 });
    const last = await add({ type: 't', maxRetry: 0 });
    await memory.consumer.exchange('default', { settle: [], take: 2 }); // a server that crashes now
    await server.start();
    clock.advance(59_000);
    await turn();
    expect((await memory.inspection.getTask('default', again.id))?.state).toBe('active');
    for (let second = 0; second < 10; second++) {
      clock.advance(1_000);
      await turn(3);
    }
    expect(await memory.inspection.getTask('default', again.id)).toMatchObject({
      state: 'retry',
      message: { retried: 1, errorMsg: 'asynq: task lease expired' },
    });
    expect((await memory.inspection.getTask('default', last.id))?.state).toBe('archived');
    expect(events).toContainEqual({
      name: 'tasksRecovered',
      event: { queue: 'default', retried: 1, archived: 1, suspects: 0 },
    });
    const common = { connection: 'default', duration: 0, retried: 0, error: { code: 'ASYNQ_LEASE_EXPIRED' } };
    expect(emitted.filter(({ event }) => event !== 'finished')).toMatchObject([
      { event: 'failed', task: { id: again.id }, outcome: 'retry', maxRetry: 3, ...common },
      { event: 'retried', retryAt: expect.any(Date) as Date },
      { event: 'failed', task: { id: last.id }, outcome: 'archived', maxRetry: 0, ...common },
      { event: 'archived', task: { id: last.id, type: 't', queue: 'default' } },
    ]);
  });

  it("counts the retry delay from the server's last sign of life, and still backs off", async () => {
    const clock = manualClock();
    const ran: string[] = [];
    const { add, server, memory } = openRig({ t: ({ id }) => void ran.push(id) }, {}, clock);
    const first = await add({ type: 't', maxRetry: 25 });
    const sixth = await add({ type: 't', maxRetry: 25, retried: 5 });
    const killedAt = Math.floor(clock.now() / 1000);
    await memory.consumer.exchange('default', { settle: [], take: 2 }); // a server that is killed now
    clock.advance(60_000);
    await server.start();
    for (let step = 0; step < 10; step++) {
      clock.advance(100);
      await turn(3);
    }
    expect(ran).toEqual([first.id]); // at once: the 15 to 44 s of a first failure have passed
    const { state, nextProcessAt, message } = (await memory.inspection.getTask('default', sixth.id))!;
    expect([state, message.retried]).toEqual(['retry', 6]);
    expect(nextProcessAt! - killedAt).toBeGreaterThanOrEqual(640); // asynq's 640 to 814 s of a sixth failure
    expect(nextProcessAt! - killedAt).toBeLessThanOrEqual(814);
  });

  it('settles each task once, with any number of recoverers', async () => {
    const clock = manualClock();
    const current = openRig({ t: () => undefined }, { retryDelay: () => 3_600_000 }, clock);
    const { add, memory, server } = current;
    const { Server } = await import('../../../lib/server/server.js');
    const { id } = await add({ type: 't' });
    await memory.consumer.exchange('default', { settle: [], take: 1 });
    clock.advance(61_000);
    const others = Array.from(
      { length: 3 },
      () => new Server({ broker: memory, handlers: [{ pattern: 't', handle: () => undefined }] }),
    );
    await Promise.all([server.start(), ...others.map((other) => other.start())]);
    clock.advance(0);
    await turn(10);
    expect((await memory.inspection.getTask('default', id))?.message.retried).toBe(1);
    for (const other of others) {
      const closing = other.shutdown();
      clock.advance(0);
      await closing;
    }
  });
});
