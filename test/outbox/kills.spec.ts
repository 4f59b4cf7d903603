import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterEach, expect, it, vi } from 'vitest';
import { rowOf } from '../../lib/outbox/row-codec.js';
import type { DatabaseServer } from '../support/database-server.js';
import { decodeTaskMessage } from '../../lib/wire/codec.js';
import { repeat, request } from '../support/messages.js';
import { type RedisProcess, startRedis } from '../support/redis-server.js';
import { createTables, MYSQL, PG, type StoreKind, type StoreWorld } from './stores.js';
import { compiled } from '../support/programs.js';

vi.setConfig({ testTimeout: 900_000, hookTimeout: 120_000 });

/** How often something is killed: a relay, now and then the database or Redis. CI has no time for more. */
const KILLS = Number(process.env['ASYNQ_OUTBOX_KILLS'] ?? 5);
const RELAYS = 3;
const QUEUES = ['a', 'b'];
/** Writers wait while so many rows are on their way. */
const MOST_UNDER_WAY = 200;
/** Between two transactions of a writer: the machine is for relays, which start again and again. */
const PAUSE_MS = 5;
/** How ids begin of tasks with `once`, and of those of which the last counts. */
const [ONCE, NEWER] = ['once-', 'newer-'];

let server: DatabaseServer;
let redis: RedisProcess;
let admin: Redis;
let world: StoreWorld;
const relays: ChildProcess[] = [];

async function start(kind: StoreKind): Promise<void> {
  [server, redis] = await Promise.all([kind.start(), startRedis({ appendOnly: true })]);
  admin = new Redis(redis.port, { maxRetriesPerRequest: null });
  admin.on('error', () => undefined);
  world = await kind.open(server);
  await createTables(world, kind);
}
afterEach(async () => {
  for (const relay of relays.splice(0)) relay.kill('SIGKILL');
  admin.disconnect();
  await world.close();
  await Promise.all([server.stop(), redis.stop()]);
});

async function startRelay({ dialect }: StoreKind): Promise<ChildProcess> {
  const ports = [`${server.port}`, `${redis.port}`];
  const program = await compiled(new URL('./relay-process.ts', import.meta.url));
  const relay = spawn(process.execPath, [program, dialect, ...ports], { stdio: ['pipe', 'pipe', 'inherit'] });
  relays.push(relay);
  await once(relay.stdout!, 'data');
  return relay;
}

/** What a run has written, and how much of it was worked. */
class Progress extends EventEmitter<{ worked: [] }> {
  readonly committed = new Set<string>();
  readonly rolledBack = new Set<string>();
  workedCount = 0;
  stopped = false;

