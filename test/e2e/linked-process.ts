/*
 * A process for linked-chaos.spec.ts; its settings are JSON, given first. As `server` it runs the tasks of some queues, a few of
 * which fail; as `client` it makes tasks that wait for tasks, runs and batches, and cancels, retries and reruns some. It prints what
 * it has finished, and what was accepted. Ends with its standard input.
 */
import { RevokeTask, SkipRetry } from '../../lib/errors.js';
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { defineTask } from '../../lib/task/definition.js';
import { workflow } from '../../lib/workflows/workflow.js';

export interface LinkedSettings {
  readonly connection: ConnectionInput;
  readonly queues: readonly [string, string, string];
  /** Seconds that a task waits at most, and that a batch is open. */
  readonly patience: number;
  /** How many loops of a client submit at the same time. */
  readonly loops: number;
}

interface Order {
  readonly order: string;
}

const [, , json, role] = process.argv;
const { connection, queues, patience, loops } = JSON.parse(json!) as LinkedSettings;
const [alpha, beta, gamma] = queues;

const key = ({ order }: Order): string => order;
const waits = { maxRetry: 5, waitAtMost: `${patience}s` } as const;
const known = { key, rememberFor: '1m' } as const;
const Pay = defineTask<Order>('pay', { queue: alpha, maxRetry: 5, ...known });
const Ship = defineTask<Order>('ship', { queue: beta, after: Pay, ...waits, ...known });
const Close = defineTask<Order>('close', { queue: gamma, after: [Pay, Ship], onFailure: 'run', ...waits, ...known });
const Plain = defineTask<number>('plain', { maxRetry: 5 });
const Doomed = defineTask<number>('doomed', { maxRetry: 5 });

const say = (...words: readonly unknown[]): void => void process.stdout.write(`${words.join(' ')}\n`);
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
const chance = (part: number): boolean => Math.random() < part;
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const broker = new RedisBroker(new RedisConnections(connection));
const client = new AsynqClient(broker);
const inspector = new AsynqInspector(broker);

/** Some members and steps add others. What is refused lets the attempt fail, but for a run that is over. */
async function grow(task: TaskContext): Promise<void> {
  const options = { queue: pick(queues) };
  if (task.isMember && chance(0.03)) await task.batch.add(Plain, [1, 2], options);
  if (!task.isStep || !chance(0.05)) return;
  const { workflow: run } = task;
  await run.add(`${run.step}.more`, Plain, 5, { after: run.step, options });
}

function sayRefused({ code, message }: { readonly code?: string; readonly message: string }): void {
  say('refused', code, message);
}

async function handle(task: TaskContext): Promise<unknown> {
  const { id, retried, type } = task;
  await sleep(Math.random() * 10);
  const isCallback = /~(success|complete|death)$/.test(id);
  const luck = isCallback ? 1 : Math.random();
  if (luck < 0.005 || type === 'doomed') {
    say('gaveup', id);
    throw chance(0.5) ? new SkipRetry('bad luck') : new RevokeTask('withdrawn');
  }
  if (luck < 0.06) throw new Error('tried again');
  await grow(task).catch((error: { readonly code?: string; readonly message: string }) => {
    sayRefused(error);
    if (error.code !== 'ASYNQ_WORKFLOW_STATE') throw error;
  });
  say('ran', id, retried);
  return { luck };
}

function serve(): Server {
  const handlers = ['pay', 'ship', 'close', 'plain', 'doomed'].map((pattern) => ({ pattern, handle }));
  const options = {
    concurrency: 20,
    retryDelay: () => 0,
    taskCheckInterval: 100,
    queues: Object.fromEntries(queues.map((queue) => [queue, 1])),
  };
  return new Server({ broker, handlers, options, contexts: client.taskContexts });
}

/** Submits in any order. */
async function order(name: string): Promise<void> {
  const tasks = [Pay, Ship, Close].sort(() => Math.random() - 0.5);
  await Promise.all(
    tasks.map(async (task) => {
      const info = await client.enqueue(task, { order: name });
      say('task', info.queue, info.id);
    }),
  );
}

async function join(): Promise<void> {
  const tasks = [Plain, chance(0.03) ? Doomed : Plain];
  const after = await Promise.all(tasks.map((task) => client.enqueue(task, 1, { queue: pick(queues) })));
  for (const { queue, id } of after) say('task', queue, id);
  const onFailure = pick(['cancel', 'run', 'wait'] as const);
  const joined = { after, queue: pick(queues), missing: 'succeeded', onFailure, waitAtMost: `${patience}s` } as const;
  const info = await client.enqueue(Plain, 3, joined);
  say('task', info.queue, info.id);
}

/** A run is started again with its id when Redis did not reply. */
async function run(name: string): Promise<void> {
  const [a, b, c] = [1, 2, 3].map(() => ({ queue: pick(queues) }));
  const flow = workflow('chaos')
    .add('a', Plain, 1, { options: a! })
    .add('b', chance(0.05) ? Doomed : Plain, 2, { after: 'a', options: b! })
    .add('c', Plain, 3, { after: 'a', options: c!, optional: true })
    .add('d', Plain, 4, { after: ['b', 'c'], onFailure: pick(['cancel', 'run']), options: a! });
  const options = { id: name, queue: pick(queues) };
  const started = await client.start(flow, options).catch(() => client.start(flow, options));
  say('run', options.queue, started.id);
  if (chance(0.03)) await started.cancel('no longer wanted');
  const { state } = await started.done({ timeout: `${patience}s` });
  if (state === 'failed' && chance(0.3)) await started.retry();
}

async function batch(): Promise<void> {
  const queue = pick(queues);
  const callback = (): [typeof Plain, number, object] => [Plain, 0, { queue: pick(queues), maxRetry: 25 }];
  const opened = await client.openBatch({
    name: 'chaos',
    queue,
    closeWithin: `${patience}s`,
    onSuccess: callback(),
    onComplete: callback(),
    onDeath: callback(),
  });
  say('batch', queue, opened.id);
  for (const members of [3, 40]) {
    const payloads = Array.from({ length: members }, (_, n) => n);
    say('added', opened.id, await opened.add(Plain, payloads, { queue: pick(queues) }));
  }
  await opened.close();
}

/** Somebody runs dead tasks again. */
async function rerun(): Promise<void> {
  const queue = pick(queues);
  const { tasks } = await inspector.listTasks(queue, 'archived', { size: 20, newestFirst: true });
  for (const { id } of tasks.slice(0, 3)) await inspector.runTask(queue, id, { state: 'archived' });
}

/** A loop is never far ahead of the servers, as it waits for its runs. */
async function submit(loop: number): Promise<void> {
  for (let n = loop; !ending; n++) {
    const name = `${process.pid}-${Date.now()}-${loop}-${n}`;
    const made = [order(name), join(), n % 4 === 0 && run(name), n % 40 === 0 && batch(), n % 25 === 24 && rerun()];
    for (const result of await Promise.allSettled(made)) {
      if (result.status === 'rejected') sayRefused(result.reason as Error);
    }
    await sleep(20);
  }
}

let ending = false;
const server = role === 'server' ? serve() : undefined;
await server?.start();
const submitting =
  role === 'client' ? Promise.all(Array.from({ length: loops }, (_, loop) => submit(loop))) : undefined;
say('ready');
process.stdin.resume();
process.stdin.on('end', async () => {
  ending = true;
  setTimeout(() => process.exit(1), 60_000); // without Redis
  await submitting;
  await server?.shutdown();
  await client.close();
  await broker.close();
  process.exit(0);
});
