import { Redis } from 'ioredis';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker, type RedisBrokerOptions } from '../../lib/broker/redis/redis-broker.js';
import type { Server } from '../../lib/server/server.js';
import { type RedisProcess, startRedis } from './redis.js';

/** A Redis of its own, and the brokers and servers on it. */
export class RedisFleet {
  readonly brokers: RedisBroker[] = [];
  /** Whoever makes one adds it. */
  readonly servers: Server[] = [];

  private constructor(
    private readonly redis: RedisProcess,
    readonly client: Redis,
  ) {}

  static async start(): Promise<RedisFleet> {
    const redis = await startRedis();
    return new RedisFleet(redis, new Redis(redis.port));
  }

  makeBroker(options?: RedisBrokerOptions): RedisBroker {
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: this.redis.port }), options);
    this.brokers.push(broker);
    return broker;
  }

  /** Shuts all servers down. What they have stored stays. */
  async end(): Promise<void> {
    await Promise.all(this.servers.splice(0).map((server) => server.shutdown()));
    await Promise.all(this.brokers.splice(0).map((broker) => broker.close()));
  }

  async stop(): Promise<void> {
    await this.end();
    this.client.disconnect();
    await this.redis.stop();
  }
}
