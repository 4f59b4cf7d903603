/*
 * A process for repeat-chaos.spec.ts; its settings are JSON, given first. As `client` it enqueues the same tasks again and again, by every
 * option of docs/uniqueness.md; as `server` it runs them, and a few fail. It prints what it does, before and after, with the time.
 */
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { AsynqError } from '../../lib/errors.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { MODES } from './repeat-modes.js';

export interface RepeatSettings {
  readonly connection: ConnectionInput;
}

/** Keys of a mode that are in use at the same time; those of `once` go on. */
const KEYS = 2;
const ONCE_MS = 300;

const [, , json, role] = process.argv;
const { connection } = JSON.parse(json!) as RepeatSettings;
const say = (...words: readonly unknown[]): void => void process.stdout.write(`${[Date.now(), ...words].join(' ')}\n`);
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const broker = new RedisBroker(new RedisConnections(connection));
const client = new AsynqClient(broker);

async function handle(task: TaskContext): Promise<void> {
  const { call, key } = JSON.parse(task.payload.toString()) as { call: string; key: string };
  const said = [task.type, key, task.id, call, task.retried];
  say('began', ...said);
  await sleep(Math.random() * 40);
  const isCancelled = task.type === 'supersede' && task.signal.aborted;
  const fails = isCancelled || Math.random() < 0.08;
  say(fails ? 'threw' : 'ran', ...said);
  if (isCancelled) throw task.signal.reason;
  if (fails) throw new Error('tried again');
}

/** Calls again and again, as two buttons that are pressed by two people. */
async function press(mode: string): Promise<void> {
  for (let n = 0; !ending; n++) {
    const key = mode === 'once' ? `${Math.floor(Date.now() / ONCE_MS)}` : `${Math.floor(Math.random() * KEYS)}`;
    const call = `${process.pid}.${n}.${mode}`;
    say('calls', mode, key, call);
    try {
      const { id, created } = await client.enqueue(mode, { call, key }, { key, maxRetry: 50, ...MODES[mode]!.options });
      say('got', mode, key, call, id, created);
    } catch (error) {
      say('failed', mode, key, call, error instanceof AsynqError ? error.code : error);
    }
    await sleep(Math.random() * 60);
  }
}

let ending = false;
const handlers = Object.keys(MODES).map((pattern) => ({ pattern, handle }));
const options = { concurrency: 20, retryDelay: () => 0, taskCheckInterval: 100 };
const server = role === 'server' ? new Server({ broker, handlers, options }) : undefined;
await server?.start();
const pressing = role === 'client' ? Promise.all(Object.keys(MODES).map(press)) : undefined;
process.stdout.write('ready\n');
process.stdin.resume();
process.stdin.on('end', async () => {
  ending = true;
  setTimeout(() => process.exit(1), 60_000); // without Redis
  await pressing;
  await server?.shutdown();
  await client.close();
  await broker.close();
  process.exit(0);
});
