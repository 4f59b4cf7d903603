import { type Clock, floorSeconds } from '../../clock.js';
import { decodeServerInfo, decodeWorkerInfo, encodeServerInfo, encodeWorkerInfo } from '../../wire/codec.js';
import type { Keyspace } from '../../wire/keys.js';
import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { MonitoringBroker } from '../broker.js';
import type { PublishedServer } from '../inspection.js';
import { subscribe } from './cancellation.js';
import type { RedisConnections } from './connections.js';
import type { Argument } from './script-command.js';
import type { Scripts } from './scripts.js';

type ServerId = Pick<ServerInfo, 'host' | 'pid' | 'serverId'>;

/** Seconds after which an entry of the index is cleared away that nobody has renewed. Go's readers do it at once. */
const FORGOTTEN_AFTER = 3_600;

/** What servers publish of themselves, over the connection `monitor`, and the channel of cancellations. */
export class RedisMonitoring implements MonitoringBroker {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  /** The two index keys are in slots of their own, so they are written by commands of their own. */
  async writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    const [server, serverWorkers] = this.serverKeys(info);
    const staleAt = floorSeconds(this.clock.now() + ttl * 1000);
    const argv: Argument[] = [String(Math.ceil(ttl)), encodeServerInfo(info)];
    for (const worker of workers) argv.push(worker.taskId, encodeWorkerInfo(worker));
    const { servers, workers: index } = this.keyspace;
    await Promise.all([
      this.connections.run('monitor', 'ZADD', (client) => client.zadd(servers, staleAt, server)),
      this.connections.run('monitor', 'ZADD', (client) => client.zadd(index, staleAt, serverWorkers)),
      this.scripts.run('monitor', 'writeServerState', [server, serverWorkers], argv),
    ]);
  }

  async clearServerState(info: ServerId): Promise<void> {
    const [server, serverWorkers] = this.serverKeys(info);
    const { servers, workers: index } = this.keyspace;
    await Promise.all([
      this.connections.run('monitor', 'ZREM', (client) => client.zrem(servers, server)),
      this.connections.run('monitor', 'ZREM', (client) => client.zrem(index, serverWorkers)),
      this.connections.run('monitor', 'DEL', (client) => client.del(server, serverWorkers)),
    ]);
  }

  async publishCancellation(id: string): Promise<void> {
    await this.connections.run('monitor', 'PUBLISH', (client) => client.publish(this.keyspace.cancel, id));
  }

  subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>> {
    return subscribe(this.connections, this.keyspace.cancel, onCancel);
  }

  /**
   * Asks for all that is in the index and takes those for living whose key has not expired: Redis' own time decides, so that no
   * skewed clock hides a server.
   */
  async servers(): Promise<PublishedServer[]> {
    const { servers, workers } = this.keyspace;
    const gone = floorSeconds(this.clock.now()) - FORGOTTEN_AFTER;
    await this.connections.run('monitor', 'ZREMRANGEBYSCORE', (client) =>
      client.zremrangebyscore(servers, '-inf', gone),
    );
    const names = await this.connections.run('monitor', 'ZRANGE', (client) => client.zrange(servers, '0', '-1'));
    const read = names.map((name) => this.readServer(name, workers + name.slice(servers.length)));
    return (await Promise.all(read)).filter((server) => server !== undefined);
  }

  private async readServer(server: string, workers: string): Promise<PublishedServer | undefined> {
    const [bytes, values] = await Promise.all([
      this.connections.run('monitor', 'GET', (client) => client.getBuffer(server)),
      this.connections.run('monitor', 'HVALS', (client) => client.hvalsBuffer(workers)),
    ]).catch((error: unknown) => {
      if (isWrongType(error)) return [null, []] as const;
      throw error;
    });
    const info = bytes && attempt(() => decodeServerInfo(bytes));
    if (!info) return undefined;
    return { info, workers: values.flatMap((value) => attempt(() => decodeWorkerInfo(value)) ?? []) };
  }

  async ping(): Promise<void> {
    await this.connections.run('monitor', 'PING', (client) => client.ping());
  }

  private serverKeys({ host, pid, serverId }: ServerId): [server: string, workers: string] {
    return [this.keyspace.server(host, pid, serverId), this.keyspace.serverWorkers(host, pid, serverId)];
  }
}

/** `undefined` for what is no message. */
function attempt<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}

const isWrongType = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith('WRONGTYPE');
