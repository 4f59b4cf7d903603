import type { RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../../../errors.js';

/** `scheme://[user[:password]@]hosts[/path][?query]`; WHATWG's URL class has no list of hosts. */
const URL_PARTS = /^([a-z][a-z0-9+.-]*):(?:\/\/(?:([^/?#]*)@)?([^/?#@]*))?([^?#]*)(?:\?([^#]*))?/i;

interface UrlParts {
  readonly scheme: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly hosts: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The forms of asynq's `ParseRedisURI` (wire-protocol section 8.2), by scheme. */
const FORMS: Readonly<Record<string, (parts: UrlParts) => RedisOptions>> = {
  redis: parseServer,
  rediss: parseServer,
  'redis-socket': parseSocket,
  'redis-sentinel': parseSentinel,
};

/**
 * The ioredis options of a connection URL, read as asynq reads it, but for the user name, which is
 * used, and the default ports (6379, sentinels 26379).
 *
 * @throws InvalidOptionError in asynq's words, with the remedy; never with a password
 */
export function parseRedisUrl(url: string): RedisOptions {
  const parts = split(url);
  const parse = Object.hasOwn(FORMS, parts.scheme) ? FORMS[parts.scheme] : undefined;
  if (parse) return parse(parts);
  throw new InvalidOptionError(`asynq: unsupported uri scheme: "${parts.scheme}"; ${schemeRemedy(url)}`);
}

/** Text that cannot hold a password is shown. What is a URL was not meant to be the word `memory`. */
function schemeRemedy(url: string): string {
  const forms = `use one of ${Object.keys(FORMS)
    .map((scheme) => `${scheme}://`)
    .join(', ')}`;
  if (url.includes('://')) return forms;
  const address = /^[a-z0-9.-]+(:\d{1,5})?$/i.test(url) ? `write redis://${url} for a server of that name, or ` : '';
  return `${address}${forms}, or 'memory' for the connection`;
}

function split(url: string): UrlParts {
  const [, scheme = '', login = '', hosts = '', path = '', query = ''] = URL_PARTS.exec(url) ?? [];
  if (scheme !== 'redis-socket' && login === '' && url.includes('@', scheme.length + 4)) throw unescaped();
  const colon = login.indexOf(':');
  const text = (part: string): string | undefined => (part === '' ? undefined : decode(part));
  return {
    scheme: scheme.toLowerCase(),
    username: text(colon < 0 ? login : login.slice(0, colon)),
    password: text(colon < 0 ? '' : login.slice(colon + 1)),
    hosts,
    path: decode(path),
    query: new URLSearchParams(query),
  };
}

/** Does not show the text: part of a password could be taken for the host. */
const unescaped = (): InvalidOptionError =>
  refuse('redis uri', 'user name or password is not escaped', 'write / as %2F, ? as %3F, # as %23 and @ as %40');

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    const remedy = 'it has a % that does not begin an escape; write a literal % as %25';
    throw new InvalidOptionError(`asynq: could not parse redis uri: ${remedy}`, { cause });
  }
}

const credentials = ({ username, password }: UrlParts): Pick<RedisOptions, 'username' | 'password'> => ({
  ...(username !== undefined && { username }),
  ...(password !== undefined && { password }),
});

function parseServer(parts: UrlParts): RedisOptions {
  const { host, port } = parseHost(withHost(parts.hosts), 6379, 'redis uri');
  return {
    host,
    port,
    db: databaseOfPath(parts.path, 'redis uri'),
    ...credentials(parts),
    ...(parts.scheme === 'rediss' && { tls: { servername: host } }),
  };
}

/** Without a host, or with only a port, Go's driver connects to this machine. */
const withHost = (hosts: string): string => (hosts === '' || /^:\d+$/.test(hosts) ? `localhost${hosts}` : hosts);

function parseSocket(parts: UrlParts): RedisOptions {
  const what = 'redis socket uri';
  if (!parts.path.startsWith('/'))
    throw refuse(what, 'path does not exist', 'as in redis-socket:///var/run/redis.sock');
  const db = parts.query.get('db') || '0';
  if (!isDatabase(db)) throw refuse(what, 'query param `db` should be a number', `not ${JSON.stringify(db)}`);
  return { path: parts.path, db: Number(db), ...credentials(parts) };
}

function parseSentinel({ hosts, path, query, username, password }: UrlParts): RedisOptions {
  const what = 'redis sentinel uri';
  const name = query.get('master');
  if (!name) throw refuse(what, 'query param `master` does not exist', 'append ?master= and the name of the group');
  return {
    sentinels: hosts.split(',').map((host) => parseHost(host, 26_379, what)),
    name,
    db: /^\/*$/.test(path) ? 0 : databaseOfPath(path, what), // asynq ignores the path here
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
  };
}

/** A bare slash is an error, as in asynq. */
function databaseOfPath(path: string, what: string): number {
  if (path === '') return 0;
  const first = path.replaceAll(/^\/+|\/+$/g, '').split('/')[0] ?? '';
  if (isDatabase(first)) return Number(first);
  const remedy = `as in …/0, or leave out ${JSON.stringify(path)}`;
  throw refuse(what, 'database number should be the first segment of the path', remedy);
}

const isDatabase = (text: string): boolean => /^\+?\d{1,9}$/.test(text);

/** `host`, `host:port`, `[::1]` or `[::1]:port`. */
export function parseHost(text: string, defaultPort: number, what: string): { host: string; port: number } {
  const [, v6, name, port] = /^(?:\[([0-9a-f:.%]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = v6 ?? name;
  const number = port === undefined ? defaultPort : Number(port);
  if (host !== undefined && number > 0 && number < 65_536) return { host, port: number };
  const shown = JSON.stringify(text.replace(/:.*/s, ':…')); // the rest may be a misplaced password
  throw refuse(what, `${shown} is not a host`, 'write host, host:port or [ipv6]:port');
}

function refuse(what: string, problem: string, remedy: string): InvalidOptionError {
  return new InvalidOptionError(`asynq: could not parse ${what}: ${problem}; ${remedy}`);
}
