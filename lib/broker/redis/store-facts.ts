import type { StoreFacts } from '../operations.js';
import { isPassing, isReply } from './broker-error.js';
import type { RedisConnections } from './connections.js';
import { readRedisInfo } from './redis-info.js';

/** Reads INFO, not CONFIG: hosted services forbid that one. */
export async function readStoreFacts(connections: RedisConnections): Promise<StoreFacts[]> {
  try {
    const { nodes } = await readRedisInfo(connections);
    return nodes.map(({ address, info }) => ({
      address,
      version: field(info, 'redis_version'),
      evictionPolicy: field(info, 'maxmemory_policy'),
    }));
  } catch (error) {
    if (isRefused(error)) return [];
    throw error;
  }
}

const field = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] || undefined;

/** No permission, a renamed command, a proxy that has none: asked again, it would say the same. */
const isRefused = (error: unknown): boolean => {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error) || !isReply(cause) || isPassing(cause)) return false;
  return !/^(BUSY|NOAUTH|WRONGPASS) /.test(cause.message);
};
