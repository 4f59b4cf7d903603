import { expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { useCluster } from '../contract/cluster-fixture.js';
import { request } from '../support/messages.js';

const cluster = useCluster();

it('lists stranded groups of queues on every node of a cluster', async () => {
  const { broker, cleanup } = await cluster.backdoor.world(new ManualClock());
  const queues = Array.from({ length: 12 }, (_, n) => `q${n}`);
  const homes = new Set<unknown>();
  for (const queue of queues) {
    await broker.producer.enqueue(queue, [request({ queue, groupKey: 'g' })]);
    const { groups } = new Keyspace().queue(queue);
    const home = await cluster.backdoor.home(groups);
    homes.add(home);
    await home.del(groups);
  }
  expect(homes.size).toBe(3);
  for (const queue of queues) expect(await broker.groups.repairGroups(queue)).toEqual({ listed: 1, removed: 0 });
  await cleanup();
});
