import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { MonitoringRole, ServerIdentity } from '../monitoring.js';
import type { PublishedServer } from '../inspection.js';
import type { ServerProfile } from '../server-profile.js';
import type { MemoryState } from './memory-state.js';

const nameOf = ({ host, pid, serverId }: ServerIdentity): string => `${host}:${pid}:${serverId}`;

export class MemoryMonitoring implements MonitoringRole {
  private readonly servers = new Map<string, PublishedServer & { readonly expiresAt: number }>();

  private readonly profiles = new Map<string, { readonly profile: ServerProfile; readonly expiresAt: number }>();

  constructor(private readonly state: MemoryState) {}

  async writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    this.state.assertOpen();
    const copy = workers.map((worker) => ({ ...worker, taskPayload: Buffer.from(worker.taskPayload) }));
    const expiresAt = this.state.now + ttl * 1000;
    this.servers.set(nameOf(info), { info: { ...info, queues: { ...info.queues } }, workers: copy, expiresAt });
  }

  async writeServerProfile(server: ServerIdentity, profile: ServerProfile, ttl: number): Promise<void> {
    this.state.assertOpen();
    this.profiles.set(nameOf(server), { profile: structuredClone(profile), expiresAt: this.state.now + ttl * 1000 });
  }

  async clearServerState(info: ServerIdentity): Promise<void> {
    this.state.assertOpen();
    this.profiles.delete(nameOf(info));
    this.servers.delete(nameOf(info));
  }

  async ping(): Promise<void> {
    this.state.assertOpen();
  }

  profileOf(server: ServerIdentity, now: number): ServerProfile | undefined {
    const known = this.profiles.get(nameOf(server));
    return known && known.expiresAt > now ? known.profile : undefined;
  }

  /** Those that have published within their time to live. */
  living(now: number): PublishedServer[] {
    for (const [name, server] of this.servers) if (server.expiresAt <= now) this.servers.delete(name);
    return [...this.servers.values()].map(({ info, workers }) => ({ info, workers }));
  }
}