  /** Resolves when a condition holds that work makes true. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds() && !this.stopped) await once(this, 'worked');
  }
}

/** Writes rows in small transactions, of which some are rolled back, until it is told to stop. */
async function write(progress: Progress): Promise<void> {
  const { committed, rolledBack } = progress;
  while (!progress.stopped) {
    const ids = Array.from(
      { length: 1 + Math.floor(Math.random() * 8) },
      () => (Math.random() < 0.2 ? ONCE : '') + randomUUID(),
    );
    const fails = Math.random() < 0.2;
    const rows = ids.map((id) => {
      const queue = QUEUES[Math.floor(Math.random() * QUEUES.length)]!;
      const isOnce = id.startsWith(ONCE);
      const made = isOnce ? repeat('once', id, { lock: id.slice(ONCE.length), queue }) : request({ id, queue });
      return rowOf({ request: made, state: 'pending', nextProcessAt: undefined, ...(isOnce && { repeats: 'once' }) });
    });
    if (fails) for (const id of ids) rolledBack.add(id);
    await world
      .transaction(async (tx) => {
        await world.store.insert(tx, rows);
        if (fails) throw new Error('roll back');
      })
      .then(() => ids.forEach((id) => committed.add(id)))
      .catch(() => undefined); // also of a server that was killed: the table says whether it was committed
    await pause(PAUSE_MS);
    await progress.until(() => committed.size - progress.workedCount < MOST_UNDER_WAY);
  }
}

/** Writes rows for one key, one after the other, of which the last counts. Each has its number in its id and its payload. */
async function writeNewer(progress: Progress): Promise<void> {
  for (let n = 1; !progress.stopped; n++) {
    const made = repeat('supersede', `${NEWER}${n}`, { lock: 'newer', queue: 'a', payload: String(n) });
    const row = rowOf({ request: made, state: 'pending', nextProcessAt: undefined, repeats: 'supersede' });
    await world.transaction((tx) => world.store.insert(tx, [row])).catch(() => undefined);
    await pause(PAUSE_MS);
    await progress.until(() => progress.committed.size - progress.workedCount < MOST_UNDER_WAY);
  }
}

/**
 * Takes tasks as a server does that works them at once: nothing is left of them. How often it has worked each is noted in
 * the same step, as a reply may be lost.
 */
const WORK = `
local count = 0
while count < 100 do
  local id = redis.call('RPOP', KEYS[1])
  if not id then break end
  if string.sub(id, 1, #ARGV[1]) == ARGV[1] then
    redis.call('RPUSH', KEYS[4], redis.call('HGET', KEYS[2] .. id, 'msg'))
  else
    redis.call('HINCRBY', KEYS[3], id, 1)
  end
  redis.call('DEL', KEYS[2] .. id)
  count = count + 1
end
return count`;

const notesOf = (queue: string): string => `worked:{${queue}}`;
const newerOf = (queue: string): string => `newer:{${queue}}`;

/** Works what is pending now. */
async function work(queue: string): Promise<void> {
  const keys = [`asynq:{${queue}}:pending`, `asynq:{${queue}}:t:`, notesOf(queue), newerOf(queue)];
  await admin.eval(WORK, 4, ...keys, NEWER).catch(() => undefined);
}

/** Works the tasks of a queue as they come. */
async function serve(queue: string, progress: Progress): Promise<void> {
  const pending = `asynq:{${queue}}:pending`;
  const waiting = admin.duplicate();
  waiting.on('error', () => undefined);
  while (!progress.stopped) {
    // Moves nothing, but waits until there is something.
    await waiting.blmove(pending, pending, 'RIGHT', 'RIGHT', 0.1).catch(() => undefined);
    await work(queue);
    const counts = await Promise.all(QUEUES.map((one) => admin.hlen(notesOf(one)))).catch(() => []);
    progress.workedCount = Math.max(
      progress.workedCount,
      counts.reduce((sum, count) => sum + count, 0),
    );
    progress.emit('worked');
  }
  waiting.disconnect();
}

/** Names what is waited for too long. */
async function within<T>(milliseconds: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${milliseconds / 1000} s, not yet: ${what}`)), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** How often each task was worked. */
async function worked(): Promise<Map<string, number>> {
  const counts = await Promise.all(QUEUES.map((queue) => admin.hgetall(notesOf(queue))));
  return new Map(
    counts.flatMap((one) => Object.entries(one).map(([id, times]): [string, number] => [id, Number(times)])),
  );
}

it.each([PG, MYSQL])(
  `enqueues each committed row of $name once, though ${KILLS} relays and servers are killed`,
  async (kind) => {
    await start(kind);
    const progress = new Progress();
    progress.setMaxListeners(0);
    const alive = await Promise.all(Array.from({ length: RELAYS }, () => startRelay(kind)));
    const writers = [write(progress), write(progress), writeNewer(progress)];
    const servers = QUEUES.map((queue) => serve(queue, progress));

    for (let kill = 1; kill <= KILLS; kill++) {
      const goal = progress.workedCount + 30 + Math.floor(Math.random() * 100);
      await within(
        60_000,
        `kill ${kill}: rows become tasks`,
        progress.until(() => progress.workedCount >= goal),
      );
      if (kill % 5 === 3) {
        await server.kill();
        await server.start();
      } else if (kill % 5 === 0) {
        await redis.restart();
      } else {
        const victim = alive.shift()!;
        victim.kill('SIGKILL');
        alive.push(await startRelay(kind));
      }
    }
    progress.stopped = true;
    await within(60_000, 'writers and servers stop', Promise.all([...writers, ...servers]));
    await vi.waitFor(
      async () => expect(await world.store.counts()).toMatchObject({ fresh: 0, taken: 0, poisoned: 0 }),
      {
        timeout: 60_000,
        interval: 50,
      },
    );
    for (let before = -1, seen = 0; seen !== before; seen = (await worked()).size) {
      before = seen;
      await Promise.all(QUEUES.map(work));
    }

    const { committed, rolledBack } = progress;
    const seen = await worked();
    const all = await world.sql('SELECT task_id, state FROM asynq_outbox');
    const isNewer = ({ task_id }: Record<string, unknown>): boolean => String(task_id).startsWith(NEWER);
    const rows = all.filter((row) => !isNewer(row));
    const stored = new Set(rows.map((row) => String(row['task_id'])));
    expect(rows.filter((row) => row['state'] !== 'sent')).toEqual([]);
    expect([...committed].filter((id) => !stored.has(id))).toEqual([]);
    expect([...rolledBack].filter((id) => stored.has(id) || seen.has(id))).toEqual([]);
    const lost = [...stored].filter((id) => !seen.has(id));
    const twice = [...seen].filter(([, times]) => times > 1);
    const unknown = [...seen.keys()].filter((id) => !stored.has(id));
    if (KILLS > 5)
      console.log(`${kind.name}: ${KILLS} kills, ${stored.size} rows, ${lost.length} lost, ${twice.length} twice`);
    expect({ lost, twice, unknown }).toEqual({ lost: [], twice: [], unknown: [] });
    expect(stored.size).toBeGreaterThan(KILLS * 30);
    // What is worked for the key is ever newer, and the last is the last that was committed.
    const numbers = all.filter(isNewer).map((row) => Number(String(row['task_id']).slice(NEWER.length)));
    const messages = await admin.lrangeBuffer(newerOf('a'), 0, -1);
    const order = messages.map((message) => Number(String(decodeTaskMessage(message).payload)));
    expect(order).toEqual([...new Set(order)].sort((a, b) => a - b));
    expect(order.at(-1)).toBe(Math.max(...numbers));
    expect(all.filter((row) => isNewer(row) && row['state'] !== 'sent' && row['state'] !== 'replaced')).toEqual([]);
  },
);
