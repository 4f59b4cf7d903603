import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ServerIdentity } from '../broker/monitoring.js';

/** A new server of this process. */
export const newIdentity = (): ServerIdentity => ({
  host: hostname() || 'unknown-host',
  pid: process.pid,
  serverId: randomUUID(),
});

/** `<host>:<pid>:<id>` */
export const identityText = ({ host, pid, serverId }: ServerIdentity): string => `${host}:${pid}:${serverId}`;
