import { floorSeconds } from '../../clock.js';
import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { LostServer, MonitoringRole, ServerIdentity } from '../monitoring.js';
import type { PublishedServer } from '../inspection.js';
import type { ServerProfile } from '../server-profile.js';
import type { MemoryState } from './memory-state.js';

/** How long a server that has stopped to publish is remembered. */
const LOST_MS = 3_600_000;

const nameOf = ({ host, pid, serverId }: ServerIdentity): string => `${host}:${pid}:${serverId}`;

export class MemoryMonitoring implements MonitoringRole {
  private readonly servers = new Map<
    string,
    PublishedServer & { readonly seenAt: number; readonly expiresAt: number }
  >();

  private readonly profiles = new Map<string, { readonly profile: ServerProfile; readonly expiresAt: number }>();

  constructor(private readonly state: MemoryState) {}

  async writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void> {
    this.state.assertOpen();
    const copy = workers.map((worker) => ({ ...worker, taskPayload: Buffer.from(worker.taskPayload) }));
    const seenAt = this.state.now;
    const own = { ...info, queues: { ...info.queues } };
    this.servers.set(nameOf(info), { info: own, workers: copy, seenAt, expiresAt: seenAt + ttl * 1000 });
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

  async lostServers(): Promise<LostServer[]> {
    this.state.assertOpen();
    const now = this.state.now;
    const lost = [...this.servers.values()].filter(({ expiresAt }) => expiresAt <= now && expiresAt > now - LOST_MS);
    return lost.map(({ info: { host, pid }, seenAt }) => ({ host, pid, at: floorSeconds(seenAt) }));
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
    for (const [name, server] of this.servers) if (server.expiresAt <= now - LOST_MS) this.servers.delete(name);
    const living = [...this.servers.values()].filter(({ expiresAt }) => expiresAt > now);
    return living.map(({ info, workers }) => ({ info, workers }));
  }
}
