import type { ClusterOptions, RedisOptions, SentinelAddress } from 'ioredis';
import { backoff } from '../../../async.js';

/** Bounds of the pause between two attempts to connect. */
const MIN_RECONNECT_DELAY_MS = 20;
const MAX_RECONNECT_DELAY_MS = 3_000;

/** Milliseconds to wait before the attempt. The jitter spans nearly all of it: a whole fleet reconnects at once. */
export const reconnectDelay = (attempt: number, longest = MAX_RECONNECT_DELAY_MS): number =>
  Math.round(backoff(attempt, { longest, shortest: MIN_RECONNECT_DELAY_MS }));

/** What the user may set otherwise. Milliseconds. */
const DEFAULTS = {
  connectTimeout: 5_000,
  /** A command without any answer for so long means that the connection is dead, or Redis blocked by something worse. */
  socketTimeout: 10_000,
  keepAlive: 10_000,
  noDelay: true,
  sentinelCommandTimeout: 2_000,
} satisfies RedisOptions;

/**
 * How every connection behaves. Nothing is ever sent twice, and nothing waits in a queue of the driver: waiting for Redis
 * is done by PersistentConnection, which knows how long and for what, and can tell that nothing was sent.
 */
const FIXED = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  /** With 0 a lost connection rejects the commands in flight at once; without it, and without resending, they would hang. */
  maxRetriesPerRequest: 0,
  /** ioredis does not catch a failure of its own resubscription; ours is in cancellation.ts. */
  autoResubscribe: false,
  /** Would reject a command that may still be carried out, and leave the connection as it is: see socketTimeout. */
  commandTimeout: undefined,
  enableReadyCheck: true,
  maxLoadingRetryTime: 500,
  disconnectTimeout: 500,
  enableAutoPipelining: false,
  stringNumbers: false,
  readOnly: false,
  monitor: false,
  keyPrefix: '',
  scripts: undefined,
  himportFieldsets: undefined,
  role: 'master',
  /** The redirection of CLIENT TRACKING to a second connection needs RESP2, and ioredis 5 speaks nothing else. */
  protocol: 2,
  replyMapping: 'legacy',
} satisfies RedisOptions;

/** Settings of a lasting connection to one server (or to the master the sentinels name). */
export function persistentSettings(given: RedisOptions, name: string): RedisOptions {
  return {
    ...withDefaults(given),
    ...FIXED,
    connectionName: connectionName(given, name),
    retryStrategy: (attempt) => reconnectDelay(attempt),
    sentinelRetryStrategy: (attempt) => reconnectDelay(attempt, 1_000),
    reconnectOnError: (error) => /(^|-)READONLY /.test(error.message), // a failover made our master a replica
  };
}

/** Settings of a connection that is tried once and not renewed: whoever uses it starts another. */
export function ephemeralSettings(given: RedisOptions, name: string): RedisOptions {
  return {
    ...withDefaults(given),
    ...FIXED,
    connectionName: connectionName(given, name),
    retryStrategy: null,
    sentinelRetryStrategy: () => null,
    reconnectOnError: null,
  };
}

/** Settings of a lasting connection to one of the sentinels, to listen; addressed and authenticated as ioredis does it when it asks them. */
export function sentinelSettings(
  given: RedisOptions,
  { host, port, family }: Partial<SentinelAddress>,
  name: string,
): RedisOptions {
  return {
    ...FIXED,
    host: host ?? 'localhost',
    port: port ?? 26_379,
    family: family ?? given.family,
    username: given.sentinelUsername,
    password: given.sentinelPassword,
    tls: given.sentinelTLS,
    connectTimeout: given.connectTimeout ?? DEFAULTS.connectTimeout,
    keepAlive: DEFAULTS.keepAlive,
    connectionName: connectionName(given, name),
    enableReadyCheck: false,
    retryStrategy: (attempt) => reconnectDelay(attempt),
  };
}

/** Settings of a connection to a cluster. */
export function clusterSettings(given: ClusterOptions, name: string): ClusterOptions {
  const nodes: RedisOptions = given.redisOptions ?? {};
  return {
    ...given,
    lazyConnect: true,
    /** Only a command that was redirected meets this queue (PersistentConnection holds back all others until all is ready). */
    enableOfflineQueue: true,
    enableReadyCheck: true,
    clusterRetryStrategy: (attempt) => reconnectDelay(attempt),
    clusterNodeRetryStrategy: null,
    /** Not 0 would mean: send again what was in flight when a node went away. */
    retryDelayOnFailover: 0,
    /** ioredis would go on with any node, a dead one too; whether to wait for the cluster is decided per role. */
    retryDelayOnClusterDown: 0,
    scaleReads: 'master',
    shardedSubscribers: false,
    enableAutoPipelining: false,
    keyPrefix: '',
    scripts: undefined,
    himportFieldsets: undefined,
    redisOptions: {
      ...withDefaults(nodes),
      ...FIXED,
      connectionName: connectionName(nodes, name),
      /** A node that loads its data says LOADING, instead of holding back commands for as long as that takes. */
      enableReadyCheck: false,
    },
  };
}

/** ioredis' own defaults, which a client handed in carries as options, are taken for "not set" where they are none. */
const withDefaults = (given: RedisOptions): RedisOptions => ({
  ...given,
  connectTimeout: given.connectTimeout ?? DEFAULTS.connectTimeout,
  socketTimeout: given.socketTimeout ?? DEFAULTS.socketTimeout,
  keepAlive: given.keepAlive || DEFAULTS.keepAlive,
  noDelay: given.noDelay ?? DEFAULTS.noDelay,
  sentinelCommandTimeout: given.sentinelCommandTimeout ?? DEFAULTS.sentinelCommandTimeout,
});

/** `nestjs-asynq:consume`, as `CLIENT LIST` shows it, or the user's name in place of ours. */
const connectionName = (given: RedisOptions, name: string): string =>
  `${given.connectionName || 'nestjs-asynq'}:${name}`;
