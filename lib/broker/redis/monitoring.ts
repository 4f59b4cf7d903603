import type { Cluster } from 'ioredis';
import { type Clock, floorSeconds } from '../../clock.js';
import { encodeServerInfo } from '../../wire/codec.js';
import type { Keyspace } from '../../wire/keys.js';
import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { LostServer, MonitoringRole, ServerIdentity } from '../monitoring.js';
import type { ServerProfile } from '../server-profile.js';
import type { RedisClient } from './connection/client-factory.js';
import type { RedisConnections } from './connection/connections.js';
import { PublishedWorkers } from './published-workers.js';
import type { Scripts } from './scripts/scripts.js';

/** What servers publish of themselves, over the connection `monitor`. */
export class RedisMonitoring implements MonitoringRole {
  private readonly workers: PublishedWorkers;

  constructor(
    private readonly connections: RedisConnections,
    scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {
    this.workers = new PublishedWorkers(scripts);
  }

  /** The two index keys are in other slots, so they need commands of their own. */
  async writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    const [server, serverWorkers] = this.serverKeys(info);
    const staleAt = floorSeconds(this.clock.now() + ttl * 1000);
    const state = { keys: [server, serverWorkers], ttl: String(Math.ceil(ttl)), info: encodeServerInfo(info) } as const;
    const { servers, workers: index } = this.keyspace;
    await Promise.all([
      this.connections.run('monitor', 'ZADD', (client) => client.zadd(servers, staleAt, server)),
      this.connections.run('monitor', 'ZADD', (client) => client.zadd(index, staleAt, serverWorkers)),
      this.workers.write(state, workers),
    ]);
  }

  async writeServerProfile(
    { host, pid, serverId }: ServerIdentity,
    profile: ServerProfile,
    ttl: number,
  ): Promise<void> {
    const key = this.keyspace.serverProfile(host, pid, serverId);
    await this.connections.run('monitor', 'SET', (client) => client.set(key, JSON.stringify(profile), 'EX', ttl));
  }

  async clearServerState(info: ServerIdentity): Promise<void> {
    const [server, serverWorkers] = this.serverKeys(info);
    this.workers.forget(serverWorkers);
    const profile = this.keyspace.serverProfile(info.host, info.pid, info.serverId);
    const { servers, workers: index } = this.keyspace;
    await Promise.all([
      this.connections.run('monitor', 'ZREM', (client) => client.zrem(servers, server)),
      this.connections.run('monitor', 'ZREM', (client) => client.zrem(index, serverWorkers)),
      this.connections.run('monitor', 'DEL', (client) => client.del(server, serverWorkers, profile)),
    ]);
  }

  /** asynq's servers, too, publish for ten seconds. */
  async lostServers(): Promise<LostServer[]> {
    const { servers } = this.keyspace;
    const now = floorSeconds(this.clock.now());
    const range = [String(now - LOST_SECONDS), `(${now}`] as const;
    const entries = await this.connections.run('monitor', 'ZRANGE', (client) =>
      client.zrange(servers, ...range, 'BYSCORE', 'WITHSCORES'),
    );
    return entries.flatMap((name, index) => (index % 2 === 0 ? readLost(name, Number(entries[index + 1])) : []));
  }

  async ping(): Promise<void> {
    await this.connections.run('monitor', 'PING', pingAny);
  }

  private serverKeys({ host, pid, serverId }: ServerIdentity): [server: string, workers: string] {
    return [this.keyspace.server(host, pid, serverId), this.keyspace.serverWorkers(host, pid, serverId)];
  }
}

const LOST_SECONDS = 3_600;
const TTL_SECONDS = 10;

/** The name is `…:{<host>:<pid>:<id>}`. */
function readLost(name: string, staleAt: number): LostServer[] {
  const [, host, pid] = /\{(.+):(\d+):[^:}]*\}$/.exec(name) ?? [];
  return host === undefined ? [] : [{ host, pid: Number(pid), at: staleAt - TTL_SECONDS }];
}

/**
 * In a cluster ioredis would ask one node, and while one of three is down every third ping would
 * fail.
 */
async function pingAny(client: RedisClient): Promise<unknown> {
  const masters = client.isCluster ? (client as Cluster).nodes('master') : [];
  if (masters.length === 0) return client.ping();
  const pings = masters.map((master) => master.ping());
  return Promise.any(pings).catch(() => pings[0]);
}
