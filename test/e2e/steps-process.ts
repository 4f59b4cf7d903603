/*
 * A process for steps-chaos.spec.ts; its settings are JSON, given before its role. As `client` it enqueues orders, signals each of them, and waits for its end; as `server` it runs
 * their handlers, which have steps of every kind, one of which calls a task in threads that die. It prints each effect, when it has happened, and when it is stored, and what becomes of each task.
 */
import { Redis } from 'ioredis';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { SkipRetry } from '../../lib/errors.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { defineSignal } from '../../lib/task/signal.js';
import { resolveThreads } from '../../lib/threads/options.js';
import { ThreadPool } from '../../lib/threads/pool.js';
import { Keyspace } from '../../lib/wire/keys.js';

export interface StepsSettings {
  readonly connection: { readonly host: string; readonly port: number };
  /** The module of the handlers in threads, compiled. */
  readonly stamps: string;
  /** How many threads a server has. */
  readonly threads: number;
  /** How many a client places at most. */
  readonly orders: number;
  /** Milliseconds between two of them, on average. */
  readonly pause: number;
  /** Clients place no further ones while so many have not ended. */
  readonly open: number;
}

const Go = defineSignal('go');

/** How often a client looks how many orders are open. */
const ORDERS_PER_LOOK = 10;
const LOOK_INTERVAL_MS = 200;

const [, , json, role] = process.argv;
const { connection, stamps, threads, orders, pause, open } = JSON.parse(json!) as StepsSettings;
const say = (...words: readonly unknown[]): void => void process.stdout.write(`${[Date.now(), ...words].join(' ')}\n`);
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const broker = new RedisBroker(new RedisConnections(connection));
const client = new AsynqClient(broker);

async function order({ steps, id }: TaskContext): Promise<void> {
  const effect = (what: string) => async (): Promise<void> => {
    await sleep(Math.random() * 10);
    say('did', id, what);
  };
  /** Says that effects are not to come again, as what they belong to is stored. */
  const stored = (...effects: readonly string[]): void => effects.forEach((what) => say('stored', id, what));
  const refund = async (): Promise<void> => {
    stored('release'); // of a later step, or there was nothing to release
    await effect('refund')();
  };
  await steps.run('capture', effect('capture'), { undo: refund });
  stored('capture');
  const { invoice } = (await steps.call('invoice', 'invoice', id, { queue: 'other', maxRetry: 1000 })) as {
    invoice: string;
  };
  if (invoice !== id) throw new SkipRetry(`a wrong invoice: ${invoice}`);
  stored('invoice');
  await steps.call('stamp', 'stamp', id, { queue: 'threads', maxRetry: 1000 });
  stored('stamp');
  await steps.each('rows', [0, 1, 2], (row) => effect(`row${row}`)(), { every: 0 });
  stored('row0', 'row1', 'row2');
  await steps.sleep('nap', 500);
  await steps.waitFor('go', Go);
  const flaky = async (): Promise<void> => {
    if (Math.random() < 0.2) throw new Error('busy');
    await effect('reserve')();
  };
  await steps.run('reserve', flaky, { retry: { max: 1000, delay: 0 }, undo: effect('release') });
  stored('reserve');
  if (id.endsWith('x')) throw new SkipRetry('sold out');
  await steps.run('ship', effect('ship'));
  stored('ship');
}

async function invoice({ payload }: TaskContext): Promise<{ invoice: string }> {
  const id = JSON.parse(payload.toString()) as string;
  await sleep(Math.random() * 20);
  say('did', id, 'invoice');
  return { invoice: id };
}

/** What Redis did not reply to is sent again: the id of a task, and a wait, take it once. */
async function insist(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'ASYNQ_TASK_ID_CONFLICT' || code === 'ASYNQ_TASK_STATE' || code === 'ASYNQ_TASK_NOT_FOUND') return;
      if (code !== 'ASYNQ_BROKER_UNAVAILABLE') throw error;
      await sleep(20);
    }
  }
}

