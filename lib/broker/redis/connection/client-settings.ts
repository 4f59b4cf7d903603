import type { ClusterOptions, RedisOptions, SentinelAddress } from 'ioredis';
import { backoff } from '../../../async.js';

/** Bounds of the pause between two attempts to connect. */
const MIN_RECONNECT_DELAY_MS = 20;
const MAX_RECONNECT_DELAY_MS = 3_000;

/**
 * Milliseconds to wait before the attempt. The jitter is nearly the whole delay, as a whole fleet
 * reconnects at once.
 */
export const reconnectDelay = (attempt: number, longest = MAX_RECONNECT_DELAY_MS): number =>
  Math.round(backoff(attempt, { longest, shortest: MIN_RECONNECT_DELAY_MS }));

/** Defaults that the user may change. Milliseconds. */
const DEFAULTS = {
  connectTimeout: 5_000,
  /**
   * A command without a reply for this time means that the connection is dead, or Redis blocked.
   */
  socketTimeout: 10_000,
  keepAlive: 10_000,
  noDelay: true,
  sentinelCommandTimeout: 2_000,
} satisfies RedisOptions;

/**
 * The behaviour of every connection. Nothing is ever sent twice, and nothing waits in a queue of
 * the driver: PersistentConnection waits for Redis, with a limit per purpose, and knows that
 * nothing was sent.
 */
const FIXED = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  /**
   * With 0 a lost connection rejects the commands in flight at once; otherwise, without resending,
   * they would never settle.
   */
  maxRetriesPerRequest: 0,
  /** ioredis does not catch the failure of its own resubscription; ours is in subscription.ts. */
  autoResubscribe: false,
  /**
   * Would reject a command that may still be executed, and keep the connection: see socketTimeout.
   */
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
  /**
   * The redirection of CLIENT TRACKING to a second connection needs RESP2, the only protocol of
   * ioredis 5.
   */
  protocol: 2,
  replyMapping: 'legacy',
} satisfies RedisOptions;

/** Settings of a persistent connection to one server (or to the master that the sentinels name). */
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

/** Settings of a connection that is tried once and does not reconnect: its user opens another. */
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

/**
 * Settings of a persistent connection to a sentinel, to subscribe; address and credentials as
 * ioredis uses them.
 */
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
    /**
     * Only redirected commands get into this queue; PersistentConnection holds back all others
     * until the cluster is ready.
     */
    enableOfflineQueue: true,
    enableReadyCheck: true,
    clusterRetryStrategy: (attempt) => reconnectDelay(attempt),
    clusterNodeRetryStrategy: null,
    /** Any other value would send commands again that were in flight when a node went away. */
    retryDelayOnFailover: 0,
    /**
     * ioredis would try any node, even a dead one. Whether to wait for the cluster is decided per
     * purpose.
     */
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
      /**
       * A node that loads its data replies LOADING, instead of holding back commands until it is
       * done.
       */
      enableReadyCheck: false,
    },
  };
}

/**
 * The options of a given client contain ioredis' own defaults; those that are empty count as not
 * set.
 */
const withDefaults = (given: RedisOptions): RedisOptions => ({
  ...given,
  connectTimeout: given.connectTimeout ?? DEFAULTS.connectTimeout,
  socketTimeout: given.socketTimeout ?? DEFAULTS.socketTimeout,
  keepAlive: given.keepAlive || DEFAULTS.keepAlive,
  noDelay: given.noDelay ?? DEFAULTS.noDelay,
  sentinelCommandTimeout: given.sentinelCommandTimeout ?? DEFAULTS.sentinelCommandTimeout,
});

/** `nestjs-asynq:consume`, as in `CLIENT LIST`, or with the user's name in place of ours. */
const connectionName = (given: RedisOptions, name: string): string =>
  `${given.connectionName || 'nestjs-asynq'}:${name}`;
