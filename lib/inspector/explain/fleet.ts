import type { ObservedServer } from '../../broker/obstacles.js';
import type { HandlerProfile } from '../../broker/server-profile.js';
import type { ServerRef } from './reasons.js';

/** The handler of a type on a server, found as its mux does: the exact pattern first, else the longest prefix. */
export function handlerOf({ profile }: ObservedServer, type: string): HandlerProfile | undefined {
  const matching = profile?.handlers.filter(({ pattern }) => type.startsWith(pattern)) ?? [];
  return matching.sort((one, other) => other.pattern.length - one.pattern.length)[0];
}

export const refOf = ({ info }: ObservedServer): ServerRef => ({ id: info.serverId, host: info.host, pid: info.pid });

/** The servers of one queue. */
export interface Fleet {
  /** How many servers there are, of all queues. */
  readonly all: number;
  /** Those that take tasks of the queue now. */
  readonly serving: readonly ObservedServer[];
  /** Those that have the queue, and take no more. */
  readonly stopped: readonly ObservedServer[];
}

export function fleetOf(servers: readonly ObservedServer[], queue: string): Fleet {
  // A server of ours without handlers takes no task: each would fail.
  const withQueue = servers.filter(({ info, profile }) => queue in info.queues && profile?.handlers.length !== 0);
  return {
    all: servers.length,
    serving: withQueue.filter(({ info }) => info.status === 'active'),
    stopped: withQueue.filter(({ info }) => info.status !== 'active'),
  };
}
