import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { startRedis } from '../support/redis.js';

/** A Redis that has the state of its last SAVE again after a restart, as one with `everysec` that has lost its last writes. */
export async function forgetful() {
  const server = await startRedis({ args: ['--dbfilename', 'dump.rdb'] });
  onTestFinished(() => server.stop());
  const redis = new Redis(server.port, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  const broker = new RedisBroker(new RedisConnections({ host: server.host, port: server.port }));
  onTestFinished(() => broker.close());
  return { server, redis, broker };
}
