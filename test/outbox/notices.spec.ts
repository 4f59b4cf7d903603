import { AsynqClient, AsynqHealth, defineTask } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, mysqlOutbox, type OutboxStore, pgOutbox } from 'nestjs-asynq/outbox';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import { testApp } from '../nest/support.js';
import type { DatabaseServer } from '../support/database-server.js';
import { request } from '../support/messages.js';
import { KNEX_MARIADB, SEQUELIZE_MARIADB, TYPEORM_MARIADB, TYPEORM_SQLITE } from './library-stores.js';
import { createTables, PG, SQLITE, type StoreKind, type StoreWorld } from './stores.js';

const Mail = defineTask<{ n: number }>('mail');

async function open(kind: StoreKind): Promise<{ server: DatabaseServer; world: StoreWorld }> {
  const server = await kind.start();
  const world = await kind.open(server);
  onTestFinished(async () => {
    await world.close();
    await server.stop();
  });
  await createTables(world, kind);
  return { server, world };
}

const boot = async (store: OutboxStore) => {
  const { app, tasks } = await testApp({ imports: [AsynqOutboxModule.forRoot({ store, pollInterval: '10s' })] });
  await app.init();
  onTestFinished(() => app.close());
  const enqueued = () => tasks.enqueued(Mail).map(({ payload }) => payload.n);
  return { asynq: app.get(AsynqClient), outbox: app.get(AsynqOutbox), health: app.get(AsynqHealth), enqueued };
};

/** Less than the poll of these tests. */
const SOON = { timeout: 9_000, interval: 5 };

describe('notices of rows', () => {
  it.each([TYPEORM_MARIADB, TYPEORM_SQLITE, KNEX_MARIADB, SEQUELIZE_MARIADB])(
    'are those of the commit, where the relay is in the process that commits by $name',
    async (kind) => {
      const { world } = await open(kind);
      const { asynq, outbox, health, enqueued } = await boot(world.store);
      expect(await health.ready()).toMatchObject({ status: 'up', rowNotices: 'own' });
      await expect.poll(() => world.sql('SELECT id FROM asynq_outbox_senders'), SOON).toHaveLength(1);
      for (const n of [1, 2, 3]) {
        await world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Mail, { n })));
        await expect.poll(enqueued, SOON).toHaveLength(n);
      }
    },
  );

  it('are asked for by wake() where nobody knows of the commit', async () => {
    const { world } = await open(SQLITE);
    const { asynq, outbox, enqueued } = await boot(world.store);
    await expect.poll(() => world.sql('SELECT id FROM asynq_outbox_senders'), SOON).toHaveLength(1);
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Mail, { n: 1 })));
    outbox.wake();
    await expect.poll(enqueued, SOON).toEqual([1]);
  });

  it('come again after their connection was lost, and health says how it stands', async () => {
    const { world } = await open(PG);
    const { asynq, outbox, health, enqueued } = await boot(world.store);
    const notices = async () => {
      const { status, rowNotices } = await health.ready();
      return [status, rowNotices];
    };
    await expect.poll(notices, SOON).toEqual(['up', 'all']);
    await world.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`);
    await expect.poll(notices, SOON).toEqual(['up', 'lost']);
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Mail, { n: 1 })));
    expect(enqueued()).toEqual([]);
    outbox.wake();
    await expect.poll(notices, SOON).toEqual(['up', 'all']);
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Mail, { n: 2 })));
    await expect.poll(enqueued, SOON).toEqual([1, 2]);
  });

  it('are on the pool of the option listen, or not at all', async () => {
    const { server, world } = await open(PG);
    const pool = new pg.Pool({ host: '127.0.0.1', port: server.port, user: 'postgres', database: 'postgres' });
    onTestFinished(() => pool.end());
    const listeners = async () =>
      (await world.sql(`SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`)).length;
    expect(pgOutbox(pool, { listen: false }).listen).toBeUndefined();
    const never = { connect: () => Promise.reject(new Error('not this one')) };
    const end = await pgOutbox(never, { listen: pool }).listen!(
      () => undefined,
      () => undefined,
    );
    expect(await listeners()).toBe(1);
    expect(pool.totalCount).toBe(1);
    await end();
    expect(await listeners()).toBe(0);
    const mysql = { getConnection: () => Promise.reject(new Error('not connected')) };
    expect(() => mysqlOutbox(mysql, { listen: pool })).toThrow('option listen is for PostgreSQL; mysql has no notices');
    expect(() => pgOutbox(pool, { listen: true as never })).toThrow(
      'pgOutbox option listen must be a Pool of pg or false, not true',
    );
  });
});

describe('a relay that cannot listen', () => {
  let world: StoreWorld;
  let server: DatabaseServer;
  beforeEach(async () => {
    server = await SQLITE.start();
    world = await SQLITE.open(server);
    await createTables(world, SQLITE);
  });
  afterEach(async () => {
    await world.close();
    await server.stop();
  });

  it('polls, reports it, and listens as soon as it can', async () => {
    const broker = new MemoryBroker();
    const events = new AsynqEvents();
    const failures: string[] = [];
    events.on('loopFailed', ({ loop, error }) => failures.push(`${loop}: ${(error as Error).message}`));
    let refusals = 2;
    const listen = async () => {
      if (refusals-- > 0) throw new Error('LISTEN is refused');
      return async () => undefined;
    };
    const store = Object.create(world.store, { listen: { value: listen } }) as OutboxStore;
    const deps = { broker, relay: new Relay(broker.links), events };
    const relay = new OutboxRelay(store, deps, { pollInterval: 20, retention: 60_000 });
    onTestFinished(() => relay.stop());
    relay.start();
    expect(relay.notices).toBe('lost');
    const row = rowOf({ request: request({ id: 'a', queue: 'q' }), state: 'pending', nextProcessAt: undefined });
    await world.transaction((tx) => store.insert(tx, [row]));
    await expect.poll(() => broker.tasks().map(({ message }) => message?.id)).toEqual(['a']);
    await expect.poll(() => relay.notices).toBe('all');
    expect(failures).toEqual(['outbox notices: LISTEN is refused', 'outbox notices: LISTEN is refused']);
  });
});
