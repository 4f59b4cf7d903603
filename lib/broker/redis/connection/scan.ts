import type { Cluster, Redis } from 'ioredis';
import { BrokerUnavailableError } from '../../../errors.js';
import { type Keyspace, QueueKeys } from '../../../wire/keys.js';
import { masterOf } from './cluster-nodes.js';
import type { RedisConnections } from './connections.js';

/** Keys that Redis scans in one step: less than a millisecond of its time. */
const SCAN_COUNT = 1000;

/**
 * The keys of a queue among keys with its prefix: `mail}:eu`, a valid name in asynq, has keys with
 * the prefix of `mail`.
 */
export async function ownKeys(
  connections: RedisConnections,
  { prefix, queues }: Keyspace,
  keys: QueueKeys,
  found: readonly string[],
): Promise<string[]> {
  const ambiguous = found.some((key) => key.includes('}', keys.base.length));
  const listed = ambiguous ? await connections.run('monitor', 'SMEMBERS', (client) => client.smembers(queues)) : [];
  const others = listed.map((name) => new QueueKeys(prefix, name));
  return found.filter((key) => keys.owns(key, others));
}

/**
 * The keys with a prefix, on the node that has them: the prefix must contain a whole hash tag.
 * Returns pages, some of them empty; a key may come twice. Redis scans all its keys, in small
 * steps.
 */
export async function* scanKeys(connections: RedisConnections, prefix: string): AsyncGenerator<string[]> {
  let cursor: string | undefined = '0';
  do {
    const page: ScanStep = await scanStep(connections, prefix, cursor);
    cursor = page[0];
    yield page[1];
  } while (cursor !== undefined);
}

/** The next cursor, `undefined` at the end, and the keys found. */
type ScanStep = readonly [cursor: string | undefined, keys: string[]];

/** One step of {@link scanKeys}, from '0' on. */
export async function scanStep(connections: RedisConnections, prefix: string, cursor: string): Promise<ScanStep> {
  const [next, keys] = await connections.run('monitor', 'SCAN', (client) => {
    const node = client.isCluster ? nodeOf(client as Cluster, prefix) : (client as Redis);
    return node.scan(cursor, 'MATCH', `${escapeGlob(prefix)}*`, 'COUNT', SCAN_COUNT);
  });
  return [next === '0' ? undefined : next, keys];
}

function nodeOf(cluster: Cluster, key: string): Redis {
  const address = masterOf(cluster, key);
  const node = cluster.nodes('master').find(({ options }) => `${options.host}:${options.port}` === address);
  if (node) return node;
  throw new BrokerUnavailableError(`Redis is unavailable: ${address} is not a known node of the cluster`);
}

const escapeGlob = (text: string): string => text.replace(/[\\*?[\]^]/g, '\\$&');
