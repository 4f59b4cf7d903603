import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ExchangeReply } from '../../../lib/broker/broker.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ManualClock } from '../../../lib/clock.js';
import { KeyedLimiters } from '../../../lib/server/attempt/keyed-limiters.js';
import { Server } from '../../../lib/server/server.js';
import type { TaskLimits } from '../../../lib/task/limits.js';
import { request } from '../../support/messages.js';
import { manualClock, turn } from '../../support/server-rig.js';

const servers: Server[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.shutdown()));
});

/** Three servers with a limit for each key, and tasks: `each` of each of `keys`. */
async function fleet(limits: TaskLimits, { keys, each }: { keys: number; each: number }, concurrency = 10) {
  const clock = manualClock();
  const broker = new MemoryBroker(clock);
  const started: string[] = [];
  const running = new Map<string, number>();
  let most = 0;
  const handle = async ({ payload }: { payload: Buffer }): Promise<void> => {
    const key = payload.toString();
    started.push(key);
    running.set(key, (running.get(key) ?? 0) + 1);
    most = Math.max(most, running.get(key)!);
    await new Promise<void>((resolve) => void clock.after(20, resolve));
    running.set(key, running.get(key)! - 1);
  };
  const requests = Array.from({ length: keys * each }, (_, index) =>
    request({ type: 'sync', payload: Buffer.from(`k${index % keys}`) }),
  );
  await broker.producer.enqueue('default', requests);
  const start = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      const handlers = [
        { pattern: 'sync', handle, limits, limitKey: ({ payload }: { payload: Buffer }) => `${payload}` },
      ];
      const server = new Server({ broker, handlers, options: { concurrency } });
      servers.push(server);
      await server.start();
    }
  };
  return { broker, clock, started, start, mostAtATime: () => most };
}

async function pass(clock: ManualClock, milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 20) {
    clock.advance(20);
    await turn(3);
  }
}

