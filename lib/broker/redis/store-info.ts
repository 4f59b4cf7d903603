import type { Clock } from '../../clock.js';
import type { StoreInfo } from '../operations.js';
import { isTransient, isReply } from './connection/broker-error.js';
import type { RedisConnections } from './connection/connections.js';
import { readRedisInfo } from './redis-info.js';

/** Reads INFO, not CONFIG, which hosted services forbid. */
export async function readStoreInfo(connections: RedisConnections, clock: Clock): Promise<StoreInfo[]> {
  try {
    await connections.ready('monitor'); // a shorter round trip gives a better estimate of the clock skew
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

/** The server read its clock between these two moments. */
function aheadOf(microseconds: string | undefined, asked: number, answered: number): number | undefined {
  if (microseconds === undefined) return undefined;
  const time = Number(microseconds) / 1000;
  return asked - time > 0 ? asked - time : Math.min(0, answered - time);
}

/** No permission, a renamed command, a proxy without it: a retry would fail in the same way. */
const isRefused = (error: unknown): boolean => {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error) || !isReply(cause) || isTransient(cause)) return false;
  return !/^(BUSY|NOAUTH|WRONGPASS) /.test(cause.message);
};
