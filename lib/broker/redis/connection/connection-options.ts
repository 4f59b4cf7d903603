import type { ClusterOptions, RedisOptions } from 'ioredis';
import { isThenable } from '../../../async.js';
import { InvalidOptionError } from '../../../errors.js';
import { describe, rejectUnknownKeys, requireInteger, requireNonBlank, requireObject } from '../../../validation.js';
import { CLUSTER_OPTION_NAMES, REDIS_OPTION_NAMES } from './ioredis-options.js';
import { parseHost, parseRedisUrl } from './redis-url.js';

/**
 * An ioredis `Redis` or `Cluster` of the user, of any copy and major version. It is a template:
 * every connection is a `duplicate()` with settings of our own, and the client itself is neither
 * used nor closed. (With its usual settings it would resend commands after a lost connection, and
 * the user may close it while tasks are being settled.)
 */
export interface ExistingClient {
  readonly status: string;
  readonly options: object;
  duplicate(...overrides: never[]): unknown;
  disconnect(): void;
}

export interface ClusterNodeAddress {
  readonly host: string;
  /** Default 6379. */
  readonly port?: number;
}

/** A Redis Cluster, by some of its nodes (`{ host, port }` or `'host:port'`). */
export interface ClusterInput {
  readonly cluster: readonly (string | ClusterNodeAddress)[];
  /** ioredis' options: `redisOptions` (password, tls …), `natMap`, `dnsLookup`, `slotsRefreshTimeout` … */
  readonly options?: ClusterOptions;
}

/** A URL with further options of ioredis, which win over those of the URL. */
export interface UrlInput extends RedisOptions {
  readonly url: string;
}

/**
 * Where Redis is: a URL (`redis://`, `rediss://`, `redis-socket://`, `redis-sentinel://`), ioredis
 * options (`host`, or `path`, or `sentinels` with `name`), both, a cluster, or an ioredis client
 * with the options.
 *
 * This library sets how each of its connections behaves (retries, queues, protocol, reconnection,
 * names); ioredis options about that are accepted and have no effect. `connectTimeout` (5 s),
 * `socketTimeout` (10 s), `keepAlive` (10 s), `noDelay`, TLS, credentials and addresses are the
 * user's.
 */
export type ConnectionInput = string | RedisOptions | UrlInput | ClusterInput | ExistingClient;

/** The input after validation. */
export type ConnectionPlan =
  | { readonly kind: 'options'; readonly options: RedisOptions }
  | { readonly kind: 'cluster'; readonly nodes: readonly ClusterNodeAddress[]; readonly options: ClusterOptions }
  | { readonly kind: 'client'; readonly client: ExistingClient }
  | { readonly kind: 'clusterClient'; readonly client: ExistingClient };

/** @throws InvalidOptionError naming what is wrong, its value (never a password) and the remedy */
export function planConnection(input: ConnectionInput): ConnectionPlan {
  if (typeof input === 'string') return { kind: 'options', options: parseRedisUrl(input) };
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidOptionError(
      `connection is ${describe(input)}; give a URL such as redis://localhost:6379, ioredis options, { cluster: [...] } or an ioredis client`,
    );
  }
  if (isThenable(input)) {
    throw new InvalidOptionError('connection is a promise; await it in the useFactory of AsynqModule.forRootAsync');
  }
  if (isExistingClient(input)) return planFromClient(input);
  if ('cluster' in input) return planCluster(input);
  return { kind: 'options', options: checkOptions(input) };
}

/** By its shape: a client of another copy of ioredis is not `instanceof` ours. */
function isExistingClient(input: object): input is ExistingClient {
  const { duplicate, disconnect, options } = input as Partial<ExistingClient>;
  return typeof duplicate === 'function' && typeof disconnect === 'function' && typeof options === 'object';
}

function planFromClient(client: ExistingClient): ConnectionPlan {
  const { keyPrefix, redisOptions } = client.options as ClusterOptions & RedisOptions;
  refuseKeyPrefix(keyPrefix ?? redisOptions?.keyPrefix, "the ioredis client's");
  const { isCluster } = client as { isCluster?: boolean };
  return { kind: isCluster === true ? 'clusterClient' : 'client', client };
}