/** How many orders this client may place now: half of what is missing, as there are two. An inspector would ask for much more. */
async function askRoom(redis: Redis): Promise<number> {
  const { pending, active, scheduled, retry } = new Keyspace().queue('default');
  const counts = [redis.llen(pending), redis.llen(active), redis.zcard(scheduled), redis.zcard(retry)];
  const found = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  return Math.ceil((open - found) / 2);
}

async function place(): Promise<void> {
  const redis = new Redis({ ...connection, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  let room = open;
  for (let n = 0; !ending && n < orders; n++) {
    if (n % ORDERS_PER_LOOK === ORDERS_PER_LOOK - 1) room = await askRoom(redis);
    for (; room <= 0 && !ending; room = await askRoom(redis)) await sleep(LOOK_INTERVAL_MS);
    room -= 1;
    const id = `${process.pid}.${n}${n % 4 === 0 ? 'x' : ''}`;
    await insist(() => client.enqueue('order', undefined, { taskId: id, maxRetry: 1000, retention: '3m' }));
    say('placed', id);
    later(id);
    under.add(hear(id));
    await sleep(Math.random() * 2 * pause);
  }
  redis.disconnect();
  await Promise.all(under);
}

const under = new Set<Promise<void>>();
function later(id: string): void {
  const work = sleep(Math.random() * 1500)
    .then(() => insist(() => client.signal({ queue: 'default', id }, Go)))
    .then(() => say('signalled', id))
    .finally(() => under.delete(work));
  under.add(work);
}

/** Waits for the end of an order, however often Redis is killed meanwhile. */
async function hear(id: string): Promise<void> {
  const result = client.result({ queue: 'default', id }, { timeout: '1h' });
  const end = await result.then(
    () => 'ok',
    ({ code }: { code?: string }) => code,
  );
  say('heard', id, end);
}

/** Says what becomes of each task here, so that the time in which an order does nothing can be explained. */
function sayStates({ events }: Server): void {
  const { consumer } = broker;
  const exchange = consumer.exchange.bind(consumer);
  consumer.exchange = async (queue, request) => {
    const reply = await exchange(queue, request);
    for (const { lease } of reply.tasks) say('claimed', lease.id);
    return reply;
  };
  events.on('taskStarted', ({ task }) => say('began', task.id, task.queue));
  events.on('taskFinished', ({ task, outcome }) => say('ended', task.id, outcome));
  events.on('taskRecovered', ({ task, outcome, crashes }) => say('recovered', task.id, outcome, crashes));
}

let ending = false;
const pool = new ThreadPool({
  options: resolveThreads({ module: stamps, export: 'StampsModule', count: threads }),
  handlers: { invalidPayload: 'archive', globalEnhancers: false },
  clock: broker.clock,
  events: new AsynqEvents(),
});
const stamp = (task: TaskContext): Promise<unknown> => pool.run('stamp', task);
const handlers = [
  { pattern: 'order', handle: order, steps: {} },
  { pattern: 'invoice', handle: invoice },
  { pattern: 'stamp', handle: stamp, limits: { concurrency: pool.size } },
];
const options = {
  concurrency: 20,
  queues: { default: 1, other: 1, threads: 1 },
  retryDelay: () => 0,
  taskCheckInterval: 100,
  delayedTaskCheckInterval: 200,
  maxCrashes: 1000,
};
const server = role === 'server' ? new Server({ broker, handlers, options, contexts: client.taskContexts }) : undefined;
if (server) sayStates(server);
await server?.start();
const placing = role === 'client' ? place() : undefined;
process.stdout.write('ready\n');
process.stdin.on('data', () => (ending = true)); // no further orders
process.stdin.on('end', async () => {
  ending = true;
  setTimeout(() => process.exit(1), 60_000); // without Redis
  await placing;
  await server?.shutdown();
  await pool.close();
  await client.close();
  await broker.close();
  process.exit(0);
});
