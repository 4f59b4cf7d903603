import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ExchangeReply } from '../../../lib/broker/broker.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ManualClock } from '../../../lib/clock.js';
import { InvalidHandlerError } from '../../../lib/errors.js';
import { Server } from '../../../lib/server/server.js';
import type { TaskLimits } from '../../../lib/task/limits.js';
import { request } from '../../support/messages.js';
import { closeRigs, manualClock, openRig, startRig, turn, type Rig } from '../../support/server-rig.js';

const servers: Server[] = [];

afterEach(async () => {
  await closeRigs();
  await Promise.all(servers.splice(0).map((server) => server.shutdown()));
});

/** Attempts that end when the test says so. */
function workers() {
  const open: { id: string; end: () => void }[] = [];
  const started: string[] = [];
  let most = 0;
  return {
    started,
    handle: ({ id }: { id: string }) => {
      started.push(id);
      return new Promise<void>((resolve) => {
        open.push({ id, end: resolve });
        most = Math.max(most, open.length);
      });
    },
    endOne: () => open.shift()?.end(),
    get running() {
      return open.length;
    },
    get most() {
      return most;
    },
  };
}

/** Lets time pass in steps, so that every timer runs at its time. */
async function pass(clock: ManualClock, milliseconds: number, step = 50): Promise<void> {
  for (let left = milliseconds; left > 0; left -= step) {
    clock.advance(Math.min(step, left));
    await turn();
  }
}

const narrow = (limits: TaskLimits) => {
  const work = workers();
  return { work, handler: { pattern: 'narrow', handle: work.handle, limits } };
};

async function addMany({ add }: Rig, type: string, count: number): Promise<string[]> {
  const ids = [];
  for (let index = 0; index < count; index++) ids.push((await add({ type })).id);
  return ids;
}

