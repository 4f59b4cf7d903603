import { afterEach, describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ManualClock } from '../../../lib/clock.js';
import { InvalidHandlerError, InvalidLimitKeyError } from '../../../lib/errors.js';
import { StartAllowance } from '../../../lib/server/attempt/start-allowance.js';
import { HeldClaims } from '../../../lib/server/attempt/held-claims.js';
import { Looks } from '../../../lib/server/attempt/looks.js';
import { KeyedLimiters } from '../../../lib/server/attempt/keyed-limiters.js';
import type { TaskHandlerEntry } from '../../../lib/server/attempt/handler.js';
import { Server } from '../../../lib/server/server.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { limitKeyOf } from '../../../lib/task/limit-key.js';
import { resolveLimits, type TaskLimits } from '../../../lib/task/limits.js';
import { request } from '../../support/messages.js';
import { closeRigs, manualClock, turn } from '../../support/server-rig.js';

const servers: Server[] = [];

afterEach(async () => {
  await closeRigs();
  await Promise.all(servers.splice(0).map((server) => server.shutdown()));
});

const textOf = ({ payload }: TaskContext): string => payload.toString();

const limited = (limits: TaskLimits, handle: (task: TaskContext) => unknown, pattern = 'sync'): TaskHandlerEntry => ({
  pattern,
  handle,
  limits,
  limitKey: (task) => limitKeyOf((payload) => payload as string, textOf(task), task.type, InvalidLimitKeyError),
});

interface Fleet {
  readonly broker: MemoryBroker;
  readonly clock: ManualClock;
}

function fleet(): Fleet {
  const clock = manualClock();
  return { broker: new MemoryBroker(clock), clock };
}

async function serve({ broker }: Fleet, handlers: TaskHandlerEntry[], concurrency = 20): Promise<Server> {
  const server = new Server({ broker, handlers, options: { concurrency } });
  servers.push(server);
  await server.start();
  return server;
}

const add = ({ broker }: Fleet, keys: readonly string[], type = 'sync') =>
  broker.producer.enqueue(
    'default',
    keys.map((key) => request({ type, payload: Buffer.from(key) })),
  );

async function pass({ clock }: Fleet, milliseconds: number, step: number, turns = 4): Promise<void> {
  for (let left = milliseconds; left > 0; left -= step) {
    clock.advance(Math.min(step, left));
    await turn(turns);
  }
}

const numbers = ({ broker }: Fleet) => broker.inspection.describeQueue('default');

