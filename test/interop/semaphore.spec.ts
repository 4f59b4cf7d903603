import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqSemaphores } from '../../lib/limits/semaphores.js';
import { Server } from '../../lib/server/server.js';
import { BUILD_TIMEOUT, buildPeer, describeWithGo } from '../support/go.js';
import { request } from '../support/messages.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

interface Attempt {
  id: string;
  acquired: boolean;
}

/** A worker of Go whose tasks each take one of two tokens of "shared", and hold it until they are told to end. */
class GoWorker {
  private readonly attempts: Attempt[] = [];
  private readonly child: ChildProcessWithoutNullStreams;

  constructor(program: string, port: number) {
    this.child = spawn(program, ['-redis', `127.0.0.1:${port}`, '-scope', 'shared', '-tokens', '2']);
    createInterface({ input: this.child.stdout }).on('line', (line) => this.attempts.push(JSON.parse(line) as Attempt));
    this.child.stderr.on('data', (chunk: Buffer) => process.stderr.write(chunk));
  }

  /** Lets a task try to take a token; answers whether it got one. */
  async try(id: string): Promise<boolean> {
    this.child.stdin.write(`try ${id}\n`);
    return vi.waitFor(() => {
      const attempt = this.attempts.find((one) => one.id === id);
      if (!attempt) throw new Error(`Go has not run task ${id}`);
      return attempt.acquired;
    });
  }

  /** Lets a task that holds a token give it back. */
  end(id: string): void {
    this.child.stdin.write(`end ${id}\n`);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}

describeWithGo("a semaphore shared with Go's x/rate", () => {
  let redis: RedisProcess;
  let broker: RedisBroker;
  let worker: GoWorker;

  beforeAll(async () => {
    redis = await startRedis();
    broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: redis.port }));
    worker = new GoWorker(await buildPeer('go-rate'), redis.port);
  }, BUILD_TIMEOUT);
  afterAll(async () => {
    worker?.kill();
    await broker?.close();
    await redis?.stop();
  });

  it('counts the tokens of both', async () => {
    const shared = new AsynqSemaphores(broker).get('shared', 2);
    const task = (id: string) => ({ id, deadline: new Date(Date.now() + 60_000) });

    expect(await shared.acquire(task('ours-1'))).toBe(true);
    expect(await worker.try('go-1')).toBe(true);
    expect(await shared.acquire(task('ours-2'))).toBe(false);
    expect(await worker.try('go-2')).toBe(false);

    expect(await shared.release(task('ours-1'))).toBe(true);
    expect(await worker.try('go-3')).toBe(true);
    expect(await shared.acquire(task('ours-3'))).toBe(false);

    worker.end('go-1'); // which Go then releases
    await vi.waitFor(async () => expect(await shared.acquire(task('ours-4'))).toBe(true));
    expect(await shared.acquire(task('ours-5'))).toBe(false);
    expect(await shared.release(task('go-3'))).toBe(true); // one key, one spelling of the holders
    worker.end('go-3');
  });

  it('is the one of a handler with globalConcurrency and that limitScope', async () => {
    expect(await broker.limiting.releaseTokens('shared', ['ours-4'])).toBe(1);
    expect([await worker.try('go-a'), await worker.try('go-b')]).toEqual([true, true]);
    let end = (): void => {};
    const handle = (): Promise<void> => new Promise((resolve) => (end = resolve));
    const limits = { globalConcurrency: 2, limitScope: 'shared' };
    const server = new Server({
      broker,
      handlers: [{ pattern: 'ours', handle, limits }],
      options: { queues: ['ours'] },
    });
    await broker.producer.enqueue('ours', [request({ id: 'limited', type: 'ours', queue: 'ours' })]);
    const state = async () => (await broker.inspection.getTask('ours', 'limited'))?.state;
    await server.start();
    await vi.waitFor(async () => expect(await state()).toBe('held'));
    const raw = new Redis(redis.port, '127.0.0.1');
    onTestFinished(() => raw.disconnect());
    // Where Go shows that it waits. It is taken now and then to try again: the state of one moment says little.
    await vi.waitFor(async () => expect(await raw.hget('asynq:{ours}:t:limited', 'state')).toBe('retry'));
    worker.end('go-a');
    await vi.waitFor(async () => expect(await state()).toBe('active'));
    expect(await worker.try('go-c')).toBe(false);
    end();
    await vi.waitFor(async () => expect(await state()).toBeUndefined());
    await vi.waitFor(async () => expect(await worker.try(`go-${Math.random()}`)).toBe(true));
    await server.shutdown();
  });
});
