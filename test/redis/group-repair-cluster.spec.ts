import { afterAll, beforeAll, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { RedisBackdoor } from '../contract/redis-world.js';
import { request } from '../support/messages.js';
import { type RedisCluster, startCluster } from '../support/redis.js';

let cluster: RedisCluster;
let backdoor: RedisBackdoor;
beforeAll(async () => {
  cluster = await startCluster(3);
  backdoor = new RedisBackdoor(cluster.nodes);
});
afterAll(async () => {
  backdoor.close();
  await cluster.stop();
});

it('lists stranded groups of queues on every node of a cluster', async () => {
  const { broker, cleanup } = await backdoor.world(new ManualClock());
  const queues = Array.from({ length: 12 }, (_, n) => `q${n}`);
  const homes = new Set<unknown>();
  for (const queue of queues) {
    await broker.enqueue(queue, [request({ queue, groupKey: 'g' })]);
    const { groups } = new Keyspace().queue(queue);
    const home = await backdoor.home(groups);
    homes.add(home);
    await home.del(groups);
  }
  expect(homes.size).toBe(3);
  for (const queue of queues) expect(await broker.repairGroups(queue)).toEqual({ listed: 1, removed: 0 });
  await cleanup();
});
