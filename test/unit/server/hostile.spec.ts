import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../lib/clock.js';
import { Server } from '../../../lib/server/server.js';
import { closeRigs, gate, manualClock, rig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

/** Like a query builder: no promise, but `await` treats it as one. */
const thenable = (then: (resolve: (value: unknown) => void) => void): unknown =>
  Object.defineProperty({}, 'then', { value: then });

describe('what handlers return', () => {
  it('may be a thenable that throws: a failure like any other, and the tasks beside it run', async () => {
    const { server, add, outcomes } = rig({
      bad: () =>
        thenable(() => {
          throw new Error('no connection');
        }),
      good: () => 'ok',
    });
    await add({ type: 'bad' });
    await add({ type: 'good' });
    await server.runOnce();
    expect(outcomes.map(({ task, outcome }) => `${task.type} ${outcome}`).sort()).toEqual(['bad retry', 'good done']);
    expect(server.active).toBe(0);
  });

  it('may be a thenable whose `then` cannot be read', async () => {
    const unreadable = (): unknown =>
      Object.defineProperty({}, 'then', {
        get: () => {
          throw new Error('revoked');
        },
      });
    const { server, add, outcomes } = rig({ bad: unreadable, good: () => 'ok' });
    await add({ type: 'bad' });
    await add({ type: 'good' });
    await server.runOnce();
    expect(outcomes.map(({ task, outcome }) => `${task.type} ${outcome}`).sort()).toEqual(['bad retry', 'good done']);
    expect(server.active).toBe(0);
  });

  it('is awaited to the end: a thenable may resolve to a promise, and call back twice', async () => {
    const { server, add, outcomes } = rig({
      t: () =>
        thenable((resolve) => {
          resolve(Promise.reject(new Error('in the end')));
          resolve('too late');
        }),
    });
    await add({ type: 't' });
    await server.runOnce();
    expect(outcomes).toHaveLength(1);
    expect(outcomes[0]).toMatchObject({ outcome: 'retry', error: { message: 'in the end' } });
    expect(server.active).toBe(0);
  });
});

describe('what handlers throw', () => {
  it('may look like a PostponeTask whose delay cannot be read: it is postponed, and the tasks beside it run', async () => {
    const unreadable = Object.defineProperty({ code: 'ASYNQ_POSTPONE_TASK' }, 'delay', {
      get: () => {
        throw new Error('revoked');
      },
    });
    const { server, add, outcomes } = rig({
      bad: () => {
        throw unreadable;
      },
      good: () => 'ok',
    });
    await add({ type: 'bad' });
    await add({ type: 'good' });
    await server.runOnce();
    expect(outcomes.map(({ task, outcome }) => `${task.type} ${outcome}`).sort()).toEqual([
      'bad postponed',
      'good done',
    ]);
    expect(server.active).toBe(0);
  });
});

describe('times beyond all bounds', () => {
  it('are bounded to what can be stored, so that they do not block their batch for ever', async () => {
    const { server, memory, add, outcomes } = rig(
      {
        fails: () => {
          throw new Error('x');
        },
        works: () => 'ok',
      },
      { retryDelay: () => Number.MAX_VALUE },
      manualClock(),
    );
    const retried = await add({ type: 'fails' });
    const kept = await add({ type: 'works', retention: Number.MAX_SAFE_INTEGER });
    let stored: readonly unknown[] = [];
    const exchange = memory.consumer.exchange.bind(memory.consumer);
    memory.consumer.exchange = (queue, request) => {
      if (request.settle.length > 0) stored = request.settle;
      return exchange(queue, request);
    };
    await server.runOnce();
    const times = stored.map((item) => {
      const { retryAt, expiresAt } = item as { retryAt?: number; expiresAt?: number };
      return retryAt ?? expiresAt;
    });
    expect(times).toHaveLength(2);
    expect(times.every(Number.isSafeInteger)).toBe(true);
    expect(outcomes.find(({ task }) => task.id === retried.id)?.retryAt?.getTime()).toBe(8.64e15);
    expect((await memory.inspection.getTask('default', kept.id))?.state).toBe('completed');
  });
});

describe('finished tasks with large payloads', () => {
  it('are settled in several calls, each small enough for Redis', async () => {
    const { server, memory, add } = rig({
      t: () => {
        throw new Error('x');
      },
    });
    const settled: number[] = [];
    const exchange = memory.consumer.exchange.bind(memory.consumer);
    memory.consumer.exchange = (queue, request) => {
      if (request.settle.length > 0) settled.push(request.settle.length);
      return exchange(queue, request);
    };
    const kilobytes = (count: number) => ({ type: 't', payload: Buffer.alloc(count * 1024) });
    for (const size of [400, 400, 400, 1_500, 100]) await add(kilobytes(size));
    await server.runOnce();
    expect(settled).toEqual([2, 1, 1, 1]);
  });
});

describe('a deadline beyond all bounds', () => {
  it('is still a date', async () => {
    const { server, add, outcomes } = rig({ t: (task) => task.deadline.toISOString() });
    await add({ type: 't', timeout: 0, deadline: Number.MAX_SAFE_INTEGER });
    await server.runOnce();
    expect(outcomes[0]).toMatchObject({ outcome: 'done', result: '+275760-09-13T00:00:00.000Z' });
  });
});

describe('hooks and listeners that are async functions', () => {
  it('are reported when they reject, and do not end the process', async () => {
    const broken = async (): Promise<never> => {
      throw new Error('hook');
    };
    const { server, add, events, outcomes } = rig(
      {
        t: () => {
          throw new Error('x');
        },
      },
      { onError: broken, retryDelay: broken as never, isFailure: broken as never },
    );
    const failed: string[] = [];
    server.events.on('listenerFailed', ({ event }) => failed.push(event));
    server.events.on('taskFinished', broken);
    await add({ type: 't' });
    await server.runOnce();
    await turn();
    expect(outcomes[0]).toMatchObject({ outcome: 'retry' });
    const hooks = new Set(events.map(({ event }) => (event as { hook: string }).hook));
    expect([...hooks].sort()).toEqual(['isFailure', 'onError', 'retryDelay']);
    expect(failed).toEqual(['taskFinished']);
  });
});

describe('a lost lease', () => {
  it('of a finished task that waits for Redis is reported once', async () => {
    const clock = manualClock();
    const held = gate();
    const { add, memory, faults, outcomes } = await startRig({ t: held.handle }, {}, clock);
    clock.advance(0);
    const { id } = await add({ type: 't' });
    const task = await held.entered;
    faults.set('exchange', 'before');
    held.open();
    await turn();
    const lease = { queue: 'default', id, expiresAt: Math.floor(clock.now() / 1000) + 30 };
    await memory.consumer.exchange('default', { settle: [{ kind: 'requeue', lease }], take: 0 }); // another server's doing
    for (let second = 0; second < 20; second++) {
      clock.advance(1_000);
      await turn(3);
    }
    faults.clear();
    const mine = () => outcomes.filter((outcome) => outcome.task === task);
    for (let second = 0; second < 5; second++) {
      clock.advance(1_000);
      await turn(3);
    }
    expect(mine().map(({ outcome }) => outcome)).toEqual(['lost']);
  });
});

describe('a process that stood still', () => {
  it('does not recover its own tasks when it goes on', async () => {
    const manual = manualClock();
    let jump = 0;
    const clock: Clock = {
      now: () => manual.now() + jump,
      elapsed: () => manual.elapsed() + jump,
      after: (delay, callback) => manual.after(delay, callback),
    };
    const held = gate();
    const { add, server, memory, calls, outcomes } = rig({ t: held.handle }, {}, clock);
    await server.start();
    manual.advance(0);
    const { id } = await add({ type: 't' });
    await held.entered;
    const extendLeases = memory.consumer.extendLeases.bind(memory.consumer);
    let extend = (): void => {};
    const asked = new Promise<void>((resolve) => (extend = resolve));
    memory.consumer.extendLeases = async (...args) => asked.then(() => extendLeases(...args)); // its turn comes last
    jump = 90_000;
    calls.length = 0;
    for (let second = 0; second < 8; second++) {
      manual.advance(1_000);
      await turn(3);
    }
    expect(calls).toContain('listExpiredLeases');
    extend();
    await turn();
    expect(await memory.inspection.getTask('default', id)).toMatchObject({ state: 'active', message: { retried: 0 } });
    held.open();
    await turn();
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['done']);
    const closing = server.shutdown();
    manual.advance(0);
    await closing;
  });
});

