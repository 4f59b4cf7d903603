import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import type { PreparedTask } from '../../lib/enqueue/prepared-task.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import type { OutboxStore } from 'nestjs-asynq/outbox';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DatabaseServer } from '../support/database-server.js';
import { repeat, request } from '../support/messages.js';
import { type RedisProcess, startRedis } from '../support/redis-server.js';
import { KINDS } from './library-stores.js';
import { createTables, MYSQL, PG, SQLITE, type StoreKind, type StoreWorld } from './stores.js';

/**
 * What happens to one call of a relay, which then is gone. `before`: it was not made. `after`: it was made, and its
 * reply is lost. `late`: it is made when another relay has done everything; a process that was stopped for a minute.
 */
const MODES = ['before', 'after', 'late'] as const;
type Mode = (typeof MODES)[number];

/** The statements are those of the database, whatever library runs them; that a library does all of an exchange or nothing is in stores.spec.ts. */
const modesOf = (kind: StoreKind): readonly Mode[] => ([PG, MYSQL, SQLITE].includes(kind) ? MODES : ['after']);

class Gone extends Error {}

/** Makes the calls of all parts; the one with the number `at`, and all after it, do not come back. */
class Mortal {
  private calls = 0;
  private late: (() => Promise<unknown>) | undefined;

  constructor(
    private readonly at: number,
    private readonly mode: Mode,
  ) {}

  get isGone(): boolean {
    return this.calls >= this.at;
  }

  of<T extends object>(part: T, names: readonly string[]): T {
    return new Proxy(part, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        const call = (...args: unknown[]): unknown => value.apply(target, args);
        return names.includes(String(property)) ? (...args: unknown[]) => this.run(() => call(...args)) : call;
      },
    });
  }

  /** Makes the call that was held up. */
  async wake(): Promise<void> {
    await this.late?.().catch(() => undefined);
  }

  private async run(call: () => unknown): Promise<unknown> {
    this.calls += 1;
    if (this.calls < this.at) return call();
    if (this.calls === this.at && this.mode === 'after') await call();
    if (this.calls === this.at && this.mode === 'late') this.late = async () => call();
    throw new Gone(`the process is gone at call ${this.at}`);
  }
}

const STORE_CALLS = ['takeSender', 'takeOrdered', 'exchange', 'hasNew', 'hasOrdered', 'release'];
const ROWS = 7;

/** Some rows have a policy for repeats: that of one is applied by whoever brings it, that of another in order. Each is a task. */
function preparedRow(index: number): PreparedTask {
  const [id, queue] = [`task-${index}`, index % 3 === 2 ? 'b' : 'a'];
  const state = { state: 'pending', nextProcessAt: undefined } as const;
  if (index === 3) return { request: repeat('once', id, { lock: id, queue }), ...state, repeats: 'once' };
  if (index < 4) return { request: request({ id, queue }), ...state };
  return { request: repeat('supersede', id, { lock: id, queue }), ...state, repeats: 'supersede' };
}

let redis: RedisProcess;
let admin: Redis;
let broker: RedisBroker;
beforeAll(async () => {
  redis = await startRedis();
  admin = new Redis(redis.port);
  broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
});
afterAll(async () => {
  await broker.close();
  admin.disconnect();
  await redis.stop();
});

describe.each(KINDS)('a relay that dies at any call, on $name', (kind) => {
  let server: DatabaseServer;
  let world: StoreWorld;
  beforeAll(async () => {
    server = await kind.start();
    world = await kind.open(server);
    await createTables(world, kind);
  });
  afterAll(async () => {
    await world.close();
    await server.stop();
  });

  const relayOn = (mortal: Mortal): OutboxRelay => {
    const store: OutboxStore = mortal.of(world.store, STORE_CALLS);
    const rows = mortal.of(broker.rows, ['enqueue', 'enqueueLinked', 'enqueueRepeats']);
    const { links, clock } = broker;
    const deps = { broker: { rows, links, clock }, relay: new Relay(links), events: new AsynqEvents() };
    return new OutboxRelay(store, deps, { pollInterval: 1_000, retention: 60_000 }, { batchSize: 3 });
  };
  /** Tasks that were worked leave nothing behind. */
  const work = async (): Promise<string[]> => {
    const done: string[] = [];
    for (const queue of ['a', 'b']) {
      for (
        let id = await admin.rpop(`asynq:{${queue}}:pending`);
        id;
        id = await admin.rpop(`asynq:{${queue}}:pending`)
      ) {
        await admin.del(`asynq:{${queue}}:t:${id}`);
        done.push(id);
      }
    }
    return done;
  };
  const expireLeases = () => world.sql('UPDATE asynq_outbox_senders SET owned_until = 0');

  /** Returns whether the relay has died; its successors do the rest. */
  async function story(at: number, mode: Mode): Promise<boolean> {
    await admin.flushall();
    await world.sql('DELETE FROM asynq_outbox');
    await world.sql('DELETE FROM asynq_outbox_senders');
    const tasks = Array.from({ length: ROWS }, (_, index) => preparedRow(index));
    await world.transaction((tx) => world.store.insert(tx, tasks.map(rowOf)));
    const ids = tasks.map((task) => task.request.message.id).sort();
    const mortal = new Mortal(at, mode);
    await relayOn(mortal)
      .drain()
      .catch((error: unknown) => expect(error).toBeInstanceOf(Gone));
    const worked = await work();
    await expireLeases();
    await relayOn(new Mortal(Infinity, 'before')).drain();
    worked.push(...(await work()));
    await mortal.wake();
    worked.push(...(await work()));
    await expireLeases();
    await relayOn(new Mortal(Infinity, 'before')).drain();
    worked.push(...(await work()));
    expect({ at, mode, worked: worked.sort() }).toEqual({ at, mode, worked: ids });
    expect(await world.store.counts()).toMatchObject({ fresh: 0, taken: 0, poisoned: 0 });
    return mortal.isGone;
  }

  it.each(modesOf(kind))('has its tasks enqueued once by the next one: %s', { timeout: 120_000 }, async (mode) => {
    let at = 1;
    while (await story(at, mode)) at += 1;
    expect(at).toBeGreaterThan(6); // it did die, at each of its calls
  });
});
