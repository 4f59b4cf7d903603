import type { Redis } from 'ioredis';
import { test as base } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace, type QueueKeys } from '../../lib/wire/keys.js';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { Driver, START, type World } from './driver.js';
import { RedisBackdoor } from './redis-world.js';

/** A driver of the Redis broker, and the Redis behind it. */
export class RedisDriver extends Driver {
  readonly keyspace = new Keyspace();
  readonly keys: QueueKeys = this.keyspace.queue('default');
  private readonly opened: RedisBroker[] = [];

  constructor(
    world: World & { readonly broker: RedisBroker },
    clock: ManualClock,
    readonly server: RedisProcess,
    readonly redis: Redis,
  ) {
    super(world, clock);
  }

  /** A second broker on the same clock, connected to `port`. */
  open(port: number): RedisBroker {
    const broker = new RedisBroker(new RedisConnections({ host: this.server.host, port }), { clock: this.clock });
    this.opened.push(broker);
    return broker;
  }

  /** Every key with its bytes: equal contents mean that nothing was written. */
  async contents(): Promise<Record<string, string>> {
    const keys = (await this.redis.keys('*')).sort();
    const dumps = await Promise.all(keys.map((key) => this.redis.dumpBuffer(key)));
    return Object.fromEntries(keys.map((key, index) => [key, dumps[index]?.toString('hex') ?? '']));
  }

  async close(): Promise<void> {
    await Promise.all([this.world.cleanup(), ...this.opened.map((broker) => broker.close())]);
  }
}

/**
 * A test with a driver: one server per spec file, and for each test an empty database with a new
 * broker.
 */
export const it = base
  .extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
    const server = await startRedis();
    onCleanup(() => server.stop());
    return server;
  })
  .extend('backdoor', { scope: 'file' }, async ({ server }, { onCleanup }) => {
    const backdoor = new RedisBackdoor([server]);
    onCleanup(() => backdoor.close());
    return backdoor;
  })
  .extend('driver', async ({ server, backdoor }, { onCleanup }) => {
    const clock = new ManualClock(START);
    const driver = new RedisDriver(await backdoor.world(clock), clock, server, await backdoor.home(''));
    onCleanup(() => driver.close());
    return driver;
  });
