import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { PublishedServer } from '../inspection.js';

type ServerId = Pick<ServerInfo, 'host' | 'pid' | 'serverId'>;

const nameOf = ({ host, pid, serverId }: ServerId): string => `${host}:${pid}:${serverId}`;

/** What servers publish of themselves. */
export class MemoryMonitor {
  private readonly servers = new Map<string, PublishedServer & { readonly expiresAt: number }>();

  /** @param ttl seconds @param now milliseconds since the epoch */
  publish(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number, now: number): void {
    const copy = workers.map((worker) => ({ ...worker, taskPayload: Buffer.from(worker.taskPayload) }));
    const server = { info: { ...info, queues: { ...info.queues } }, workers: copy, expiresAt: now + ttl * 1000 };
    this.servers.set(nameOf(info), server);
  }

  clear(info: ServerId): void {
    this.servers.delete(nameOf(info));
  }

  /** Those that have published within their time to live. */
  living(now: number): PublishedServer[] {
    for (const [name, server] of this.servers) if (server.expiresAt <= now) this.servers.delete(name);
    return [...this.servers.values()].map(({ info, workers }) => ({ info, workers }));
  }
}