function checkOptions(input: RedisOptions | UrlInput): RedisOptions {
  rejectUnknownKeys(input, ['url', 'cluster', ...REDIS_OPTION_NAMES], 'connection option', InvalidOptionError);
  const { url, ...given } = input as Partial<UrlInput>;
  if ('url' in input && typeof url !== 'string') throw wrong('url', url, 'a URL such as redis://localhost:6379');
  const named = withoutUndefined(given);
  const options = url === undefined ? named : { ...parseRedisUrl(url), ...named };
  checkValues(options, 'connection');
  checkSentinels(options);
  return options;
}

const withoutUndefined = (options: RedisOptions): RedisOptions =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

function checkValues(options: RedisOptions, where: string): void {
  refuseKeyPrefix(options.keyPrefix, "ioredis' option");
  for (const name of ['host', 'path', 'name'] as const) {
    if (options[name] !== undefined) requireNonBlank(options[name], `${where}: ${name}`, InvalidOptionError);
  }
  for (const name of ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const) {
    const type = typeof (options[name] ?? '');
    if (type !== 'string')
      throw new InvalidOptionError(`${where}: ${name} must be a string, not a value of type ${type}`);
  }
  if (options.port !== undefined) checkPort(options.port, where);
  if (options.db !== undefined) requireInteger(options.db, `${where}: db`, InvalidOptionError, { least: 0 });
  for (const name of ['connectTimeout', 'socketTimeout'] as const) {
    if (options[name] === undefined) continue;
    requireInteger(options[name], `${where}: ${name} (milliseconds)`, InvalidOptionError, { least: 1 });
  }
}

const checkPort = (port: number, where: string): number =>
  requireInteger(port, `${where}: port`, InvalidOptionError, { least: 1, most: 65_535 });

function checkSentinels({ sentinels, name }: RedisOptions): void {
  if (sentinels === undefined) return;
  if (!Array.isArray(sentinels) || sentinels.length === 0) {
    throw wrong('sentinels', sentinels, 'a list such as [{ host: "10.0.0.1", port: 26379 }]');
  }
  if (name === undefined) throw wrong('name', name, 'the name of the master group the sentinels watch');
}

function planCluster(input: ClusterInput): ConnectionPlan {
  rejectUnknownKeys(input, ['cluster', 'options'], 'cluster connection option', InvalidOptionError);
  const { cluster, options = {} } = input;
  if (!Array.isArray(cluster) || cluster.length === 0) {
    throw wrong('cluster', cluster, 'a list of nodes such as [{ host: "10.0.0.1", port: 7000 }] or ["10.0.0.1:7000"]');
  }
  requireObject(options, 'connection: options', InvalidOptionError);
  rejectUnknownKeys(options, CLUSTER_OPTION_NAMES, 'cluster option', InvalidOptionError);
  refuseKeyPrefix(options.keyPrefix, "ioredis' option");
  checkNodeOptions(options.redisOptions ?? {});
  return { kind: 'cluster', nodes: cluster.map((node) => checkNode(node)), options };
}

function checkNodeOptions(options: RedisOptions): void {
  const where = 'connection: options.redisOptions';
  rejectUnknownKeys(
    requireObject(options, where, InvalidOptionError),
    REDIS_OPTION_NAMES,
    'redisOptions option',
    InvalidOptionError,
  );
  checkValues(options, where);
  if (options.db) throw wrong('db', options.db, 'left out: a Redis Cluster has database 0 only', where);
}

function checkNode(node: string | ClusterNodeAddress): ClusterNodeAddress {
  if (typeof node === 'string') return parseHost(node, 6379, 'cluster node');
  requireObject(node, 'connection: a node of cluster', InvalidOptionError);
  rejectUnknownKeys(node, ['host', 'port'], 'cluster node option', InvalidOptionError);
  const host = requireNonBlank(node.host, 'connection: host of a cluster node', InvalidOptionError);
  return { host, port: checkPort(node.port ?? 6379, 'connection: cluster node') };
}

function refuseKeyPrefix(value: unknown, whose: string): void {
  if (value === undefined || value === null || value === '') return;
  throw new InvalidOptionError(
    `${whose} keyPrefix ${describe(value)} cannot be used: it changes the keys of a script, but neither the prefixes in its ` +
      'arguments nor the key names stored as values. Remove it, and set the keyPrefix option of the module instead',
  );
}

function wrong(name: string, value: unknown, expected: string, where = 'connection'): InvalidOptionError {
  return new InvalidOptionError(`${where}: ${name} is ${describe(value)}; it must be ${expected}`);
}
