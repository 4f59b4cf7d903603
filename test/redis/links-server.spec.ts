import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import type { LinkedRequest, Prerequisite } from '../../lib/broker/links.js';
import { SystemClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { Server } from '../../lib/server/server.js';
import type { ServerOptions } from '../../lib/server/options.js';
import type { TaskContext } from '../../lib/task/context.js';
import { request, uniqueId } from '../support/messages.js';
import { connectionsTo, observe, ownServer } from './support.js';

type Handle = (task: TaskContext) => unknown;

/** A process with a server, or with none: what it has of a Redis. */
async function processOn(port: number, handle?: Handle, options: ServerOptions = {}, given?: Relay) {
  const broker = new RedisBroker(connectionsTo({ host: '127.0.0.1', port }), { clock: new SystemClock() });
  const events = new AsynqEvents();
  const relay = given ?? new Relay(broker.links, events);
  const failed: unknown[] = [];
  events.on('relayFailed', (event) => failed.push(event));
  events.on('loopFailed', (event) => failed.push(event));
  const handlers = handle ? [{ pattern: 'test:', handle: async (task: TaskContext) => handle(task) }] : [];
  const server = new Server({ broker, relay, events, handlers, options });
  if (handle) await server.start();
  onTestFinished(async () => {
    await server.shutdown();
    await relay.close();
    expect(failed).toEqual([]);
  });
  return { broker, events, relay, server };
}

/** Of every wait, in Unix seconds. */
const DEADLINE = 2 ** 31;

const waitsFor = (queue: string, id: string, prerequisite: Prerequisite): LinkedRequest => ({
  ...request({ queue, id }),
  wait: { prerequisites: [prerequisite], onFailure: 'cancel', onTimeout: 'archive', deadline: DEADLINE },
});

/** Enqueues a task that waits for another one. */
async function follow(
  { broker, relay }: { readonly broker: RedisBroker; readonly relay: Pick<Relay, 'carry'> },
  queue: string,
  id: string,
  prerequisite: { readonly queue: string; readonly id: string },
): Promise<void> {
  relay.carry(await broker.links.enqueue(queue, [waitsFor(queue, id, prerequisite)]));
  const watching = [{ id: prerequisite.id, waiting: { queue, id, n: 0, until: DEADLINE } }];
  relay.carry(await broker.links.watch(prerequisite.queue, watching));
}

/** Reads until it is so. */
async function until<T>(read: () => Promise<T>, isSo: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (isSo(value)) return value;
  }
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;

/** By the id of a task, or by a mark of its type and key. */
const PREREQUISITES = {
  id: (queue: string, id: string): Prerequisite => ({ queue, id }),
  key: (_: string, id: string): Prerequisite => ({ type: 'test:task', key: id }),
};

describe('a server of two queues', () => {
  it.each(['id', 'key'] as const)(
    'starts the dependent of a task in the other queue as soon as that has ended, by %s',
    async (by) => {
      const { port } = await ownServer();
      /** Round trips to Redis since the first of a pair has ended: a slow machine makes them slow, too. */
      let trips = 0;
      let isOver = false;
      const observer = observe(port);
      const pinging = (async () => {
        for (; !isOver; trips++) await observer.ping();
      })();
      const gaps: number[] = [];
      let started = (): void => undefined;
      const { broker, relay } = await processOn(
        port,
        ({ queue }) => {
          if (queue === 'one') return void (trips = 0);
          gaps.push(trips);
          started();
        },
        { queues: { one: 1, two: 1 } },
      );
      const { links } = broker;
      for (let n = 0; n < 100; n++) {
        const [first, second] = [uniqueId('first'), uniqueId('second')];
        const done = new Promise<void>((resolve) => (started = resolve));
        relay.carry(await links.enqueue('two', [waitsFor('two', second, PREREQUISITES[by]('one', first))]));
        await relay.idle();
        // It may be over before it is watched; without a retention it would be gone, and nobody would release the dependent.
        const task = request({ queue: 'one', id: first, retention: 60 });
        const mark = { type: 'test:task', key: first, rememberFor: 60 };
        relay.carry(await links.enqueue('one', [{ ...task, mark }]));
        if (by === 'id') {
          const watching = [{ id: first, waiting: { queue: 'two', id: second, n: 0, until: DEADLINE } }];
          const { found, ...caused } = await links.watch('one', watching);
          expect(found).toEqual(['watched']);
          relay.carry(caused);
        }
        await done;
        await relay.idle();
      }
      isOver = true;
      await pinging;
      // The median is near 3. The keeper looks after 100 ms at the earliest, which is hundreds of them.
      expect(median(gaps)).toBeLessThan(20);
    },
  );

  it('cancels the dependent of a task that cannot be decoded', async () => {
    const { port } = await ownServer();
    const { broker, relay } = await processOn(port);
    await broker.producer.enqueue('one', [request({ queue: 'one', id: 'a' })]);
    await follow({ broker, relay }, 'two', 'b', { queue: 'one', id: 'a' });
    await observe(port).hset('asynq:{one}:t:a', 'msg', Buffer.from([0xff, 0xff]));
    const running = await processOn(port, () => undefined, { queues: { one: 1, two: 1 } });
    await new Promise((resolve) => running.events.on('taskDamaged', resolve));
    const b = await until(
      () => broker.inspection.getTask('two', 'b'),
      (task) => task?.state === 'archived',
    );
    expect(b?.message.errorMsg).toContain('TaskMessage');
  });
});

describe('what a process did not carry', () => {
  it('is found by the keeper of another within seconds', async () => {
    const { port } = await ownServer();
    const { broker } = await processOn(port);
    const dead = { carry: () => undefined }; // as though the process died before each delivery
    await broker.producer.enqueue('one', [request({ queue: 'one', id: 'a' })]);
    await follow({ broker, relay: dead }, 'two', 'b', { queue: 'one', id: 'a' });
    const found: object[] = [];
    const ran: string[] = [];
    let resolve = (): void => undefined;
    const finished = new Promise<void>((done) => (resolve = done));
    const run = ({ id }: TaskContext): void => {
      ran.push(id);
      if (id === 'b') resolve();
    };
    const keeper = await processOn(port, run, { queues: { two: 1 } });
    keeper.events.on('linksKept', (event) => found.push(event));
    const redis = observe(port);
    await until(() => redis.exists('asynq:{one}:links_lease'), Boolean);
    const lossy = new Relay(broker.links);
    lossy.carry = () => undefined;
    await processOn(port, run, { queues: { one: 1 } }, lossy);
    await finished;
    expect(ran).toEqual(['a', 'b']);
    expect(found).toContainEqual({ place: 'one', settled: 0, parcels: 1 });
  });
});
