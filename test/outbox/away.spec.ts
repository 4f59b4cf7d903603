import { once } from 'node:events';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import { only } from '../../lib/outbox/sql/database.js';
import { PgDatabase } from '../../lib/outbox/stores/pg.js';
import { request } from '../support/messages.js';
import { createTables, local, PG } from './stores.js';

it('goes on after its database was away for longer than the lease, and enqueues each task once', async () => {
  const server = await PG.start();
  const world = await PG.open(server);
  await createTables(world, PG);
  const broker = new MemoryBroker();
  const events = new AsynqEvents();
  const deps = { broker, relay: new Relay(broker.links), events };
  const relay = new OutboxRelay(world.store, deps, { pollInterval: 20, retention: 60_000 }, { lease: 50 });
  onTestFinished(async () => {
    await relay.stop();
    await world.close();
    await server.stop();
  });
  const insert = (id: string) => {
    const row = rowOf({ request: request({ id, queue: 'mails' }), state: 'pending', nextProcessAt: undefined });
    return world.transaction((tx) => world.store.insert(tx, [row]));
  };
  const tasks = () => broker.tasks().map(({ message }) => message?.id);
  /** Resolves when the relay has failed so often. */
  const failures = (count: number) =>
    new Promise<void>((resolve) => {
      events.on('loopFailed', ({ loop }) => {
        if (loop === 'outbox relay' && --count === 0) resolve();
      });
    });
  relay.start();
  await insert('before');
  await expect.poll(tasks).toEqual(['before']);
  const failed = failures(3);
  await server.kill();
  await failed;
  await server.start();
  await insert('after');
  await expect.poll(tasks).toEqual(['before', 'after']);
  await expect.poll(() => world.store.counts()).toMatchObject({ fresh: 0, taken: 0, poisoned: 0 });
});

it('does not end the process when PostgreSQL ends a connection in the middle of a transaction', async () => {
  const server = await PG.start();
  const pool = new pg.Pool({ ...local, port: server.port, user: 'postgres', database: 'postgres' });
  onTestFinished(() => server.stop());
  onTestFinished(() => pool.end());
  const removed = once(pool, 'remove');
  const taken = once(pool, 'acquire');
  const transaction = new PgDatabase(pool).transaction(
    only({ text: 'SELECT pg_terminate_backend(pg_backend_pid())', values: [] }),
  );
  const [client] = (await taken) as [pg.PoolClient];
  const errors: unknown[] = [];
  const emit = client.emit.bind(client);
  client.emit = (event: string, ...rest: unknown[]) => {
    if (event === 'error') errors.push(client.listenerCount('error'));
    return emit(event as never, ...(rest as never[]));
  };
  await expect(transaction).rejects.toThrow('terminating connection');
  await removed;
  expect(errors).toEqual([1]);
});
