import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { defineSignal } from '../../lib/task/signal.js';
import type { TaskSteps } from '../../lib/task/steps.js';
import { startRedis, type RedisProcess } from '../support/redis.js';

const Go = defineSignal<number>('go');

interface Fleet {
  readonly redis: RedisProcess;
  readonly client: AsynqClient;
  readonly effects: string[];
  /** What a step does outside. */
  effect(what: string): void;
  /** Resolves when an attempt of the type has this outcome. */
  ended(type: string, outcome: string): Promise<unknown>;
}

/**
 * How Redis keeps its data. With `everysec` it replies before it writes while the disk is still busy with the second before; a kill loses that,
 * also the task. So the tests of `everysec` kill Redis when it has written all that it had replied to.
 */
const durabilities = {
  always: ['--appendonly', 'yes', '--appendfsync', 'always'],
  everysec: ['--appendonly', 'yes', '--appendfsync', 'everysec'],
  /** A kill sets it back to the last SAVE, as a slow disk sets back one with `everysec`. */
  'a last save': ['--dbfilename', 'dump.rdb'],
};

/** A server on a Redis of its own. */
async function serve(
  durability: keyof typeof durabilities,
  handle: (steps: TaskSteps, fleet: Fleet) => Promise<unknown>,
  pack: (fleet: Fleet) => unknown,
): Promise<Fleet> {
  const redis = await startRedis({ args: durabilities[durability] });
  onTestFinished(() => redis.stop());
  const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
  const events = new AsynqEvents();
  const relay = new Relay(broker.links, events);
  const client = new AsynqClient(broker);
  const effects: string[] = [];
  const fleet: Fleet = {
    redis,
    client,
    effects,
    effect: (what) => void effects.push(what),
    ended: (type, outcome) =>
      new Promise((resolve) =>
        events.on('taskFinished', (event) => {
          if (event.task.type === type && event.outcome === outcome) resolve(event);
        }),
      ),
  };
  const server = new Server({
    broker,
    relay,
    events,
    contexts: client.taskContexts,
    options: { retryDelay: () => 0, delayedTaskCheckInterval: 100 },
    handlers: [
      { pattern: 'order', handle: ({ steps }: TaskContext) => handle(steps, fleet) },
      { pattern: 'pack', handle: async () => pack(fleet) },
    ],
  });
  await server.start();
  onTestFinished(async () => {
    await server.shutdown();
    await client.close();
    await relay.close();
    await broker.close();
  });
  return fleet;
}

/** A command of a connection of its own. */
async function ask<T>({ host, port }: RedisProcess, command: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ host, port });
  try {
    return await command(redis);
  } finally {
    redis.disconnect();
  }
}

/** Resolves when Redis has given all that it has replied to to the system. */
const written = (redis: RedisProcess) =>
  expect.poll(() => ask(redis, (one) => one.info('persistence'))).toContain('aof_buffer_length:0\r\n');

async function killWhenWritten(redis: RedisProcess): Promise<void> {
  await written(redis);
  await redis.restart();
}

describe.each(['always', 'everysec'] as const)('a Redis with appendfsync %s that is killed', (appendfsync) => {
  it('while a step works, and while its result is stored, has that step run twice at most, and no other', async () => {
    let [kills, stores] = [0, 0];
    let restarted: Promise<void> | undefined;
    const fleet = await serve(
      appendfsync,
      async (steps, { redis, effect }) => {
        await steps.run('before', () => effect('before'));
        await steps.run('during', async () => {
          effect('during');
          if (kills++ === 0) await killWhenWritten(redis);
        });
        await steps.run('stored', async () => {
          effect('stored');
          if (stores++ > 0) return;
          await written(redis);
          restarted = redis.restart(); // its result is on its way when the process ends
        });
        await steps.run('after', () => effect('after'));
      },
      () => undefined,
    );
    const done = fleet.ended('order', 'done');
    await fleet.client.enqueue('order', undefined);
    await done;
    await restarted;
    const { effects } = fleet;
    expect([...new Set(effects)]).toEqual(['before', 'during', 'stored', 'after']);
    const times = (what: string): number => effects.filter((one) => one === what).length;
    expect([times('before'), times('after')]).toEqual([1, 1]);
    expect(times('during')).toBeLessThanOrEqual(2);
    expect(times('stored')).toBeLessThanOrEqual(2);
  });

  it('while the handler waits for a called task, and for a signal, leaves no wait', async () => {
    let kills = 0;
    let isWaiting = (): void => undefined;
    const fleet = await serve(
      appendfsync,
      async (steps, { effect }) => {
        await steps.run('before', () => effect('before'));
        effect(`packed ${await steps.call('pack', 'pack', undefined)}`);
        isWaiting();
        const by = await steps.waitFor('approved', Go);
        await steps.run('after', () => effect(`after ${by}`));
      },
      async ({ redis }) => {
        if (kills++ === 0) await killWhenWritten(redis);
        return 7;
      },
    );
    const done = fleet.ended('order', 'done');
    const waits = new Promise<void>((resolve) => (isWaiting = resolve));
    const info = await fleet.client.enqueue('order', undefined);
    await waits;
    await killWhenWritten(fleet.redis);
    await expect
      .poll(() =>
        fleet.client.signal(info, Go, 3).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await done;
    expect(new Set(fleet.effects)).toEqual(new Set(['before', 'packed 7', 'after 3']));
    expect(fleet.effects.filter((what) => !what.startsWith('packed'))).toEqual(['before', 'after 3']);
  });
});

describe('a Redis that has lost what it had replied to', () => {
  it('has the steps run again whose results it lost, and skips none', async () => {
    let kills = 0;
    const fleet = await serve(
      'a last save',
      async (steps, { redis, effect }) => {
        await steps.run('saved', () => effect('saved'));
        await steps.run('save', () => ask(redis, (one) => one.save()));
        await steps.run('lost', () => effect('lost'));
        await steps.run('during', async () => {
          effect('during');
          if (kills++ === 0) await redis.restart();
        });
        await steps.run('after', () => effect('after'));
      },
      () => undefined,
    );
    const done = fleet.ended('order', 'done');
    await fleet.client.enqueue('order', undefined);
    await done;
    expect(fleet.effects).toEqual(['saved', 'lost', 'during', 'lost', 'during', 'after']);
  });
});
