import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { SystemClock } from '../../lib/clock.js';
import type { QueueOptions } from '../../lib/server/fetching/queue-options.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import type { TaskLimits } from '../../lib/task/limits.js';
import { request } from '../support/messages.js';
import { RedisFleet } from '../support/redis-fleet.js';

/** Expects that no window, in milliseconds, had more than `max` of the starts, which are times of one clock. */
function expectWithin(max: number, window: number, starts: readonly number[]): void {
  const sorted = starts.toSorted((a, b) => a - b);
  for (let index = max; index < sorted.length; index++) {
    expect(sorted[index]! - sorted[index - max]!).toBeGreaterThanOrEqual(window);
  }
}

/** Lets the event loop stand still. */
function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

describe('limits of a queue, several servers on one Redis', () => {
  let fleet: RedisFleet;

  beforeAll(async () => {
    fleet = await RedisFleet.start();
  });
  afterAll(() => fleet.stop());
  beforeEach(() => fleet.client.flushall());
  afterEach(() => fleet.end());

  /** Runs tasks with `options` on three servers; resolves when all have ended. */
  async function run(count: number, options: QueueOptions, handle: () => unknown): Promise<void> {
    let ended = 0;
    const requests = Array.from({ length: count }, () => request({ type: 't' }));
    await fleet.makeBroker().producer.enqueue('default', requests);
    await new Promise<void>((resolve) => {
      const counted = async (): Promise<void> => {
        await handle();
        if (++ended === count) resolve();
      };
      for (let index = 0; index < 3; index++) {
        const handlers = [{ pattern: 't', handle: counted }];
        const server = new Server({ broker: fleet.makeBroker(), handlers, options: { queues: { default: options } } });
        fleet.servers.push(server);
        void server.start();
      }
    });
  }

  it('globalConcurrency is never exceeded and always used', async () => {
    let running = 0;
    let most = 0;
    await run(300, { globalConcurrency: 4 }, async () => {
      most = Math.max(most, ++running);
      await setImmediate();
      running--;
    });
    expect(most).toBe(4);
    expect(fleet.servers.every(({ status }) => status === 'active')).toBe(true);
  });

  it('rateLimit is never exceeded, by any number of servers', async () => {
    const window = 160;
    const starts: number[] = [];
    await run(100, { rateLimit: { max: 20, per: window } }, () => void starts.push(performance.now()));
    expectWithin(20, window, starts);
    const key = 'asynq:{default}:rate:160';
    expect(await fleet.client.type(key)).toBe('hash');
    expect(await fleet.client.pttl(key)).toBeGreaterThan(0);
  });

  describe.each(['fairness', 'limitBy'])('a rate for each of 20 partners by %s, three servers', (way) => {
    const [partners, max, window, rounds] = [20, 5, 300, 30];

    it('never lets more start in any window, though the event loop stands still now and then', async () => {
      const starts = new Map<string, number[]>();
      const isFair = way === 'fairness';
      const work = Array.from({ length: partners * rounds }, (_, index) => {
        const key = `p${index % partners}`;
        const headers = isFair ? { 'asynq-fairness': `1 0 ${max} ${window} ${key}` } : undefined;
        return request({ type: 'sync', payload: Buffer.from(key), ...(headers && { headers }) });
      });
      const makeOne = (): RedisBroker => {
        const broker = fleet.makeBroker();
        if (isFair) broker.fairQueues.add('default');
        return broker;
      };
      await makeOne().producer.enqueue('default', work);
      let left = work.length;
      await new Promise<void>((resolve) => {
        const handle = ({ payload }: TaskContext): void => {
          const key = payload.toString();
          starts.set(key, [...(starts.get(key) ?? []), performance.now()]);
          left -= 1;
          if (left % 40 === 0) block(20); // a reply that is there waits as long
          if (left === 0) resolve();
        };
        const limits = { rateLimit: { max, per: window } };
        const limitKey = ({ payload }: TaskContext): string => payload.toString();
        const limited = { pattern: 'sync', handle, limits, limitKey };
        for (let index = 0; index < 3; index++) {
          const handlers = [isFair ? { pattern: 'sync', handle } : limited];
          const server = new Server({ broker: makeOne(), handlers });
          fleet.servers.push(server);
          void server.start();
        }
      });
      expect(starts.size).toBe(partners);
      for (const times of starts.values()) expectWithin(max, window, times);
    });
  });

  it('rateLimit holds even if the clocks of servers differ, once the one that is ahead has counted', async () => {
    const starts = async (skew: number, wanted: number): Promise<number> => {
      const real = new SystemClock();
      const clock = { now: () => real.now() + skew, elapsed: () => real.elapsed(), after: real.after.bind(real) };
      const { limiting } = fleet.makeBroker({ clock });
      return (await limiting.takeStarts('scope', { max: 10, window: 60_000 }, wanted)).granted;
    };
    expect(await starts(600_000, 4)).toBe(4);
    expect(await starts(0, 4)).toBe(4);
    expect(await starts(-600_000, 1)).toBe(1);
    expect(await starts(600_000, 4)).toBe(1);
    expect(await starts(0, 4)).toBe(0);
    const counts = await fleet.client.hgetall('asynq:starts:60000:scope');
    expect(Math.max(...Object.keys(counts).map((at) => Number(at) || 0))).toBeGreaterThan(Date.now() + 590_000);
    // Without an expiry Redis does not know how much of the window has passed.
    await fleet.client.persist('asynq:starts:60000:scope');
    expect(await starts(0, 4)).toBe(0);
  });

  describe('limits of a handler', () => {
    /** The same with a limited handler, and tasks of another one among them. */
    async function runLimited(count: number, limits: TaskLimits, handle: () => unknown): Promise<string[]> {
      const started: string[] = [];
      const requests = Array.from({ length: count }, (_, n) =>
        request({ type: n % 3 === 2 ? 'free' : 'narrow', id: `n${n}` }),
      );
      await fleet.makeBroker().producer.enqueue('default', requests);
      await new Promise<void>((resolve) => {
        let ended = 0;
        const narrow = async ({ id }: { id: string }): Promise<void> => {
          started.push(id);
          await handle();
          if (++ended === count) resolve();
        };
        const free = (): void => void (++ended === count && resolve());
        for (let index = 0; index < 3; index++) {
          const handlers = [
            { pattern: 'narrow', handle: narrow, limits },
            { pattern: 'free', handle: free },
          ];
          const server = new Server({ broker: fleet.makeBroker(), handlers });
          fleet.servers.push(server);
          void server.start();
        }
      });
      return started;
    }

    it('globalConcurrency is never exceeded and always used, and every task runs once', async () => {
      let running = 0;
      let most = 0;
      const started = await runLimited(300, { globalConcurrency: 4 }, async () => {
        most = Math.max(most, ++running);
        await setImmediate();
        running--;
      });
      expect(most).toBe(4);
      expect([started.length, new Set(started).size]).toEqual([200, 200]);
      await Promise.all(fleet.servers.map((server) => server.shutdown()));
      expect(await fleet.client.zcard('asynq:sema:narrow')).toBe(0);
      expect(await fleet.client.get('asynq:{default}:failed')).toBeNull();
      expect(await fleet.client.keys('asynq:{default}:t:*')).toEqual([]);
    });

    it('rateLimit is never exceeded', async () => {
      const window = 160;
      const starts: number[] = [];
      await runLimited(60, { rateLimit: { max: 10, per: window } }, () => void starts.push(performance.now()));
      expect(starts).toHaveLength(40);
      expectWithin(10, window, starts);
      expect(await fleet.client.pttl('asynq:starts:160:narrow')).toBeGreaterThan(0);
    });

    it('tokens of a dead process become free, and its waiting tasks run', async () => {
      const now = Math.floor(Date.now() / 1000);
      await fleet.client.zadd('asynq:sema:narrow', now - 1, 'dead', now - 1, 'gone');
      const broker = fleet.makeBroker();
      await broker.producer.enqueue('default', [request({ type: 'narrow', id: 'left' })]);
      const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
      await broker.consumer.exchange('default', {
        settle: [{ kind: 'wait', lease: tasks[0]!.lease, waitlist: 'narrow' }],
        take: 0,
      });
      const started = await runLimited(3, { globalConcurrency: 1 }, () => undefined);
      await vi.waitFor(() => expect(started).toContain('left'));
    });
  });
});
