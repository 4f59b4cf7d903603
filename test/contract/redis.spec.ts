import { afterAll, beforeAll } from 'vitest';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { exerciseBroker } from './exercise-broker.js';
import { RedisBackdoor } from './redis-world.js';

let redis: RedisProcess;
let backdoor: RedisBackdoor;

beforeAll(async () => {
  redis = await startRedis();
  backdoor = new RedisBackdoor([redis]);
});

afterAll(async () => {
  backdoor.close();
  await redis.stop();
});

exerciseBroker('the Redis broker', (clock) => backdoor.world(clock));
