import { mapConcurrent } from '../../../async.js';
import type { RedisInfo } from '../../../broker/inspection.js';
import { serverVersion } from '../../../broker/operations.js';
import type { Dashboard } from '../../dashboard.js';
import type { ApiRequest, Route } from '../route.js';
import { amount, count, flag, listOf, mapOf, orNull, shape, text } from '../schema.js';

type Info = Readonly<Record<string, string>>;

const REPLY = shape({
  address: text('without credentials; `memory` where there is no Redis'),
  info: mapOf(text()),
  raw_info: text('INFO, or CLUSTER INFO of a cluster'),
  cluster: flag(),
  raw_cluster_nodes: text(),
  queue_locations: orNull({
    anyOf: [listOf(shape({ queue: text(), keyslot: count(), nodes: listOf(text()) }))],
  }),
  version: orNull(text()),
  role: orNull(text()),
  used_memory: orNull(count('bytes; of a cluster the sum of its masters, like the next four')),
  maxmemory: orNull(count('bytes; 0: no limit')),
  connected_clients: orNull(count()),
  ops_per_second: orNull(amount()),
  maxmemory_policy: orNull(text()),
  uptime_seconds: orNull(count('of a cluster the shortest')),
  warnings: listOf(text()),
});

async function redisInfo(dashboard: Dashboard, request: ApiRequest) {
  const redis = await dashboard.inspector.redisInfo();
  if (!redis) return show({ address: 'memory', nodes: [], cluster: undefined }, null);
  return show(redis, redis.cluster ? await locate(dashboard, request) : null);
}

const QUEUES_AT_ONCE = 8;

async function locate({ broker }: Dashboard, { permissions }: ApiRequest) {
  const queues = (await broker.inspection.queues()).filter((queue) => permissions.maySee(queue)).sort();
  return mapConcurrent(queues, QUEUES_AT_ONCE, async (queue) => {
    const place = await broker.operations.clusterLocation(queue);
    return { queue, keyslot: place?.slot ?? 0, nodes: place?.nodes ?? [] };
  });
}

function show({ address, nodes, cluster }: RedisInfo, locations: Awaited<ReturnType<typeof locate>> | null) {
  const raw = cluster?.info ?? nodes[0]?.info ?? '';
  const infos = nodes.map(({ info }) => parseInfo(info));
  const first: Info = infos[0] ?? {};
  return {
    address,
    info: parseInfo(raw),
    raw_info: raw,
    cluster: cluster !== undefined,
    raw_cluster_nodes: cluster?.nodes ?? '',
    queue_locations: locations,
    version: serverVersion(first) ?? null,
    role: first['role'] ?? null,
    used_memory: sum(infos, 'used_memory'),
    maxmemory: sum(infos, 'maxmemory'),
    connected_clients: sum(infos, 'connected_clients'),
    ops_per_second: sum(infos, 'instantaneous_ops_per_sec'),
    maxmemory_policy: first['maxmemory_policy'] ?? null,
    uptime_seconds: numbers(infos, 'uptime_in_seconds').sort((a, b) => a - b)[0] ?? null,
    warnings: [...new Set(infos.flatMap(warningsOf))],
  };
}

const numbers = (infos: readonly Info[], name: string): number[] =>
  infos.map((info) => Number(info[name] ?? NaN)).filter(Number.isFinite);

function sum(infos: readonly Info[], name: string): number | null {
  const values = numbers(infos, name);
  return values.length === 0 ? null : values.reduce((total, value) => total + value, 0);
}

/** Names and values; section headings have no colon. */
export const parseInfo = (text: string): Info =>
  Object.fromEntries(
    text.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(':');
      return colon < 1 || line.startsWith('#') ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );

function warningsOf(info: Info): string[] {
  const policy = info['maxmemory_policy'];
  const [major = 0, minor = 0] = (info['redis_version'] ?? '').split('.').map(Number);
  const old = info['redis_version'] !== undefined && (major < 6 || (major === 6 && minor < 2));
  return [
    ...(policy === undefined || policy === 'noeviction'
      ? []
      : [`maxmemory-policy is ${policy}: Redis may drop tasks when its memory is full; set it to noeviction`]),
    ...(old ? [`Redis ${info['redis_version']} is too old; 6.2 or later is needed`] : []),
  ];
}

export const redisRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'redis_info',
    summary: 'The state of Redis, and where a cluster keeps the queues',
    // The reply contains addresses, files and settings of Redis.
    role: 'act',
    reply: REPLY,
    handle: redisInfo,
  },
];
