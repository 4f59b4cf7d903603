import type { ServerInfo, WorkerInfo } from '../wire/message.js';

export interface MonitoringRole {
  /** Publishes a server and its running tasks for `ttl` seconds. */
  writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void>;
  clearServerState(info: Pick<ServerInfo, 'host' | 'pid' | 'serverId'>): Promise<void>;
  /** Resolves when the store replies; in a cluster, when any node does. */
  ping(): Promise<void>;
}