/** The most of these times, which ascend, in any period of that length. */
function mostWithin(times: readonly number[], window: number): number {
  let most = 0;
  let first = 0;
  for (let last = 0; last < times.length; last++) {
    while (times[last]! - times[first]! >= window) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

const IDLE = {
  takesTasks: true,
  freeSlots: 1,
  isBehind: false,
  isOverfull: false,
  heldWanted() {},
  slotsTaken() {},
  tasksWoken() {},
};
const NONE_HELD = new HeldClaims(() => undefined);

describe('limitBy', () => {
  it('holds the limit for each key: others go on, and each waits in a list of its own', async () => {
    const one = fleet();
    const open = new Map<string, (() => void)[]>();
    const started: string[] = [];
    await serve(one, [
      limited({ globalConcurrency: 1 }, (task) => {
        const key = textOf(task);
        started.push(key);
        return new Promise<void>((resolve) => open.set(key, [...(open.get(key) ?? []), resolve]));
      }),
    ]);
    await add(one, ['a', 'a', 'a', 'b', 'b', 'c']);
    await turn(40);
    expect(started.toSorted()).toEqual(['a', 'b', 'c']);
    expect(await numbers(one)).toMatchObject({ active: 3, held: 3, pending: 0 });
    const { tasks } = await one.broker.listing.listTasks('default', { state: 'held', size: 9 });
    expect(tasks.map(({ held }) => held?.waitlist).toSorted()).toEqual(['sync:a', 'sync:a', 'sync:b']);
    open.get('b')!.shift()!();
    await turn(40);
    expect(started.slice(3)).toEqual(['b']);
    for (const key of ['a', 'a', 'a', 'b', 'c']) {
      open.get(key)?.shift()?.();
      await turn(40);
    }
    expect(started.toSorted()).toEqual(['a', 'a', 'a', 'b', 'b', 'c']);
    expect(await numbers(one)).toMatchObject({ active: 0, held: 0, pending: 0 });
  });

  it('counts concurrency of this process for each key, too', async () => {
    const one = fleet();
    const running: string[] = [];
    await serve(one, [
      limited({ concurrency: 2 }, (task) => {
        running.push(textOf(task));
        return new Promise<void>(() => undefined);
      }),
    ]);
    await add(one, ['a', 'a', 'a', 'b']);
    await turn(40);
    expect(running).toEqual(['a', 'a', 'b']);
    expect(await numbers(one)).toMatchObject({ active: 3, held: 1 });
    void servers[0]!.shutdown();
    await pass(one, 60_000, 500);
  });

  it('wakes what another server has left, though it has not seen the key before', async () => {
    const one = fleet();
    const [task] =
      (await add(one, ['a']), (await one.broker.consumer.exchange('default', { settle: [], take: 1 })).tasks);
    const settle = [{ kind: 'wait' as const, lease: task!.lease, waitlist: 'sync:a' }];
    await one.broker.consumer.exchange('default', { settle, take: 0 });
    const started: string[] = [];
    await serve(one, [limited({ globalConcurrency: 1 }, (given) => void started.push(textOf(given)))]);
    await pass(one, 3_000, 50);
    expect(started).toEqual(['a']);
  });

  it.each([
    ['', /is blank/],
    ['x'.repeat(257), /has 257 bytes, and may have 256/],
    ['{a}', /brace/],
  ])('archives a task whose key is %j, and says why', async (key, text) => {
    const one = fleet();
    const ran: string[] = [];
    await serve(one, [limited({ globalConcurrency: 1 }, (task) => void ran.push(textOf(task)))]);
    await add(one, [key, 'good']);
    await turn(40);
    expect(ran).toEqual(['good']);
    const { tasks } = await one.broker.listing.listTasks('default', { state: 'archived', size: 9 });
    expect(tasks.map(({ message }) => message.errorMsg)).toEqual([expect.stringMatching(text)]);
    expect(tasks[0]!.message.errorMsg).toContain('limitBy of task "sync"');
  });

  it('archives a task whose key cannot be made', async () => {
    const one = fleet();
    const limitBy = () => {
      throw new Error('no partner');
    };
    const limitKey = (task: TaskContext) => limitKeyOf(limitBy, undefined, task.type, InvalidLimitKeyError);
    await serve(one, [{ ...limited({ globalConcurrency: 1 }, () => undefined), limitKey } as TaskHandlerEntry]);
    await add(one, ['a']);
    await turn(40);
    const { tasks } = await one.broker.listing.listTasks('default', { state: 'archived', size: 9 });
    expect(tasks.map(({ message }) => message.errorMsg)).toEqual(['limitBy of task "sync" threw: no partner']);
  });

  it('refuses a scope of which only one handler has it', () => {
    const limits = { globalConcurrency: 1, limitScope: 's' };
    const handlers = [limited(limits, () => undefined), { pattern: 'other', handle: () => undefined, limits }];
    expect(() => new Server({ broker: new MemoryBroker(), handlers })).toThrow(InvalidHandlerError);
    expect(() => new Server({ broker: new MemoryBroker(), handlers })).toThrow('only one of them has limitBy');
  });

  it('keeps nothing of a key that nothing runs or waits for', async () => {
    const { broker, clock } = fleet();
    const events = { emit: () => undefined } as never;
    const deps = {
      broker,
      clock,
      events,
      queues: { names: () => ['default'] },
      listener: IDLE,
      held: NONE_HELD,
      looks: new Looks(clock, IDLE, NONE_HELD),
    };
    const keyed = new KeyedLimiters(
      'sync',
      resolveLimits({ concurrency: 1 }, 'x', InvalidHandlerError),
      deps,
      new StartAllowance(clock, 0),
    );
    const taskOf = (key: string) => ({ type: 'sync', queue: 'default', handler: { limitKey: () => key } }) as never;
    for (let index = 0; index < 5_000; index++) {
      const task = taskOf(`k${index}`);
      const limiter = keyed.of(task);
      if (limiter instanceof Error) throw limiter;
      expect(limiter.admit(task)).toBe(true);
      keyed.left(task);
      if (index % 50 === 0) await turn();
    }
    await turn();
    expect([...keyed.used()]).toEqual([]);
  });

  it('lets no more tasks of a partner start in any window than allowed, and uses the rate while there is work', async () => {
    const [partners, rate, window, duration] = [1_000, 5, 1_000, 4_200];
    const one = fleet();
    const starts = new Map<string, number[]>();
    const handle = (task: TaskContext) => {
      const key = textOf(task);
      starts.set(key, [...(starts.get(key) ?? []), one.clock.now()]);
    };
    for (let index = 0; index < 3; index++) {
      await serve(one, [limited({ rateLimit: { max: rate, per: window } }, handle)], 200);
    }
    const keys = Array.from({ length: partners }, (_, index) => `p${index}`);
    const began = one.clock.now();
    for (let round = 0; round < 30; round++) await add(one, keys);
    while ((await numbers(one)).pending > 0) await turn(20);
    await pass(one, duration, 8, 80);
    expect(starts.size).toBe(partners);
    for (const times of starts.values()) expect(mostWithin(times, window)).toBeLessThanOrEqual(rate);
    // From the first start on the rate is full: what starts after a second is what the rate lets through from then on.
    const steady = [...starts.values()].flatMap((times) => times.filter((time) => time > began + window / 2));
    const last = Math.max(...steady);
    const share = steady.length / ((partners * rate * (last - began)) / window);
    expect(share).toBeGreaterThanOrEqual(0.95);
    expect(share).toBeLessThanOrEqual(1);
  }, 240_000);
});