describe('limitBy with many keys', () => {
  it('asks little for tokens that others have, and runs all when they are free', async () => {
    const [keys, seconds] = [1_500, 4];
    const { broker, clock, started, start } = await fleet({ globalConcurrency: 1 }, { keys, each: 1 });
    const scopes = Array.from({ length: keys }, (_, index) => `sync:k${index}`);
    const until = Math.floor(clock.now() / 1000) + 3_600;
    for (const scope of scopes) await broker.limiting.acquireTokens(scope, 1, until, ['other']);
    await start(3);
    await pass(clock, 6_000);
    expect((await broker.inspection.describeQueue('default'))!.held).toBe(keys);
    const calls = ['acquireTokens', 'requestToken', 'tokenRequest'] as const;
    const spies = calls.map((name) => vi.spyOn(broker.limiting, name));
    await pass(clock, seconds * 1_000);
    const counts = spies.map(({ mock }) => mock.calls.length);
    // 200 looks a second and server, and some to spare: one a second for each key would be 4,500.
    expect(counts[0]).toBeGreaterThan(500 * seconds);
    for (const count of counts) expect(count).toBeLessThan(700 * seconds);
    expect(started).toEqual([]);
    for (const scope of scopes) await broker.limiting.releaseTokens(scope, ['other']);
    await pass(clock, 6_000);
    expect(new Set(started).size).toBe(keys);
    expect(started).toHaveLength(keys);
  });

  it('takes no more tokens than there are slots, when servers find many keys that wait', async () => {
    const [keys, slots] = [600, 4];
    const { broker, clock, started, start, mostAtATime } = await fleet(
      { globalConcurrency: 1 },
      { keys, each: 2 },
      slots,
    );
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 2 * keys });
    const settle = tasks.map(({ lease, message }) => ({
      kind: 'wait' as const,
      lease,
      waitlist: `sync:${message.payload.toString()}`,
    }));
    await broker.consumer.exchange('default', { settle, take: 0 });
    let [tokens, mostTokens] = [0, 0];
    const { limiting } = broker;
    const [acquire, release] = [limiting.acquireTokens.bind(limiting), limiting.releaseTokens.bind(limiting)];
    vi.spyOn(limiting, 'acquireTokens').mockImplementation(async (...args) => {
      const got = await acquire(...args);
      mostTokens = Math.max(mostTokens, (tokens += got.filter(Boolean).length));
      return got;
    });
    vi.spyOn(limiting, 'releaseTokens').mockImplementation(async (...args) => {
      const count = await release(...args);
      tokens -= count;
      return count;
    });
    await start(3);
    await pass(clock, 9_000);
    expect(started).toHaveLength(2 * keys);
    expect(mostAtATime()).toBe(1);
    expect(mostTokens).toBeGreaterThanOrEqual(3 * slots);
    expect(mostTokens).toBeLessThanOrEqual(3 * 3 * slots); // all of tasks that have ended together may be on their way back
  });

  it('knows few of many keys that wait at a time, and comes to all', async () => {
    const [keys, limits] = [6_000, { globalConcurrency: 1 }];
    const { broker, clock, started, start } = await fleet(limits, { keys, each: 1 });
    for (let left = keys; left > 0;) {
      const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 500 });
      left -= tasks.length;
      const settle = tasks.map(({ lease, message }) => ({
        kind: 'wait' as const,
        lease,
        waitlist: `sync:${message.payload.toString()}`,
      }));
      await broker.consumer.exchange('default', { settle, take: 0 });
    }
    const scopes = Array.from({ length: keys }, (_, index) => `sync:k${index}`);
    const until = Math.floor(clock.now() / 1000) + 3_600;
    for (const scope of scopes) await broker.limiting.acquireTokens(scope, 1, until, ['other']);
    const looks = vi.spyOn(broker.limiting, 'acquireTokens');
    const passes = vi.spyOn(KeyedLimiters.prototype, 'makeRoom');
    await start(1);
    let most = 0;
    for (let seconds = 0; seconds < 15; seconds++) {
      await pass(clock, 1_000);
      most = Math.max(most, [...(passes.mock.contexts[0] as KeyedLimiters).used()].length);
    }
    expect(most).toBeGreaterThanOrEqual(2_000);
    expect(most).toBeLessThan(4_000);
    expect(new Set(looks.mock.calls.map(([scope]) => scope)).size).toBeGreaterThan(2_500); // 200 a second
    expect(started).toEqual([]);
    for (const scope of scopes) await broker.limiting.releaseTokens(scope, ['other']);
    await pass(clock, 30_000);
    expect(new Set(started).size).toBe(keys);
    expect(started).toHaveLength(keys);
  });

  it('takes each task about once when rates have room again, however many servers know of it', async () => {
    const [keys, each] = [100, 3];
    const { broker, clock, started, start } = await fleet({ rateLimit: { max: 1, per: 2_000 } }, { keys, each });
    const wakes = vi.spyOn(broker.limiting, 'wakeWaiting');
    const exchanges = vi.spyOn(broker.consumer, 'exchange');
    const woken = async (): Promise<number> => {
      const replies = await Promise.all(wakes.mock.results.map(({ value }) => value as Promise<{ woken: number }>));
      return replies.reduce((sum, reply) => sum + reply.woken, 0);
    };
    const claimed = async (): Promise<number> => {
      const replies = await Promise.all(exchanges.mock.results.map(({ value }) => value as Promise<ExchangeReply>));
      return replies.flatMap(({ held }) => [...(held?.values() ?? [])]).reduce((sum, reply) => sum + reply.claimed, 0);
    };
    await start(3);
    await pass(clock, 9_000);
    expect(started).toHaveLength(keys * each);
    // Two of each key wait. If each server took one for each window, 6 would be, and 4 put aside again. A few more are, as servers look at random times.
    const taken = (await woken()) + (await claimed());
    expect(taken).toBeGreaterThanOrEqual(2 * keys);
    expect(taken).toBeLessThan(3 * keys);
    expect(await claimed()).toBeGreaterThan(keys / 4); // where there are slots, no call wakes them
  });

  it('goes on when the server that would wake the successors has died', async () => {
    const { broker, clock, started, start } = await fleet({ rateLimit: { max: 1, per: 2_000 } }, { keys: 50, each: 2 });
    await start(3);
    await pass(clock, 1_000);
    expect(started).toHaveLength(50);
    const [dead] = servers.splice(0, 1);
    await Promise.all([dead!.shutdown(), pass(clock, 500)]);
    await pass(clock, 2_500);
    expect(started).toHaveLength(100);
    expect((await broker.inspection.describeQueue('default'))!.held).toBe(0);
  });

  it('leaves a successor to another server when this one has no slot for it', async () => {
    const clock = manualClock();
    const broker = new MemoryBroker(clock);
    const started: number[] = [];
    const sync = {
      pattern: 'sync',
      handle: () => {
        started.push(clock.now());
      },
      limits: { rateLimit: { max: 1, per: 1_000 } },
      limitKey: () => 'one',
    };
    const long = { pattern: 'long', handle: () => new Promise<void>((resolve) => void clock.after(10_000, resolve)) };
    const start = async (handlers: readonly (typeof sync | typeof long)[]): Promise<void> => {
      const server = new Server({ broker, handlers, options: { concurrency: 1 } });
      servers.push(server);
      await server.start();
    };
    const begin = clock.now();
    await start([sync, long]);
    await broker.producer.enqueue('default', [request({ type: 'sync' }), request({ type: 'sync' })]);
    await pass(clock, 100);
    await broker.producer.enqueue('default', [request({ type: 'long' })]);
    await pass(clock, 100);
    await start([sync]);
    const woken = vi.spyOn(broker.limiting, 'wakeWaiting');
    await pass(clock, 1_800);
    expect(started).toHaveLength(2);
    expect(started[1]! - begin).toBeLessThan(1_250); // sooner than the other one looks by itself
    expect(woken).toHaveBeenCalledTimes(1);
    await Promise.all([pass(clock, 10_000), ...servers.splice(0).map((server) => server.shutdown())]);
  });
});
