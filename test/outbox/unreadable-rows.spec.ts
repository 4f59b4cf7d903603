import type { OutboxStore } from 'nestjs-asynq/outbox';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import type { DatabaseServer } from '../support/database-server.js';
import { repeat, request } from '../support/messages.js';
import { createTables, SQLITE, type StoreWorld } from './stores.js';

/* Rows that a relay cannot read, because they are damaged, or because a newer version has written them. */

let server: DatabaseServer;
let world: StoreWorld;
let broker: MemoryBroker;
beforeEach(async () => {
  server = await SQLITE.start();
  world = await SQLITE.open(server);
  await createTables(world, SQLITE);
  broker = new MemoryBroker();
});
afterEach(async () => {
  await world.close();
  await server.stop();
});

const relayOn = (store: OutboxStore): OutboxRelay => {
  const deps = { broker, relay: new Relay(broker.links), events: new AsynqEvents() };
  return new OutboxRelay(store, deps, { pollInterval: 1_000, retention: 60_000 });
};

/** Dies at its exchange with this number: the database gets nothing of it any more. */
function mortal(store: OutboxStore, last: number): OutboxStore {
  let exchanges = 0;
  const gone = () => Promise.reject(new Error('the process is gone'));
  const exchange: OutboxStore['exchange'] = (...args) => (++exchanges < last ? store.exchange(...args) : gone());
  return Object.create(store, { exchange: { value: exchange }, release: { value: gone } }) as OutboxStore;
}

const plain = (id: string, queue = 'a') =>
  rowOf({ request: request({ id, queue }), state: 'pending', nextProcessAt: undefined });
const ordered = (id: string) =>
  rowOf({
    request: repeat('supersede', id, { lock: id, queue: 'a' }),
    state: 'pending',
    nextProcessAt: undefined,
    repeats: 'supersede',
  });
const insert = (...rows: ReturnType<typeof rowOf>[]) => world.transaction((tx) => world.store.insert(tx, rows));
const newer = <R extends ReturnType<typeof rowOf>>(row: R): R => ({
  ...row,
  details: JSON.stringify({ ...(JSON.parse(row.details) as object), fromTheFuture: 1 }),
});
/** From now on relays are of the newer version. */
const update = () =>
  world.sql(`UPDATE asynq_outbox SET details = replace(details, '"fromTheFuture":1', '"madeId":true')`);
const expireLeases = () => world.sql('UPDATE asynq_outbox_senders SET owned_until = 0');
const states = async () => (await world.sql('SELECT state FROM asynq_outbox ORDER BY id')).map(({ state }) => state);
const tasks = () => broker.tasks().map(({ message }) => message?.id);

it.each([
  // The first exchange takes plain rows; ordered ones are taken by the second. The next would note which one is poisoned.
  ['plain', plain, 2],
  ['ordered', ordered, 3],
])('a row of a newer version, %s, arrives once, though the relay that cannot read it dies', async (_, row, last) => {
  await insert(row('1'), newer(row('2')), row('3'));
  await relayOn(mortal(world.store, last))
    .drain()
    .catch(() => undefined);
  await expireLeases();
  await update();
  const relay = relayOn(world.store);
  await relay.drain();
  await world.store.retryPoisoned(10);
  await relay.drain();
  expect(await states()).toEqual(['sent', 'sent', 'sent']);
  expect(tasks().toSorted()).toEqual(['1', '2', '3']);
});

it('is poisoned with its reason, and what stands behind it is sent in the same pass', async () => {
  await insert(plain('1'), newer(plain('2')), plain('3'), plain('4', 'b'), newer(ordered('5')), ordered('6'));
  const relay = relayOn(world.store);
  await relay.drain();
  expect(tasks().toSorted()).toEqual(['1', '3', '4', '6']);
  expect(await states()).toEqual(['sent', 'poisoned', 'sent', 'sent', 'poisoned', 'sent']);
  const [poisoned] = await world.store.poisoned({ limit: 1 });
  expect(poisoned!.error).toMatch(/^row 2 .* a newer version has written it, with fromTheFuture; update the process/);
  await update();
  await world.store.retryPoisoned(10);
  await relay.drain();
  expect(tasks().toSorted()).toEqual(['1', '2', '3', '4', '5', '6']);
});

it('is adopted from a relay that is gone, with those behind it', async () => {
  await insert(plain('1'), newer(plain('2')), plain('3'));
  await relayOn(mortal(world.store, 2))
    .drain()
    .catch(() => undefined);
  await expireLeases();
  // It has a sender of its own already, and takes this one over beside it.
  const relay = relayOn(Object.create(world.store, { takeSender: { value: async () => ({ id: 'own', rows: [] }) } }));
  await world.sql(`INSERT INTO asynq_outbox_senders (id, number, owner, owned_until) VALUES ('own', 0, 'x', 9e15)`);
  relay.start();
  await expect.poll(states).toEqual(['sent', 'poisoned', 'sent']);
  await relay.stop();
  expect(tasks()).toEqual(['1', '3']);
});

it('a policy that a newer version has is not taken for another one', async () => {
  const row = ordered('1');
  await insert({ ...row, details: row.details.replace('"supersede"', '"outwit"') });
  await relayOn(world.store).drain();
  expect(tasks()).toEqual([]);
  expect((await world.store.poisoned({ limit: 1 }))[0]!.error).toContain('with the policy outwit');
});
