import { Redis } from 'ioredis';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { floorSeconds, type ManualClock } from '../../lib/clock.js';
import { decodeSchedulerEnqueueEvent, decodeSchedulerEntry, decodeTaskMessage } from '../../lib/wire/codec.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { dumpRedis } from '../support/redis-dump.js';
import type { World } from './driver.js';

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Plain connections to every server of a Redis broker, to read and change data without the broker.
 */
export class RedisBackdoor {
  readonly nodes: readonly Redis[];

  constructor(private readonly addresses: readonly Address[]) {
    this.nodes = addresses.map((address) => new Redis({ host: address.host, port: address.port, protocol: 2 }));
  }

  get isCluster(): boolean {
    return this.addresses.length > 1;
  }

  /** The node that holds the key. */
  async home(key: string): Promise<Redis> {
    const [first] = this.nodes;
    if (!first) throw new Error('there is no Redis');
    if (!this.isCluster) return first;
    const slot = Number(await first.call('CLUSTER', 'KEYSLOT', key));
    const ranges = (await first.call('CLUSTER', 'SLOTS')) as [number, number, [string, number, ...unknown[]]][];
    const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
    return this.nodes[this.addresses.findIndex((address) => address.port === port)] ?? first;
  }

  async flush(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.flushall()));
  }

  close(): void {
    for (const node of this.nodes) node.disconnect();
  }

  /** A new broker on the emptied Redis, as a world of the contract suite. */
  async world(clock: ManualClock, keyPrefix?: string): Promise<World & { readonly broker: RedisBroker }> {
    await this.flush();
    const [first] = this.addresses;
    if (!first) throw new Error('there is no Redis');
    const input = this.isCluster ? { cluster: [...this.addresses] } : { host: first.host, port: first.port };
    const broker = new RedisBroker(new RedisConnections(input), { clock, keyPrefix });
    const keyspace = new Keyspace(broker.keyPrefix);
    return {
      broker,
      cleanup: () => broker.close(),
      dump: () => dumpRedis(this.nodes, clock, broker.keyPrefix),
      nameGroup: async (queue, id, group) => {
        const key = keyspace.queue(queue).task(id);
        await (await this.home(key)).hset(key, 'group', group);
      },
      completeUnseen: async (queue, id) => {
        const keys = keyspace.queue(queue);
        const node = await this.home(keys.task(id));
        const { retention } = decodeTaskMessage((await node.hgetBuffer(keys.task(id), 'msg'))!);
        await node.multi().lrem(keys.active, 1, id).zrem(keys.lease, id).exec();
        if (retention === 0) return void (await node.del(keys.task(id)));
        await node.hset(keys.task(id), 'state', 'completed');
        await node.zadd(keys.completed, floorSeconds(clock.now()) + retention, id);
      },
      schedulerEntries: async () => {
        const index = keyspace.schedulers;
        const keys = await (await this.home(index)).zrangebyscore(index, `(${floorSeconds(clock.now())}`, '+inf');
        const lists = await Promise.all(keys.map(async (key) => (await this.home(key)).lrangeBuffer(key, 0, -1)));
        return lists.flat().map((bytes) => decodeSchedulerEntry(bytes as Buffer));
      },
      enqueueEvents: async (entryId) => {
        const key = keyspace.schedulerHistory(entryId);
        const events = await (await this.home(key)).zrangeBuffer(key, '0', '-1');
        return events.map((bytes) => decodeSchedulerEnqueueEvent(bytes as Buffer));
      },
      expireLock: async (_, key) => void (await (await this.home(key)).del(key)),
    };
  }
}
