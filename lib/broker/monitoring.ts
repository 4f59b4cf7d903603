import type { ServerInfo, WorkerInfo } from '../wire/message.js';
import type { ServerProfile } from './server-profile.js';

export type ServerIdentity = Pick<ServerInfo, 'host' | 'pid' | 'serverId'>;

/** A server that has stopped to publish, and has not withdrawn. */
export interface LostServer {
  readonly host: string;
  readonly pid: number;
  /** Its last sign of life, in Unix seconds. */
  readonly at: number;
}

export interface MonitoringRole {
  /**
   * Publishes a server and its running tasks for `ttl` seconds. Calls for one server come one after
   * the other; a task of which nothing has changed since the last one costs nothing.
   */
  writeServerState(info: ServerInfo, workers: readonly WorkerInfo[], ttl: number): Promise<void>;
  /** Publishes what asynq's ServerInfo has no room for, for `ttl` seconds. Nobody sees it without a server state. */
  writeServerProfile(server: ServerIdentity, profile: ServerProfile, ttl: number): Promise<void>;
  /** Also the profile. */
  clearServerState(info: ServerIdentity): Promise<void>;
  /** Those that were lost in the last hour, as far as no tool of Go's has forgotten them. */
  lostServers(): Promise<LostServer[]>;
  /** Resolves when the store replies; in a cluster, when any node does. */
  ping(): Promise<void>;
}
