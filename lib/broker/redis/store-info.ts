import type { Clock } from '../../clock.js';
import type { StoreInfo } from '../operations.js';
import { isTransient, isReply } from './connection/broker-error.js';
import type { RedisConnections } from './connection/connections.js';
import { readRedisInfo } from './redis-info.js';

/** Reads INFO, not CONFIG: hosted services forbid that one. */
export async function readStoreInfo(connections: RedisConnections, clock: Clock): Promise<StoreInfo[]> {
  try {
    await connections.ready('monitor'); // the less time the answer takes, the more it tells of the clocks
    const asked = clock.now();
    const { nodes } = await readRedisInfo(connections);
    const answered = clock.now();
    return nodes.map(({ address, info }) => ({
      address,
      version: field(info, 'redis_version'),
      evictionPolicy: field(info, 'maxmemory_policy'),
      ahead: aheadOf(field(info, 'server_time_usec'), asked, answered),
    }));
  } catch (error) {
    if (isRefused(error)) return [];
    throw error;
  }
}

const field = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] || undefined;

/** The server looked at its clock at some moment between these two. */
function aheadOf(microseconds: string | undefined, asked: number, answered: number): number | undefined {
  if (microseconds === undefined) return undefined;
  const time = Number(microseconds) / 1000;
  return asked - time > 0 ? asked - time : Math.min(0, answered - time);
}

/** No permission, a renamed command, a proxy that has none: asked again, it would say the same. */
const isRefused = (error: unknown): boolean => {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error) || !isReply(cause) || isTransient(cause)) return false;
  return !/^(BUSY|NOAUTH|WRONGPASS) /.test(cause.message);
};
