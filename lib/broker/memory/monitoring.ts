import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { MonitoringRole } from '../broker.js';
import type { PublishedServer } from '../inspection.js';
import type { MemoryState } from './memory-state.js';

type ServerId = Pick<ServerInfo, 'host' | 'pid' | 'serverId'>;

const nameOf = ({ host, pid, serverId }: ServerId): string => `${host}:${pid}:${serverId}`;

export class MemoryMonitoring implements MonitoringRole {
  private readonly servers = new Map<string, PublishedServer & { readonly expiresAt: number }>();

  constructor(private readonly state: MemoryState) {}

  async writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    this.state.assertOpen();
    const copy = workers.map((worker) => ({ ...worker, taskPayload: Buffer.from(worker.taskPayload) }));
    const expiresAt = this.state.now + ttl * 1000;
    this.servers.set(nameOf(info), { info: { ...info, queues: { ...info.queues } }, workers: copy, expiresAt });
  }

  async clearServerState(info: ServerId): Promise<void> {
    this.state.assertOpen();
    this.servers.delete(nameOf(info));
  }

  async ping(): Promise<void> {
    this.state.assertOpen();
  }

  /** Those that have published within their time to live. */
  living(now: number): PublishedServer[] {
    for (const [name, server] of this.servers) if (server.expiresAt <= now) this.servers.delete(name);
    return [...this.servers.values()].map(({ info, workers }) => ({ info, workers }));
  }
}
