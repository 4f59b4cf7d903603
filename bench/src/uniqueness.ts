/* What it costs to enqueue a task that may be there already: beside plain tasks, and beside the deduplication of BullMQ. */
import { AsynqClient, AsynqModule, defineTask } from '../../dist/index.js';
import { NestFactory } from '@nestjs/core';
import { timed } from './composition/timed.js';
import type { Measurement } from './measurement.js';

/** `plain`: no option. `unique`: every task has a key of its own. The others: many calls for each of some keys. */
const MODES = ['plain', 'unique', 'existing', 'debounce', 'throttle'] as const;
export type UniquenessKind = `uniqueness-${(typeof MODES)[number]}`;
type Mode = (typeof MODES)[number];

/** Calls that are made at the same time. */
const AT_ONCE = 100;
/** Calls before the measured ones, at most as many as these: both systems are measured in their steady state, when the JavaScript compiler has done its work. */
const WARM = 30_000;

/** Enqueues a task with a key, and resolves when Redis has replied. */
interface Door {
  enqueue(id: string): Promise<unknown>;
  close(): Promise<void>;
}

interface Keyed {
  readonly id: string;
  readonly text: string;
}

/** About 100 bytes of JSON. */
const payloadOf = (id: string): Keyed => ({ id, text: 'x'.repeat(80 - id.length) });
const key = ({ id }: Keyed): string => id;
const OURS = {
  plain: defineTask<Keyed>('bench'),
  unique: defineTask<Keyed>('bench', { key, unique: { for: '1h', by: 'key' } }),
  existing: defineTask<Keyed>('bench', { key, unique: { for: '1h', by: 'key', onDuplicate: 'existing' } }),
  debounce: defineTask<Keyed>('bench', { key, debounce: { wait: '1h' } }),
  throttle: defineTask<Keyed>('bench', { key, throttle: '1h' }),
};

const HOUR = 3_600_000;
const BULLMQ: Record<Mode, (id: string) => object> = {
  plain: () => ({}),
  unique: (id) => ({ deduplication: { id } }),
  existing: (id) => ({ deduplication: { id } }),
  debounce: (id) => ({ delay: HOUR, deduplication: { id, ttl: HOUR, extend: true, replace: true } }),
  throttle: (id) => ({ deduplication: { id, ttl: HOUR } }),
};

async function ours(port: number, mode: Mode): Promise<Door> {
  const module = AsynqModule.forRoot({ connection: { host: '127.0.0.1', port }, server: false });
  const app = await NestFactory.createApplicationContext(module, { logger: ['warn', 'error'] });
  const client = app.get<AsynqClient>(AsynqClient);
  const task = OURS[mode];
  return {
    enqueue: (id) => client.enqueue(task, payloadOf(id)),
    close: () => app.close(),
  };
}

async function bullmq(port: number, mode: Mode): Promise<Door> {
  const { Queue } = await import('bullmq');
  const queue = new Queue('bench', { connection: { host: '127.0.0.1', port, maxRetriesPerRequest: null } });
  await queue.waitUntilReady();
  const options = BULLMQ[mode];
  return { enqueue: (id) => queue.add('bench', payloadOf(id), options(id)), close: () => queue.close() };
}

/** @param keys for so many keys; 0: each task has its own. In calls per second. */
export async function uniqueness(
  name: string,
  kind: UniquenessKind,
  port: number,
  count: number,
  keys: number,
): Promise<Measurement> {
  const mode = kind.slice('uniqueness-'.length) as Mode;
  const door = await (name === 'ours' ? ours(port, mode) : bullmq(port, mode));
  const run = async (first: number, end: number): Promise<void> => {
    for (let from = first; from < end; from += AT_ONCE) {
      const calls: Promise<unknown>[] = [];
      for (let n = from; n < Math.min(from + AT_ONCE, end); n++) calls.push(door.enqueue(`key-${keys ? n % keys : n}`));
      await Promise.all(calls);
    }
  };
  const warm = Math.min(WARM, count);
  await run(0, warm);
  const measured = await timed(count, () => run(warm, warm + count));
  await door.close();
  return measured;
}
