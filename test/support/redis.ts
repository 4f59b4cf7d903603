/* Real Redis for tests: one server, a cluster, or a master with sentinels. */
export { startRedis, type RedisOptions, type RedisProcess } from './redis-server.js';
export { startCluster, type RedisCluster } from './redis-cluster.js';
export { startSentinel, type RedisSentinels } from './redis-sentinel.js';