describe('limits of a handler', () => {
  it('cost one look a queue while nothing waits, however many there are', async () => {
    const clock = manualClock();
    const broker = new MemoryBroker(clock);
    const used = vi.spyOn(broker.limiting, 'findWaitlists');
    const woken = vi.spyOn(broker.limiting, 'wakeWaiting');
    const handlers = Array.from({ length: 50 }, (_, index) => {
      return { pattern: `narrow ${index}`, handle: () => undefined, limits: { globalConcurrency: 1 } };
    });
    const server = new Server({ broker, handlers, options: { queues: ['a', 'b', 'c'] } });
    servers.push(server);
    await server.start();
    used.mockClear();
    await pass(clock, 20_000);
    expect(used).toHaveBeenCalledTimes(10 * 3);
    expect(woken).not.toHaveBeenCalled();
  });

  it('concurrency: bounds one process; the other slots are free for other tasks of the same queue', async () => {
    const { work, handler } = narrow({ concurrency: 2 });
    const wide = workers();
    const rig = await startRig({ narrow: handler, wide: wide.handle }, { concurrency: 5 }, manualClock());
    const ids = await addMany(rig, 'narrow', 7);
    await addMany(rig, 'wide', 3);
    await turn(30);
    expect([work.running, wide.running, rig.server.active]).toEqual([2, 3, 5]);
    for (let ended = 0; ended < 7; ended++) {
      work.endOne();
      await turn(30);
    }
    expect([work.started, work.most]).toEqual([ids, 2]); // in their order, without any time having passed
  });

  it.each<TaskLimits>([{ concurrency: 1 }, { globalConcurrency: 1 }])(
    'put a backlog of one type aside without claiming it, and what is behind it runs: %o',
    async (limits) => {
      const { work, handler } = narrow(limits);
      const wide = workers();
      const rig = await openRig({ narrow: handler, wide: wide.handle }, { concurrency: 5 }, manualClock());
      const ids = await addMany(rig, 'narrow', 600);
      await addMany(rig, 'wide', 3);
      const exchange = vi.spyOn(rig.memory.consumer, 'exchange');
      await rig.server.start();
      await turn(60);
      expect([work.running, wide.running]).toEqual([1, 3]);
      expect(await rig.memory.inspection.describeQueue('default')).toMatchObject({ active: 4, held: 599, pending: 0 });
      const taken = await Promise.all(exchange.mock.results.map(({ value }) => value as Promise<ExchangeReply>));
      expect(taken.reduce((sum, { tasks }) => sum + tasks.length, 0)).toBeLessThan(20);
      expect(taken.length).toBeLessThan(20);
      for (let ended = 0; ended < 600; ended++) {
        work.endOne();
        await turn(30);
      }
      expect([work.started, work.most]).toEqual([ids, 1]); // in their order, without any time having passed
    },
  );

  it('cost no retry, are not counted and emit no event', async () => {
    const { work, handler } = narrow({ concurrency: 1 });
    const rig = await startRig({ narrow: handler }, {}, manualClock());
    await addMany(rig, 'narrow', 3);
    await turn(30);
    const waiting = (await rig.memory.inspection.describeQueue('default'))!;
    expect(waiting).toMatchObject({ active: 1, held: 2, retry: 0, pending: 0, processed: 0, failed: 0 });
    for (let ended = 0; ended < 3; ended++) {
      work.endOne();
      await turn(30);
    }
    expect(rig.outcomes.map(({ outcome, retried }) => [outcome, retried])).toEqual([0, 1, 2].map(() => ['done', 0]));
  });

  it('globalConcurrency: bounds the fleet; a waiting task takes each free slot at once', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 3 });
    const rig = await startRig({ narrow: handler }, { concurrency: 5 }, clock);
    const second = new Server({ broker: rig.memory, handlers: [handler], options: { concurrency: 5 } });
    servers.push(second);
    await second.start();
    await addMany(rig, 'narrow', 20);
    for (let ended = 0; ended < 20; ended++) {
      await turn(60);
      expect(work.running).toBe(Math.min(3, 20 - ended));
      work.endOne();
    }
    await turn(60);
    expect([work.started.length, work.most]).toEqual([20, 3]);
    const free = ['a', 'b', 'c'];
    expect(await rig.memory.limiting.acquireTokens('narrow', 3, 2 ** 40, free)).toEqual([true, true, true]); // all were given back
  });

  it('slots of a dead process are free after half a minute, and not before', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 2 });
    const rig = openRig({ narrow: handler }, {}, clock);
    await rig.memory.limiting.acquireTokens('narrow', 2, Math.floor(clock.now() / 1000) + 30, ['dead', 'gone']);
    await rig.server.start();
    await addMany(rig, 'narrow', 5);
    await pass(clock, 30_000);
    expect(work.running).toBe(0);
    await pass(clock, 7_000);
    expect(work.running).toBe(2);
  });

  it('extend their tokens as long as tasks run', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 1 });
    const rig = await startRig({ narrow: handler }, {}, clock);
    await addMany(rig, 'narrow', 2);
    await pass(clock, 300_000, 500);
    expect([work.running, work.started.length]).toEqual([1, 1]);
    work.endOne();
    await turn(30);
    expect(work.started).toHaveLength(2);
  });

  it('rateLimit: never more starts in any window, and each as soon as it is allowed', async () => {
    const clock = manualClock();
    const starts: number[] = [];
    const limits = { rateLimit: { max: 5, per: 10_000 } };
    const handler = { pattern: 'narrow', handle: () => void starts.push(clock.now()), limits };
    const rig = await startRig({ narrow: handler }, {}, clock);
    await addMany(rig, 'narrow', 30);
    await pass(clock, 80_000);
    expect(starts).toHaveLength(30);
    for (const first of starts) {
      expect(starts.filter((at) => at >= first && at < first + 10_000).length).toBeLessThanOrEqual(5);
    }
    expect(starts.at(-1)! - starts[0]!).toBeLessThan(6 * 11_000);
  });

  it('rateLimit: tasks that arrive while it is reached do not delay the time when it has room', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ rateLimit: { max: 5, per: '1s' } });
    const rig = await startRig({ narrow: handler }, { concurrency: 50 }, clock);
    for (let index = 0; index < 20; index++) {
      await addMany(rig, 'narrow', 1);
      await turn(20);
    }
    expect(work.started).toHaveLength(5);
    await pass(clock, 4_500);
    expect(work.started).toHaveLength(20);
  });

  it('of a scope are shared by its handlers', async () => {
    const { work, handler } = narrow({ globalConcurrency: 1, concurrency: 1, limitScope: 'stripe' });
    const other = { ...handler, pattern: 'other' };
    const rig = await startRig({ narrow: handler, other }, {}, manualClock());
    await addMany(rig, 'narrow', 2);
    await addMany(rig, 'other', 2);
    for (let ended = 0; ended < 4; ended++) {
      await turn(40);
      expect(work.running).toBe(1);
      work.endOne();
    }
    expect(work.most).toBe(1);
  });

  it('count tasks with the same id in two queues as two', async () => {
    const { work, handler } = narrow({ globalConcurrency: 1 });
    const rig = await startRig({ narrow: handler }, { queues: { a: 1, b: 1 } }, manualClock());
    for (const queue of ['a', 'b']) await rig.add({ type: 'narrow', id: 'same', queue });
    for (let ended = 0; ended < 2; ended++) {
      await turn(40);
      expect(work.running).toBe(1);
      work.endOne();
    }
    expect(work.most).toBe(1);
  });

  it.each([{ globalConcurrency: 1 }, { concurrency: 1 }])(
    'let the queues of a scope have their turns: $globalConcurrency $concurrency',
    async (limits) => {
      const { work, handler } = narrow(limits);
      const rig = await startRig({ narrow: handler }, { queues: { a: 1, b: 1 } }, manualClock());
      const queues = new Map<string, string>();
      for (const queue of 'aaaaaabb') queues.set((await rig.add({ type: 'narrow', queue })).id, queue);
      await turn(40);
      for (let ended = 0; ended < 8; ended++) {
        work.endOne();
        await turn(40);
      }
      const order = work.started.map((id) => queues.get(id)).join('');
      expect(order.lastIndexOf('b')).toBeLessThan(5);
    },
  );

  it('find a task that waits unknown to all in one queue, while others wait in another', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 1 });
    const rig = openRig({ narrow: handler }, { queues: { a: 1, b: 1 } }, clock);
    for (let index = 0; index < 9; index++) await rig.add({ type: 'narrow', queue: 'a' });
    const { id } = await rig.add({ type: 'narrow', queue: 'b' });
    const { tasks } = await rig.memory.consumer.exchange('b', { settle: [], take: 1 });
    const settle = [{ kind: 'wait', lease: tasks[0]!.lease, waitlist: 'narrow' }] as const;
    await rig.memory.consumer.exchange('b', { settle, take: 0 });
    vi.spyOn(rig.memory.limiting, 'findWaitlists').mockResolvedValueOnce({ names: [], cursor: '' }); // the first pass
    vi.spyOn(rig.memory.maintenance, 'forward').mockResolvedValue({ moved: 0, nextDue: undefined });
    await rig.server.start();
    await pass(clock, 5_000);
    for (let ended = 0; ended < 5; ended++) {
      work.endOne();
      await turn(40);
    }
    expect(work.started).toContain(id);
  });

  it('let a server have its turn whose queue others do not serve, while a backlog elsewhere keeps the limit reached', async () => {
    const clock = manualClock();
    const broker = new MemoryBroker(clock);
    const ran: string[] = [];
    const handle = ({ queue }: { queue: string }) => {
      ran.push(queue);
      return new Promise<void>((resolve) => clock.after(100, resolve));
    };
    const handlers = [{ pattern: 'narrow', handle, limits: { globalConcurrency: 1 } }];
    const add = (queue: string, count: number) =>
      broker.producer.enqueue(
        queue,
        Array.from({ length: count }, () => request({ type: 'narrow', queue })),
      );
    await add('a', 400);
    for (const queue of ['a', 'b']) {
      const server = new Server({ broker, handlers, options: { queues: [queue] } });
      servers.push(server);
      await server.start();
      await pass(clock, 1_000);
      if (queue === 'a') await add('b', 5);
    }
    await pass(clock, 15_000);
    expect(ran.filter((queue) => queue === 'b').length).toBeGreaterThan(0);
    expect(ran.filter((queue) => queue === 'a').length).toBeGreaterThan(80); // the limit is used all the time
    const closed = Promise.all(servers.splice(0).map((server) => server.shutdown()));
    await pass(clock, 20_000, 500);
    await closed;
  });

  it('wake another task when a server without room claimed the one that was woken', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ concurrency: 1 });
    const rig = await startRig({ narrow: handler }, {}, clock);
    await addMany(rig, 'narrow', 4);
    await turn(30);
    const { memory } = rig;
    const wake = memory.limiting.wakeWaiting.bind(memory.limiting);
    vi.spyOn(memory.limiting, 'wakeWaiting').mockImplementationOnce(async (queue, line, count) => {
      const answer = await wake(queue, line, count);
      const { tasks } = await memory.consumer.exchange(queue, { settle: [], take: 1 });
      await memory.consumer.exchange(queue, {
        settle: [{ kind: 'wait', lease: tasks[0]!.lease, waitlist: line }],
        take: 0,
      });
      return answer;
    });
    work.endOne();
    await pass(clock, 500);
    expect(work.started).toHaveLength(2);
  });

  it('give back the token of a task whose lease was lost, and not that of the new holder of the task', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 1 });
    const rig = await startRig({ narrow: handler }, {}, clock);
    const [id] = await addMany(rig, 'narrow', 1);
    await turn(30);
    vi.spyOn(rig.memory.consumer, 'extendLeases').mockResolvedValue([false]);
    await pass(clock, 30_000, 500);
    expect(rig.outcomes).toMatchObject([{ outcome: 'lost', task: { id } }]);
    const { limiting, obstacles } = rig.memory;
    const acquire = async () => (await limiting.acquireTokens('narrow', 1, 2 ** 40, [`new{default}:${id}`]))[0];
    expect(await acquire()).toBe(false); // its handler goes on
    work.endOne();
    await turn(30);
    expect(await acquire()).toBe(true);
    await turn(30);
    expect((await obstacles.heldTokens('narrow')).count).toBe(1);
  });

  it('are refused when they differ within a scope, or are wrong', () => {
    const handle = (): void => {};
    const server = (...limits: TaskLimits[]): Server => {
      const handlers = limits.map((each, index) => ({ pattern: `t${index}`, handle, limits: each }));
      return new Server({ broker: new MemoryBroker(), handlers });
    };
    expect(() => server({ concurrency: 1, limitScope: 's' }, { concurrency: 2, limitScope: 's' })).toThrow(
      'handler "t1" limits scope "s" otherwise than another handler does (concurrency 2, not 1)',
    );
    expect(() => server({ concurrency: 0 })).toThrow(InvalidHandlerError);
    expect(() => server({ rateLimit: { max: 1, per: '2 days' as never } })).toThrow(/per of rateLimit/);
  });

  it('let a task wait while Redis does not reply about its token', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 2 });
    const rig = openRig({ narrow: handler }, {}, clock);
    rig.faults.set('acquireTokens', 'before');
    await rig.server.start();
    const [id] = await addMany(rig, 'narrow', 1);
    await pass(clock, 20_000);
    const tries = rig.calls.filter((call) => call === 'acquireTokens').length;
    expect(tries).toBeGreaterThan(2);
    expect(tries).toBeLessThan(40); // no busy loop
    rig.faults.clear();
    await pass(clock, 6_000);
    expect(work.started).toEqual([id]);
    expect(rig.events.some(({ event }) => (event as { loop?: string }).loop === 'limiter')).toBe(true);
  });

  it('let a server stop: a task that is being admitted goes back to the front of its queue', async () => {
    const clock = manualClock();
    const { work, handler } = narrow({ globalConcurrency: 2 });
    const rig = openRig({ narrow: handler }, { shutdownTimeout: '1s' }, clock);
    let grant = (): void => {};
    vi.spyOn(rig.memory.limiting, 'acquireTokens').mockReturnValue(
      new Promise((resolve) => (grant = () => resolve([true]))),
    );
    await rig.server.start();
    const [id] = await addMany(rig, 'narrow', 1);
    await turn(20);
    expect(rig.server.active).toBe(1);
    const closed = rig.server.shutdown();
    await pass(clock, 1_500);
    grant();
    await pass(clock, 10_000, 500);
    await closed;
    expect(work.started).toEqual([]);
    expect((await rig.memory.inspection.getTask('default', id!))?.state).toBe('pending');
  });
});
