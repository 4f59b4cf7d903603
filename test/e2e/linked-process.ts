/*
 * A process for linked-chaos.spec.ts on the Redis of the port given first. As `server` it runs the tasks of three queues, a few of
 * which fail; as `client` it makes tasks that wait for tasks, runs and batches. It prints what it has finished, and what was
 * accepted. Ends with its standard input.
 */
import { SkipRetry, RevokeTask } from '../../lib/errors.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Server } from '../../lib/server/server.js';
import { defineTask } from '../../lib/task/definition.js';
import { workflow } from '../../lib/workflows/workflow.js';

interface Order {
  readonly order: string;
}
const key = ({ order }: Order): string => order;
const waits = { maxRetry: 5, waitAtMost: '15s' } as const;
const known = { key, rememberFor: '1m' } as const;
const Pay = defineTask<Order>('pay', { queue: 'alpha', maxRetry: 5, ...known });
const Ship = defineTask<Order>('ship', { queue: 'beta', after: Pay, ...waits, ...known });
const Close = defineTask<Order>('close', { queue: 'gamma', after: [Pay, Ship], onFailure: 'run', ...waits, ...known });
const Plain = defineTask<number>('plain', { maxRetry: 5 });

const QUEUES = ['alpha', 'beta', 'gamma'];
const [, , , port, role] = process.argv;
const say = (...words: readonly unknown[]): void => void process.stdout.write(`${words.join(' ')}\n`);
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: Number(port) }));

function serve(): Server {
  const handle = async ({ id, retried }: { id: string; retried: number }): Promise<unknown> => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
    const luck = id.endsWith('~complete') ? 1 : Math.random(); // a callback is not to fail
    if (luck < 0.02) throw new SkipRetry('bad luck');
    if (luck < 0.03) throw new RevokeTask('withdrawn');
    if (luck < 0.1) throw new Error('tried again');
    say('ran', id, retried);
    return { luck };
  };
  const handlers = ['pay', 'ship', 'close', 'plain'].map((pattern) => ({ pattern, handle: handle as never }));
  const options = {
    concurrency: 20,
    retryDelay: () => 0,
    taskCheckInterval: 100,
    queues: { alpha: 1, beta: 1, gamma: 1 },
  };
  return new Server({ broker, handlers, options });
}

/** Submits in any order. */
async function order(client: AsynqClient, name: string): Promise<void> {
  const tasks = [Pay, Ship, Close].sort(() => Math.random() - 0.5);
  await Promise.all(
    tasks.map(async (task) => {
      const info = await client.enqueue(task, { order: name });
      say('task', info.queue, info.id);
    }),
  );
}

async function join(client: AsynqClient): Promise<void> {
  const after = await Promise.all([1, 2].map((n) => client.enqueue(Plain, n, { queue: pick(QUEUES) })));
  for (const { queue, id } of after) say('task', queue, id);
  const onFailure = pick(['cancel', 'run', 'wait'] as const);
  const joined = { after, queue: pick(QUEUES), missing: 'succeeded', onFailure, waitAtMost: '15s' } as const;
  const info = await client.enqueue(Plain, 3, joined);
  say('task', info.queue, info.id);
}

async function run(client: AsynqClient, name: string): Promise<void> {
  const [a, b, c] = [1, 2, 3].map(() => ({ queue: pick(QUEUES) }));
  const flow = workflow('chaos')
    .add('a', Plain, 1, { options: a! })
    .add('b', Plain, 2, { after: 'a', options: b! })
    .add('c', Plain, 3, { after: 'a', options: c!, optional: true })
    .add('d', Plain, 4, { after: ['b', 'c'], onFailure: 'run', options: a! });
  const queue = pick(QUEUES);
  const started = await client.start(flow, { id: name, queue });
  say('run', queue, started.id);
}

async function batch(client: AsynqClient): Promise<void> {
  const queue = pick(QUEUES);
  const opened = await client.openBatch({
    name: 'chaos',
    queue,
    closeWithin: '5s',
    onComplete: [Plain, 0, { queue: pick(QUEUES), maxRetry: 25 }],
  });
  say('batch', queue, opened.id);
  for (const members of [3, 40]) {
    await opened.add(
      Plain,
      Array.from({ length: members }, (_, n) => n),
      { queue: pick(QUEUES) },
    );
  }
  await opened.close();
}

async function submit(client: AsynqClient): Promise<void> {
  for (let n = 0; !ending; n++) {
    const name = `${process.pid}-${Date.now()}-${n}`;
    const made = [
      order(client, name),
      join(client),
      n % 4 === 0 ? run(client, name) : undefined,
      n % 40 === 0 && batch(client),
    ];
    for (const { status, reason } of (await Promise.allSettled(made)) as { status: string; reason?: Error }[]) {
      if (status === 'rejected') say('refused', reason!.message);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

let ending = false;
const client = new AsynqClient(broker);
const server = role === 'server' ? serve() : undefined;
await server?.start();
const submitting = role === 'client' ? submit(client) : undefined;
say('ready');
process.stdin.resume();
process.stdin.on('end', async () => {
  ending = true;
  await submitting;
  await client.close();
  await server?.shutdown();
  await broker.close();
  process.exit(0);
});
