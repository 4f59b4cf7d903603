import { expect, it, onTestFinished } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { rowOf } from '../../lib/outbox/row-codec.js';
import { request } from '../support/messages.js';
import { createTables, PG } from './stores.js';

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
  await expect.poll(tasks, { timeout: 20_000 }).toEqual(['before', 'after']);
  await expect.poll(() => world.store.counts()).toMatchObject({ fresh: 0, taken: 0, poisoned: 0 });
});
