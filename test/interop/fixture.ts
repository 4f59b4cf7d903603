import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, vi } from 'vitest';

import { BUILD_TIMEOUT } from '../support/go.js';
import { type GoPeer, type GoState, type GoTask, startGoPeer } from '../support/go-peer.js';
import { type OurPeer, startOurPeer } from '../support/our-peer.js';
import type { Peer, PeerServe, PeerServer, PeerStep } from '../support/peer.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

/** One Redis with a Go process and one of ours on it. Go's inspector is the judge of what is stored. */
export class Interop {
  redis!: RedisProcess;
  go!: GoPeer;
  ours!: OurPeer;
  /** A bare connection, for what neither side offers. */
  raw!: Redis;
  private queues = 0;

  /** A queue of its own for each test. */
  queue(): string {
    return `q${++this.queues}`;
  }

  /** Runs a server until the end of the test, or until it is shut down before. */
  async serve(peer: Peer, queue: string | string[], options: Omit<PeerServe, 'queues'>): Promise<PeerServer> {
    const queues = Object.fromEntries([queue].flat().map((name) => [name, 1]));
    const server = await peer.serve({ queues, ...options });
    onTestFinished(() => server.shutdown());
    return server;
  }

  /** Two tasks in every state, enqueued by one side and run by the other; the queue is paused, and its server at work. */
  async arrangeEveryState(queue: string, producer: Peer, consumer: Peer): Promise<void> {
    const behaviours: Record<string, PeerStep[]> = {
      ok: [{ do: 'ok', result: Buffer.from('r') }],
      fail: [{ do: 'fail', error: 'nö' }],
      hold: [{ do: 'hold' }],
    };
    await this.serve(consumer, queue, { retryDelay: 3_600_000, behaviours });
    for (let index = 0; index < 2; index++) {
      const payload = Buffer.from([0, index]);
      await producer.enqueue({ type: 'ok', queue, payload, retention: 3_600_000, headers: { k: 'v' } });
      await producer.enqueue({ type: 'fail', queue, payload, maxRetry: 3 });
      await producer.enqueue({ type: 'fail', queue, maxRetry: 0 });
      const { id } = await producer.enqueue({ type: 'hold', queue, payload, timeout: 60_000 });
      await consumer.event('start', { id });
    }
    await this.until(async () =>
      expect(await this.go.queueInfo(queue)).toMatchObject({ completed: 2, retry: 2, archived: 2, active: 2 }),
    );
    await this.go.pause(queue);
    for (let index = 0; index < 2; index++) {
      await producer.enqueue({ type: 'wait', queue });
      await producer.enqueue({ type: 'wait', queue, processIn: 3_600_000 + index * 60_000 });
      await producer.enqueue({ type: 'wait', queue, group: 'g' });
    }
  }

  /** Resolves when Go's inspector sees the task in this state. */
  async untilState(queue: string, id: string, state: GoState): Promise<GoTask> {
    return this.until(async () => {
      const task = await this.go.taskInfo(queue, id);
      expect(task.state).toBe(state);
      return task;
    });
  }

  /** Resolves when nothing is left of the task. */
  async untilGone(queue: string, id: string): Promise<void> {
    await this.until(() => expect(this.go.taskInfo(queue, id)).rejects.toMatchObject({ kind: 'task not found' }));
  }

  /** Resolves when a server listens for cancellations: like Go's, ours may start its first task before. */
  async untilSubscribed(): Promise<void> {
    await this.until(async () => expect(await this.raw.pubsub('NUMSUB', 'asynq:cancel')).toEqual(['asynq:cancel', 1]));
  }

  /** Moves the time at which scheduled and retried tasks of the queue are due into the past. */
  async makeDue(queue: string, state: 'scheduled' | 'retry'): Promise<void> {
    await this.moveScores(`asynq:{${queue}}:${state}`, -1);
  }

  /** A condition in Redis: there is no event to wait for. */
  until<T>(condition: () => Promise<T>): Promise<T> {
    return vi.waitFor(condition, { interval: 10 });
  }

  /** Lets all leases of the queue end a minute ago, so that any recoverer takes the tasks. Answers how many. */
  expireLeases(queue: string): Promise<number> {
    return this.moveScores(`asynq:{${queue}}:lease`, -60);
  }

  /** Lets leases be those of tasks that were taken a minute later than they were. */
  postponeLeases(queue: string): Promise<number> {
    return this.moveScores(`asynq:{${queue}}:lease`, 90);
  }

  /** Moves all members of a sorted set to this many seconds from now; answers their number. */
  private async moveScores(key: string, seconds: number): Promise<number> {
    const score = String(Math.floor(Date.now() / 1000) + seconds);
    const ids = await this.raw.zrange(key, '0', '-1');
    if (ids.length > 0) await this.raw.zadd(key, 'XX', ...ids.flatMap((id) => [score, id]));
    return ids.length;
  }
}

/** Starts both sides for the tests of a file. */
export const useInterop = (): Interop => {
  const interop = new Interop();
  beforeAll(async () => {
    interop.redis = await startRedis();
    interop.raw = new Redis(interop.redis.port, interop.redis.host);
    [interop.go, interop.ours] = await Promise.all([startGoPeer(interop.redis), startOurPeer(interop.redis)]);
  }, BUILD_TIMEOUT);
  afterAll(async () => {
    await interop.go?.kill();
    await interop.ours?.kill();
    interop.raw?.disconnect();
    await interop.redis?.stop();
    expect(interop.ours?.stderr, 'what our process complained about').toBe('');
  });
  return interop;
};

/** Starts Go alone for the tests of a file. */
export const useGo = (): Pick<Interop, 'go'> => {
  const alone = new Interop();
  beforeAll(async () => {
    alone.redis = await startRedis();
    alone.go = await startGoPeer(alone.redis);
  }, BUILD_TIMEOUT);
  afterAll(async () => {
    await alone.go?.kill();
    await alone.redis?.stop();
  });
  return alone;
};

/** Who enqueues and who runs. Go beside itself is the control: it shows that a test expects what asynq does. */
export const PAIRS = [
  ['go', 'go'],
  ['go', 'ours'],
  ['ours', 'go'],
] as const;

export const base64 = (bytes: Buffer | string): string => Buffer.from(bytes).toString('base64');
