import { afterEach, beforeEach, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import type { DatabaseServer } from '../support/database-server.js';
import { repeat, request } from '../support/messages.js';
import { createTables, SQLITE, type StoreWorld } from './stores.js';

/*
 * A database that has lost its last transactions, by a failover or an old backup, and whose clock is behind that of the one before: it gives
 * numbers again that Redis has got already.
 */

/** A row of the lost transactions had it; no clock is there yet. */
const HIGH = 8e15;

let server: DatabaseServer;
let world: StoreWorld;
let broker: MemoryBroker;
let unsent: string[];
beforeEach(async () => {
  server = await SQLITE.start();
  world = await SQLITE.open(server);
  await createTables(world, SQLITE);
  broker = new MemoryBroker();
  unsent = [];
});
afterEach(async () => {
  await world.close();
  await server.stop();
});

function makeRelay(): OutboxRelay {
  const events = new AsynqEvents();
  events.on('rowsUnsent', ({ error }) => unsent.push((error as Error).message));
  const deps = { broker, relay: new Relay(broker.links), events };
  return new OutboxRelay(world.store, deps, { pollInterval: 1_000, retention: 60_000 }, { batchSize: 2 });
}
const row = (id: string, queue = 'a') =>
  rowOf({ request: request({ id, queue }), state: 'pending', nextProcessAt: undefined });
const ordered = (id: string) =>
  rowOf({
    request: repeat('supersede', id, { lock: id, queue: 'a' }),
    state: 'pending',
    nextProcessAt: undefined,
    repeats: 'supersede',
  });
const insert = (...rows: ReturnType<typeof rowOf>[]) => world.transaction((tx) => world.store.insert(tx, rows));
const senders = async () =>
  (await world.sql('SELECT id FROM asynq_outbox_senders ORDER BY id')).map(({ id }) => String(id));
const states = async () => (await world.sql('SELECT state FROM asynq_outbox ORDER BY id')).map(({ state }) => state);
const tasks = () => broker.tasks().map(({ message }) => String(message?.id));

it('sends its rows under a new sender, and says why', async () => {
  const relay = makeRelay();
  await insert(row('1', 'b'));
  await relay.drain();
  const [sender] = await senders();
  await broker.rows.enqueue('a', sender!, [{ number: HIGH, request: request({ id: 'lost', queue: 'a' }) }]);
  await insert(row('2', 'b'), row('3'), row('4'), row('5', 'b'));
  await relay.drain();
  expect(tasks().toSorted()).toEqual(['1', '2', '3', '4', '5', 'lost']);
  expect(await states()).toEqual(['sent', 'sent', 'sent', 'sent', 'sent']);
  expect(await senders()).not.toContain(sender);
  expect(unsent).toEqual([expect.stringContaining('"a" has got row number 8000000000000000 of the sender')]);
});

it('does so with rows whose last call counts, and keeps their order', async () => {
  const relay = makeRelay();
  await insert(ordered('1'));
  await relay.drain();
  const [sender] = (await senders()).filter((id) => id.startsWith('ordered-'));
  const lost = repeat('supersede', 'lost', { lock: 'lost', queue: 'a' });
  await broker.rows.enqueueRepeats('a', sender!, [{ number: HIGH, request: lost }]);
  await insert(ordered('2'), ordered('3'), ordered('4'));
  await relay.drain();
  expect(tasks().toSorted()).toEqual(['1', '2', '3', '4', 'lost']);
  expect(await states()).toEqual(['sent', 'sent', 'sent', 'sent']);
  expect((await senders()).filter((id) => id.startsWith('ordered-'))).not.toContain(sender);
});

it('does so with rows of a relay that is gone', async () => {
  await insert(row('1'), row('2'));
  const { id: sender } = await world.store.takeSender('gone', 30_000);
  await world.store.exchange({ sender, owner: 'gone', take: 2, ended: [], except: [] }, -2_000);
  await broker.rows.enqueue('a', sender, [{ number: HIGH, request: request({ id: 'lost', queue: 'a' }) }]);
  const relay = makeRelay();
  await relay.drain();
  expect(tasks().toSorted()).toEqual(['1', '2', 'lost']);
  expect(await states()).toEqual(['sent', 'sent']);
});

it('is no reason to abandon a sender that another relay has by now', async () => {
  await insert(row('1'), row('2'));
  const { id: sender } = await world.store.takeSender('late', 30_000);
  await world.store.exchange({ sender, owner: 'other', take: 2, ended: [], except: [] }, 30_000);
  await world.store.abandon!(sender, 'other');
  expect(await senders()).toEqual([sender]);
});
