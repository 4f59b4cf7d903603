import { describe, expect, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Relay } from '../../lib/links/relay.js';
import type { ServerOptions } from '../../lib/server/options.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { PostponeTask } from '../../lib/task/postpone.js';
import { defineSignal } from '../../lib/task/signal.js';
import { workflow } from '../../lib/workflows/workflow.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { signal as latch } from './support.js';

const Approval = defineSignal<{ by: string }>('approval');

/** A server whose clock goes: one that has lost a wake-up rests for some milliseconds. */
async function serve(
  driver: RedisDriver,
  handle: (task: TaskContext) => Promise<unknown>,
  { fair = [] as string[], ...options }: { fair?: string[] } & ServerOptions = {},
) {
  const { server: redis } = driver;
  const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: redis.port }));
  for (const queue of fair) broker.fairQueues.add(queue);
  const events = new AsynqEvents();
  const outcomes: string[] = [];
  let heard = latch();
  events.on('taskFinished', ({ outcome }) => {
    outcomes.push(outcome);
    heard.fire();
  });
  const relay = new Relay(broker.links, events);
  const server = new Server({ broker, relay, events, handlers: [{ pattern: 'do', handle }], options });
  const client = new AsynqClient(broker);
  await server.start();
  onTestFinished(async () => {
    await server.shutdown();
    await client.close();
    await relay.close();
    await broker.close();
  });
  /** Resolves when so many attempts have ended. */
  const until = async (count: number): Promise<string[]> => {
    while (outcomes.length < count) {
      heard = latch();
      if (outcomes.length < count) await heard.fired;
    }
    return outcomes;
  };
  return { client, until, server };
}

describe.each(['plain', 'fair'])('in a %s queue', (kind) => {
  it('a signal wakes a handler on a server that runs', async ({ driver }) => {
    const seen: unknown[] = [];
    const handle = async ({ steps }: TaskContext): Promise<void> => {
      seen.push(await steps.run('first', () => seen.length));
      seen.push(await steps.waitFor('approved', Approval));
    };
    const { client, until } = await serve(driver, handle, { fair: kind === 'fair' ? ['default'] : [] });
    const info = await client.enqueue('do', undefined);
    expect(await until(1)).toEqual(['suspended']);
    expect(await driver.redis.zscore(driver.keys.scheduled, info.id)).not.toBeNull();
    await client.signal(info, Approval, { by: 'anna' });
    expect(await until(2)).toEqual(['suspended', 'done']);
    expect(seen).toEqual([0, 0, { by: 'anna' }]);
    expect(await driver.redis.exists(driver.keys.task(info.id))).toBe(0);
  });
});

it('rows end before the next one when the server shuts down, and go on elsewhere', async ({ driver }) => {
  const rows: number[] = [];
  let begun = latch();
  const handle = ({ steps }: TaskContext): Promise<number> =>
    steps.each(
      'rows',
      Array.from({ length: 2_000 }, (_, n) => n),
      async (row) => {
        rows.push(row);
        if (rows.length === 3) begun.fire();
        if (rows.length < 1_000) await new Promise((resolve) => setTimeout(resolve, 5));
      },
    );
  const first = await serve(driver, handle, { shutdownTimeout: '10m' }); // which is not waited for
  await first.client.enqueue('do', undefined);
  await begun.fired;
  await first.server.shutdown();
  const ended = rows.length;
  expect(ended).toBeLessThan(1_500);
  expect(await first.until(1)).toEqual(['requeued']);
  rows.length = 1_000; // those that are left take no time
  const second = await serve(driver, handle);
  expect(await second.until(1)).toEqual(['done']);
  expect(rows.slice(1_000)).toEqual(Array.from({ length: 2_000 - ended }, (_, n) => n + ended));
});

it('a step of a workflow sleeps in a step of its handler, and its run goes on', async ({ driver }) => {
  const seen: unknown[] = [];
  const { client, until } = await serve(driver, async ({ steps, payload }) => {
    const name = JSON.parse(String(payload)) as string;
    if (name === 'a') seen.push(await steps.waitFor('approved', Approval));
    return name;
  });
  const flow = workflow('flow').add('a', 'do', 'a').add('b', 'do', 'b', { after: 'a' });
  const run = await client.start(flow, { id: '1' });
  expect(await until(1)).toEqual(['suspended']);
  const [id] = await driver.redis.zrange(driver.keys.scheduled, 0, '-1');
  await client.signal({ queue: 'default', id: id! }, Approval, { by: 'anna' });
  expect(await until(3)).toEqual(['suspended', 'done', 'done']);
  expect(await run.done()).toMatchObject({ state: 'succeeded', steps: { a: { result: 'a' }, b: { result: 'b' } } });
  expect(seen).toEqual([{ by: 'anna' }]);
});

