import { afterAll, beforeAll } from 'vitest';
import { type RedisCluster, startCluster } from '../support/redis.js';
import { exerciseBroker } from './exercise-broker.js';
import { RedisBackdoor } from './redis-world.js';

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

exerciseBroker('the Redis broker on a cluster of three', (clock) => backdoor.world(clock));
