import type { Cluster, Redis } from 'ioredis';
import type { RedisInfo, RedisNode } from '../inspection.js';
import { toBrokerError } from './connection/broker-error.js';
import type { RedisConnections } from './connection/connections.js';

/**
 * What Redis reports about itself. A master of a cluster that does not reply is left out, unless
 * none does.
 */
export async function readRedisInfo(connections: RedisConnections): Promise<RedisInfo> {
  const address = connections.target;
  if (!connections.isCluster) {
    const info = await connections.run('monitor', 'INFO', (client) => client.info());
    return { address, nodes: [{ address, info }], cluster: undefined };
  }
  const [info, nodes] = await Promise.all(
    (['INFO', 'NODES'] as const).map((what) =>
      connections.run('monitor', `CLUSTER ${what}`, (client) => client.cluster(what as 'INFO') as Promise<string>),
    ),
  );
  const masters = ((await connections.ready('monitor')) as Cluster).nodes('master');
  return { address, nodes: await readNodes(masters), cluster: { info: info!, nodes: nodes! } };
}

async function readNodes(masters: readonly Redis[]): Promise<RedisNode[]> {
  const replies = await Promise.allSettled(masters.map((node) => node.info()));
  const read = replies.flatMap((reply, index) => {
    const { host, port } = masters[index]!.options;
    return reply.status === 'fulfilled' ? [{ address: `${host}:${port}`, info: reply.value }] : [];
  });
  const failed = replies.find((reply) => reply.status === 'rejected');
  if (read.length === 0 && failed) throw toBrokerError(failed.reason, 'INFO');
  return read.toSorted((a, b) => (a.address < b.address ? -1 : 1));
}