describe('a queue of a node that hangs', () => {
  it('holds up its own tasks only, even if it was alone in its round', async () => {
    const held = gate();
    const { memory, add, next, finished, outcomes } = await startRig(
      { bad: held.handle, good: () => undefined },
      { queues: ['good', 'bad'] },
    );
    await turn();
    await add({ type: 'bad', queue: 'bad' });
    await held.entered;
    await turn();
    const exchange = memory.consumer.exchange.bind(memory.consumer);
    let fail = (): void => {};
    const hanging = new Promise<void>((hangs) => {
      memory.consumer.exchange = (queue, request) => {
        if (queue !== 'bad') return exchange(queue, request);
        hangs();
        return new Promise((_, reject) => (fail = () => reject(new Error('gone'))));
      };
    });
    held.open();
    await hanging;
    await add({ type: 'good', queue: 'good' });
    await finished(1);
    expect(outcomes[0]?.task.queue).toBe('good');
    memory.consumer.exchange = exchange;
    const reachable = next('queueReachable');
    fail();
    await reachable;
  });
});

describe('shutdown beside a Redis that hangs', () => {
  it('ends, soon after the time that tasks were given', async () => {
    const clock = manualClock();
    const hung = new Promise<never>(() => {});
    const { memory } = rig({}, {}, clock);
    memory.maintenance.forward = () => hung;
    memory.consumer.exchange = () => hung;
    memory.consumer.extendLeases = () => hung;
    memory.maintenance.listExpiredLeases = () => hung;
    memory.maintenance.deleteExpiredCompleted = () => hung;
    memory.monitoring.writeServerState = () => hung;
    memory.monitoring.clearServerState = () => hung;
    memory.cancellation.subscribeCancellations = () => hung;
    const server = new Server({
      broker: memory,
      handlers: [{ pattern: 't', handle: () => undefined }],
      options: { shutdownTimeout: 8_000, janitorInterval: 1_000 },
    });
    await server.start();
    clock.advance(1_500);
    await turn();
    let closed = false;
    void server.shutdown().then(() => (closed = true));
    const began = clock.now();
    while (!closed && clock.now() - began < 60_000) {
      clock.advance(500);
      await turn(3);
    }
    expect(clock.now() - began).toBeLessThanOrEqual(8_000 + 12_000);
    expect(clock.nextDue()).toBeUndefined(); // no timer is left
  });
});