it('a handler without steps costs no command more, and no field', async ({ driver }) => {
  const { client, until } = await serve(driver, () => Promise.resolve());
  await driver.redis.config('RESETSTAT');
  await client.enqueue('do', undefined);
  await until(1);
  expect(await driver.redis.info('commandstats')).not.toContain('cmdstat_hgetall');
});

it('the inspector sees how a called task has ended before the handler does', async ({ driver }) => {
  const id = await driver.add();
  const head = JSON.stringify({ n: 0, kind: 'call', at: driver.clock.now(), queue: 'render', id: 'b' });
  const fields = { 'did:invoice': `${head}\n`, 'answer:invoice': '{"ok":true}\n{"url":"/7"}', 'answer:old': '{}' };
  await driver.redis.hset(driver.keys.task(id), fields);
  const { steps, total } = (await new AsynqInspector(driver.broker).steps('default', id))!;
  expect(total).toBe(1);
  expect(steps).toMatchObject([{ name: 'invoice', state: 'done', result: { url: '/7' } }]);
});

it('a task that is superseded while it runs is undone', async ({ driver }) => {
  const log: string[] = [];
  const begun = latch();
  const handle = async ({ steps, signal, payload }: TaskContext): Promise<void> => {
    const n = payload.toString();
    await steps.run('capture', () => log.push(`capture ${n}`), { undo: () => log.push(`refund ${n}`) });
    if (n !== '1') return;
    await steps.run('work', () => {
      begun.fire();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    });
  };
  const { client, until } = await serve(driver, handle);
  const options = { supersede: true, key: 'order-7' };
  const first = await client.enqueue('do', 1, options);
  await begun.fired;
  await client.enqueue('do', 2, options);
  const outcomes = await until(4);
  expect([...outcomes].sort()).toEqual(['done', 'revoked', 'suspended', 'suspended']);
  expect(log.filter((line) => line.endsWith('1'))).toEqual(['capture 1', 'refund 1']);
  expect(log).toContain('capture 2');
  expect(await driver.redis.exists(driver.keys.task(first.id))).toBe(0);
});

it('a handler of ten thousand steps goes on behind the last one, and refuses a further one', async ({ driver }) => {
  const done = new Map<number, number>();
  let calls = 0;
  const handle = async ({ steps }: TaskContext): Promise<void> => {
    const isFirst = ++calls === 1;
    for (let from = 0; from < (isFirst ? 9_000 : 10_000); from += 500) {
      const rows = Array.from({ length: 500 }, (_, n) => from + n);
      await Promise.all(rows.map((row) => steps.run('row', () => void done.set(row, (done.get(row) ?? 0) + 1))));
    }
    if (isFirst) throw new PostponeTask(0);
    await steps.run('row', () => void done.set(10_000, 1));
  };
  const { client, until } = await serve(driver, handle);
  const info = await client.enqueue('do', undefined);
  expect(await until(2)).toEqual(['postponed', 'archived']);
  expect([done.size, Math.max(...done.values())]).toEqual([10_000, 1]);
  const task = await new AsynqInspector(driver.broker).getTaskInfo(info.queue, info.id);
  expect(task?.lastErr).toContain('has 10000 steps; the most. Enqueue further tasks instead');
});

it('a cancellation of a task that sleeps changes nothing, also when it wakes right behind it', async ({ driver }) => {
  const seen: unknown[] = [];
  const handle = async ({ steps }: TaskContext): Promise<void> => {
    seen.push(await steps.waitFor('approved', Approval));
  };
  const { client, until } = await serve(driver, handle);
  const info = await client.enqueue('do', undefined);
  expect(await until(1)).toEqual(['suspended']);
  await new AsynqInspector(driver.broker).cancelProcessing(info.id, { outcome: 'delete' });
  await client.signal(info, Approval, { by: 'anna' });
  expect(await until(2)).toEqual(['suspended', 'done']);
  expect(seen).toEqual([{ by: 'anna' }]);
});
