import type { Clock } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { ClusterLocation, RedisInfo } from '../inspection.js';
import type { OperationsRole, StoreInfo } from '../operations.js';
import type { RedisConnections } from './connection/connections.js';
import { slotOf } from './connection/slot.js';
import { readRedisInfo } from './redis-info.js';
import { readStoreInfo } from './store-info.js';

/** What Redis reports about itself, over the connection `monitor`. */
export class RedisOperations implements OperationsRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  storeInfo(): Promise<StoreInfo[]> {
    return readStoreInfo(this.connections, this.clock);
  }

  redisInfo(): Promise<RedisInfo> {
    return readRedisInfo(this.connections);
  }

  async clusterLocation(queue: string): Promise<ClusterLocation | undefined> {
    if (!this.connections.isCluster) return undefined;
    const slot = slotOf(this.keyspace.queue(queue).pending);
    const ranges = await this.connections.run('monitor', 'CLUSTER SLOTS', (client) => client.cluster('SLOTS'));
    const [, , ...nodes] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [0, 0];
    return { slot, nodes: nodes.map(([host, port]) => `${host}:${port}`) };
  }
}
