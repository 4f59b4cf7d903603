import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, expect, it, vi } from 'vitest';
import { rowOf } from '../../lib/outbox/row-codec.js';
import type { DatabaseServer } from '../support/database-server.js';
import { request } from '../support/messages.js';
import { type RedisProcess, startRedis } from '../support/redis-server.js';
import { createTables, MYSQL, PG, type StoreKind, type StoreWorld } from './stores.js';

vi.setConfig({ testTimeout: 900_000, hookTimeout: 120_000 });

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** How often something is killed: a relay, now and then the database or Redis. CI has no time for more. */
const KILLS = Number(process.env['ASYNQ_OUTBOX_KILLS'] ?? 5);
const RELAYS = 3;
const QUEUES = ['a', 'b'];

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
  const program = [path('../support/run-ts.mjs'), path('./relay-process.ts'), dialect, ...ports];
  const relay = spawn(process.execPath, program, { stdio: ['pipe', 'pipe', 'inherit'] });
  relays.push(relay);
  await once(relay.stdout!, 'data');
  return relay;
}

/** Writes rows in small transactions, of which some are rolled back, until it is told to stop. */
async function write(signal: { stopped: boolean }, committed: Set<string>, rolledBack: Set<string>): Promise<void> {
  while (!signal.stopped) {
    const ids = Array.from({ length: 1 + Math.floor(Math.random() * 8) }, () => randomUUID());
    const fails = Math.random() < 0.2;
    const rows = ids.map((id) => {
      const queue = QUEUES[Math.floor(Math.random() * QUEUES.length)]!;
      return rowOf({ request: request({ id, queue }), state: 'pending', nextProcessAt: undefined });
    });
    if (fails) for (const id of ids) rolledBack.add(id);
    await world
      .transaction(async (tx) => {
        await world.store.insert(tx, rows);
        if (fails) throw new Error('roll back');
      })
      .then(() => ids.forEach((id) => committed.add(id)))
      .catch(() => undefined); // also of a server that was killed: the table says whether it was committed
    await turn();
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
  redis.call('DEL', KEYS[2] .. id)
  redis.call('HINCRBY', KEYS[3], id, 1)
  count = count + 1
end
return count`;

async function work(): Promise<void> {
  for (const queue of QUEUES) {
    const keys = [`asynq:{${queue}}:pending`, `asynq:{${queue}}:t:`, `worked:{${queue}}`];
    await admin.eval(WORK, 3, ...keys).catch(() => undefined);
  }
}

/** How often each task was worked. */
async function worked(): Promise<Map<string, number>> {
  const counts = await Promise.all(QUEUES.map((queue) => admin.hgetall(`worked:{${queue}}`)));
  return new Map(
    counts.flatMap((one) => Object.entries(one).map(([id, times]): [string, number] => [id, Number(times)])),
  );
}

it.each([PG, MYSQL])(
  `enqueues each committed row of $name once, though ${KILLS} relays and servers are killed`,
  async (kind) => {
    await start(kind);
    const committed = new Set<string>();
    const rolledBack = new Set<string>();
    const signal = { stopped: false };
    const alive = await Promise.all(Array.from({ length: RELAYS }, () => startRelay(kind)));
    const writers = [write(signal, committed, rolledBack), write(signal, committed, rolledBack)];
    const worker = (async () => {
      while (!signal.stopped) {
        await work();
        await turn();
      }
    })();

    const progress = async (rows: number): Promise<void> => {
      const count = async () => (await worked()).size;
      const goal = (await count()) + rows;
      await vi.waitFor(async () => expect(await count()).toBeGreaterThan(goal), { timeout: 60_000, interval: 20 });
    };
    for (let kill = 1; kill <= KILLS; kill++) {
      await progress(30 + Math.floor(Math.random() * 100));
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
    signal.stopped = true;
    await Promise.all([...writers, worker]);
    await vi.waitFor(
      async () => expect(await world.store.counts()).toMatchObject({ fresh: 0, taken: 0, poisoned: 0 }),
      {
        timeout: 60_000,
        interval: 50,
      },
    );
    for (let before = -1, seen = 0; seen !== before; seen = (await worked()).size) {
      before = seen;
      await work();
    }

    const seen = await worked();
    const rows = await world.sql('SELECT task_id, state FROM asynq_outbox');
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
  },
);
