import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace, type QueueKeys } from '../../lib/wire/keys.js';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { Driver, type World } from './driver.js';
import { RedisBackdoor } from './redis-world.js';

/** A driver of the Redis broker, and the Redis behind it. */
export class RedisDriver extends Driver {
  readonly keys: QueueKeys = new Keyspace().queue('default');

  constructor(
    world: World & { readonly broker: RedisBroker },
    clock: ManualClock,
    readonly redis: Redis,
  ) {
    super(world, clock);
  }

  /** Every key with its bytes: equal contents mean that nothing was written. */
  async contents(): Promise<Record<string, string>> {
    const keys = (await this.redis.keys('*')).sort();
    const dumps = await Promise.all(keys.map((key) => this.redis.dumpBuffer(key)));
    return Object.fromEntries(keys.map((key, index) => [key, dumps[index]?.toString('hex') ?? '']));
  }
}

/** For the top of a spec file: one server, and for each test an empty Redis with a new broker on it. */
export function useRedis(): () => RedisDriver {
  let server: RedisProcess;
  let backdoor: RedisBackdoor;
  let driver: RedisDriver;
  beforeAll(async () => {
    server = await startRedis();
    backdoor = new RedisBackdoor([server]);
  });
  beforeEach(async () => {
    const clock = new ManualClock(Math.floor(Date.now() / 1000) * 1000);
    driver = new RedisDriver(await backdoor.world(clock), clock, await backdoor.home(''));
  });
  afterEach(() => driver.world.cleanup());
  afterAll(async () => {
    backdoor.close();
    await server.stop();
  });
  return () => driver;
}
