import { afterAll, beforeAll, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { BrokerUnavailableError } from '../../lib/errors.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { ManualClock } from '../../lib/clock.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import type { DatabaseServer } from '../support/database-server.js';
import { request } from '../support/messages.js';
import { createTables, PG, type StoreWorld } from './stores.js';

let server: DatabaseServer;
let world: StoreWorld;
beforeAll(async () => {
  server = await PG.start();
  world = await PG.open(server);
  await createTables(world, PG);
});
afterAll(async () => {
  await world.close();
  await server.stop();
});

it('a queue that Redis does not take stops no other, and keeps its order', async () => {
  const clock = new ManualClock();
  const memory = new MemoryBroker(clock);
  let away = true;
  const rows = {
    enqueue: (queue: string, ...rest: [string, never]) =>
      away && queue === 'away'
        ? Promise.reject(new BrokerUnavailableError('its node is away'))
        : memory.rows.enqueue(queue, ...rest),
    enqueueLinked: memory.rows.enqueueLinked.bind(memory.rows),
    enqueueRepeats: memory.rows.enqueueRepeats.bind(memory.rows),
  };
  const events = new AsynqEvents();
  const unsent: string[] = [];
  events.on('rowsUnsent', ({ queue }) => unsent.push(queue));
  const deps = { broker: { rows, links: memory.links, clock }, relay: new Relay(memory.links), events };
  const relay = new OutboxRelay(world.store, deps, { pollInterval: 1_000, retention: 60_000 }, { batchSize: 2 });
  const insert = (queue: string, ...ids: string[]) =>
    world.transaction((tx) =>
      world.store.insert(
        tx,
        ids.map((id) => rowOf({ request: request({ id, queue }), state: 'pending', nextProcessAt: undefined })),
      ),
    );
  const tasks = () => memory.tasks().map(({ message }) => message?.id);

  await insert('away', 'a1', 'a2', 'a3'); // more than a batch
  await insert('here', 'h1', 'h2', 'h3');
  await relay.drain();
  expect(tasks()).toEqual(['h1', 'h2', 'h3']);
  expect(unsent).toEqual(['away']);
  expect(await world.store.counts()).toMatchObject({ fresh: 1, taken: 2 });

  away = false;
  await relay.drain(); // not tried again yet
  expect(tasks()).toHaveLength(3);
  clock.advance(30_000);
  await insert('here', 'h4');
  await relay.drain();
  expect(tasks()).toEqual(['h1', 'h2', 'h3', 'a1', 'a2', 'a3', 'h4']);
  expect(await world.store.counts()).toMatchObject({ fresh: 0, taken: 0 });
});
