import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Lease, LeasedTask } from '../../lib/broker/broker.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { floorSeconds, ManualClock } from '../../lib/clock.js';
import { Keyspace, type QueueKeys } from '../../lib/wire/keys.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

/** A whole second, on no day's border: tests move the clock by hand. */
const START = Date.UTC(2030, 5, 15, 12, 0, 0);

/** A server of a spec file, and for each test a broker, a clock and an empty database. Everything concerns `default`. */
export class BrokerFixture {
  readonly keyspace = new Keyspace();
  readonly keys: QueueKeys = this.keyspace.queue('default');
  server!: RedisProcess;
  redis!: Redis;
  clock = new ManualClock(START);
  private opened: { close(): Promise<void> }[] = [];
  private current: RedisBroker | undefined;

  /** Opened at the first use in a test. */
  get broker(): RedisBroker {
    return (this.current ??= this.open());
  }

  /** Unix seconds. */
  get now(): number {
    return floorSeconds(this.clock.now());
  }

  /** A further broker on the same clock, over `port` when given. */
  open(port = this.server.port): RedisBroker {
    const broker = new RedisBroker(new RedisConnections({ host: this.server.host, port }), { clock: this.clock });
    this.opened.push(broker);
    return broker;
  }

  async take(count: number): Promise<LeasedTask[]> {
    return (await this.broker.consumer.exchange('default', { settle: [], take: count })).tasks;
  }

  async takeOne(): Promise<LeasedTask> {
    const [task] = await this.take(1);
    if (!task) throw new Error('no task is pending');
    return task;
  }

  /** Every key with its whole content as Redis dumps it: equal means that nothing was written. */
  async content(): Promise<Record<string, string>> {
    const keys = (await this.redis.keys('*')).sort();
    const dumps = await Promise.all(keys.map((key) => this.redis.dumpBuffer(key)));
    return Object.fromEntries(keys.map((key, index) => [key, dumps[index]!.toString('hex')]));
  }

  async start(...args: string[]): Promise<void> {
    this.server = await startRedis({ args });
    this.redis = new Redis({ port: this.server.port, host: this.server.host, protocol: 2 });
  }

  async reset(): Promise<void> {
    await Promise.all(this.opened.map((broker) => broker.close()));
    this.opened = [];
    this.current = undefined;
    this.clock = new ManualClock(START);
    await this.redis.flushall();
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await this.server.stop();
  }
}

/** For the top of a spec file. @param args further arguments of redis-server */
export function useBroker(...args: string[]): BrokerFixture {
  const fixture = new BrokerFixture();
  beforeAll(() => fixture.start(...args));
  afterEach(() => fixture.reset());
  afterAll(() => fixture.stop());
  return fixture;
}

export const leaseOf = (id: string, expiresAt: number): Lease => ({ queue: 'default', id, expiresAt });
