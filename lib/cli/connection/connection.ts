import type { RedisOptions } from 'ioredis';
import type { ConnectionInput } from '../../broker/redis/connection/connection-options.js';
import { parseHost, parseRedisUrl } from '../../broker/redis/connection/redis-url.js';
import { CommandLineError } from '../../errors.js';
import type { Setting, Settings } from './settings.js';

const DEFAULT_ADDRESS = '127.0.0.1:6379';
const DEFAULT_NODES = [7000, 7001, 7002, 7003, 7004, 7005].map((port) => `127.0.0.1:${port}`);

/**
 * The connection that the settings describe. Database, user and password of a URL have the rank of the URL; a setting of
 * the same or a higher rank wins.
 *
 * @throws CommandLineError when settings contradict each other, or an address is invalid
 */
export function toConnection(settings: Settings): ConnectionInput {
  checkTls(settings);
  return wantsCluster(settings) ? toCluster(settings) : toServer(settings);
}

function wantsCluster({ cluster, cluster_addrs, uri }: Settings): boolean {
  if (cluster_addrs && !cluster?.value && cluster_addrs.origin.startsWith('--')) {
    throw new CommandLineError(`${cluster_addrs.origin} is for a cluster; add --cluster`);
  }
  if (!cluster?.value) return false;
  if (uri && uri.rank === cluster.rank) {
    throw new CommandLineError(
      `${uri.origin} and ${cluster.origin} name two servers; leave one out (nodes of a cluster are named by cluster_addrs)`,
    );
  }
  return !uri || uri.rank < cluster.rank;
}

function toCluster(settings: Settings): ConnectionInput {
  const { cluster_addrs, db, username, password } = settings;
  if (db?.value) throw new CommandLineError(`${db.origin} is ${db.value}; a Redis Cluster has database 0 only`);
  const nodes = cluster_addrs?.value ?? DEFAULT_NODES;
  return {
    cluster: nodes.map((node) => from(cluster_addrs, () => parseHost(node, 6379, 'the address of a node'))),
    options: { redisOptions: { ...login(username, password), ...tlsOptions(settings) } },
  };
}

function toServer(settings: Settings): ConnectionInput {
  const { uri, db } = settings;
  const address = uri?.value ?? DEFAULT_ADDRESS;
  const isUrl = address.includes('://');
  const base: RedisOptions = from(uri, () =>
    isUrl ? parseRedisUrl(address) : parseHost(address, 6379, 'the address'),
  );
  const beats = (setting: Setting<unknown> | undefined): boolean => (setting?.rank ?? 0) >= (uri?.rank ?? 0);
  const username = base.username !== undefined && !beats(settings.username) ? undefined : settings.username;
  const password = base.password !== undefined && !beats(settings.password) ? undefined : settings.password;
  return {
    ...base,
    ...(db && (!namesDatabase(address) || beats(db)) && { db: db.value }),
    ...login(username, password, base.password),
    ...tlsOptions(settings, base),
  };
}

const namesDatabase = (address: string): boolean =>
  /^redis-socket:/i.test(address) ? /[?&]db=/.test(address) : /^[^?]*:\/\/[^/?]*\/\d/.test(address);

/**
 * Many systems set the environment variable `USERNAME`, so it counts only together with a password. A user name from any
 * other source counts without one: the user may need none.
 */
function login(
  username: Setting<string> | undefined,
  password: Setting<string> | undefined,
  passwordOfUrl?: string,
): Pick<RedisOptions, 'username' | 'password'> {
  const secret = password?.value ?? passwordOfUrl;
  const isUnrelated = secret === undefined && username?.origin.endsWith(' USERNAME');
  return {
    ...(username && !isUnrelated && { username: username.value, password: secret ?? '' }),
    ...(password && { password: password.value }),
  };
}

function checkTls({ insecure, tls, tls_server, uri }: Settings): void {
  if (!insecure?.value || tls?.value || tls_server || /^rediss:/i.test(uri?.value ?? '')) return;
  throw new CommandLineError(`${insecure.origin} is for TLS, and there is none; add --tls`);
}

function tlsOptions({ tls, tls_server, insecure }: Settings, base: RedisOptions = {}): RedisOptions {
  if (!tls?.value && !tls_server && !base.tls) return {};
  const options = {
    ...base.tls,
    ...(tls_server && { servername: tls_server.value }),
    ...(insecure?.value && { rejectUnauthorized: false }),
  };
  return base.sentinels ? { tls: options, sentinelTLS: options, enableTLSForSentinelMode: true } : { tls: options };
}

/** Adds the origin of the setting to an error about its value. */
function from<T>(setting: Setting<unknown> | undefined, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new CommandLineError(`${setting?.origin}: ${(cause as Error).message}`, { cause });
  }
}
