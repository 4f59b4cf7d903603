import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { AsynqInspector, PeriodicTask, TaskCtx, type TaskContext, TaskHandler } from 'nestjs-asynq';
import type { Browser } from 'playwright-core';
import { vi } from 'vitest';
import { QueueKeys } from '../../lib/wire/keys.js';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { type GoPeer, startGoPeer } from '../support/go-peer.js';
import { type RedisProcess, startRedis } from '../support/redis-server.js';
import { launch, Visit, type VisitOptions } from './chromium.js';

/** Hostile names: markup, a bidirectional override, and great length. */
export const EVIL = `<img src=x onerror=alert(1)>\u202Egnp.${'long'.repeat(60)}`;

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const HOUR = 3_600_000;

@Injectable()
class Handlers {
  /** Runs until it is stopped. */
  /** Nobody enqueues one. */
  @TaskHandler('ours:idle')
  idle(): void {}

  @TaskHandler('ours:slow')
  slow(@TaskCtx() task: TaskContext): Promise<void> {
    const { signal } = task;
    task.progress(0.4, 'page 2 of 5');
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  }

  @PeriodicTask('@every 6h', { type: 'ours:report', queue: 'reports', payload: { kind: 'daily' } })
  report(): void {}
}

/** One application with the console on a real Redis, with tasks written by Go and by us. */
export class World {
  private constructor(
    readonly redis: RedisProcess,
    readonly go: GoPeer,
    readonly console: TestConsole,
    readonly browser: Browser,
    readonly client: Redis,
  ) {}

  static async start(): Promise<World> {
    const redis = await startRedis();
    const connection = { host: redis.host, port: redis.port };
    const [go, console, browser] = await Promise.all([
      startGoPeer(redis),
      startConsole(
        { access: 'destroy', refresh: '250ms', title: 'Test console', redact: [{ type: 'secret:', fields: ['card'] }] },
        {
          asynq: { connection, server: { queues: ['ours'], concurrency: 4 }, scheduler: true },
          metadata: { providers: [Handlers] },
        },
      ),
      launch(),
    ]);
    const client = new Redis({ ...connection, protocol: 2 });
    // One test stops Redis.
    client.on('error', () => undefined);
    const world = new World(redis, go, console, browser, client);
    await world.fill();
    return world;
  }

  get inspector(): AsynqInspector {
    return this.console.app.get(AsynqInspector, { strict: false });
  }

  visit(options?: VisitOptions): Promise<Visit> {
    return Visit.start(this.browser, `${this.console.origin}/asynq/`, options);
  }

  async stop(): Promise<void> {
    await Promise.all([this.browser.close(), this.go.kill(), this.console.close()]);
    this.client.disconnect();
    await this.redis.stop();
  }

  private async fill(): Promise<void> {
    const { go } = this;
    await this.fillByGo();
    const payloads = Array.from({ length: 45 }, (_, index) => ({ index }));
    await this.console.client.enqueueMany('ours:mail', payloads, { queue: 'many' });
    await go.enqueue({
      type: EVIL,
      queue: EVIL,
      taskId: EVIL,
      payload: json({ [EVIL]: EVIL }),
      headers: { evil: EVIL },
    });
    await go.enqueue({
      type: 'secret:pay',
      queue: 'default',
      taskId: 'secret',
      payload: json({ card: '4111', sum: 1 }),
    });
    await this.client.sadd('asynq:queues', 'broken');
    await this.client.set(new QueueKeys('asynq', 'broken').pending, 'no list');
    await this.client.zadd(new QueueKeys('asynq', 'go').archived, Math.floor(Date.now() / 1000), 'ghost');
  }

  /** Tasks in every state, as asynq itself leaves them. */
  private async fillByGo(): Promise<void> {
    const { go } = this;
    const common = { queue: 'go', payload: Buffer.from('{"id":9007199254740993,"tags":["a",{"deep":[1]}]}') };
    await go.serve({
      name: 'go server',
      queues: { go: 1 },
      retryDelay: HOUR,
      behaviours: {
        'fail:': [{ do: 'fail', error: 'connection refused' }],
        'skip:': [{ do: 'skipRetry', error: 'no such user' }],
        'done:': [{ do: 'ok', result: json({ sent: true }) }],
        'hang:': [{ do: 'hang' }],
      },
    });
    for (const n of [1, 2, 3]) {
      await go.enqueue({ ...common, type: 'fail:mail', taskId: `retry-${n}` });
      await go.enqueue({ ...common, type: 'skip:mail', taskId: `archived-${n}` });
      await go.enqueue({ ...common, type: 'done:mail', taskId: `completed-${n}`, retention: HOUR });
      await go.enqueue({ ...common, type: 'later:mail', taskId: `scheduled-${n}`, processIn: HOUR });
      await go.enqueue({
        ...common,
        type: 'grouped:mail',
        taskId: `aggregating-${n}`,
        group: 'user:1',
        queue: 'default',
      });
    }
    await go.enqueue({ ...common, type: 'hang:mail', taskId: 'active-1' });
    await go.enqueue({
      ...common,
      type: 'plain',
      taskId: 'binary',
      payload: Buffer.from([0, 255, 65]),
      queue: 'default',
    });
    await vi.waitFor(
      async () => {
        const { retry, archived, completed, active } = await go.queueInfo('go');
        if (retry !== 3 || archived !== 3 || completed !== 3 || active !== 1) throw new Error('not yet');
      },
      { interval: 20 },
    );
  }
}
