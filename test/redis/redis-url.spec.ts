import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../lib/broker/redis/connection/redis-url.js';
import { InvalidOptionError } from '../../lib/errors.js';

describe('parseRedisUrl', () => {
  it.each([
    ['redis://localhost', { host: 'localhost', port: 6379, db: 0 }],
    ['redis://localhost:6380/3', { host: 'localhost', port: 6380, db: 3 }],
    ['REDIS://localhost:6380/3/', { host: 'localhost', port: 6380, db: 3 }],
    ['redis://localhost:6380/3/more', { host: 'localhost', port: 6380, db: 3 }],
    ['redis://:se%40cret@h:1', { host: 'h', port: 1, db: 0, password: 'se@cret' }],
    ['redis://bob:pa:ss@h:1', { host: 'h', port: 1, db: 0, username: 'bob', password: 'pa:ss' }],
    ['redis://bob@h:1', { host: 'h', port: 1, db: 0, username: 'bob' }],
    ['redis://:a@b@h:1', { host: 'h', port: 1, db: 0, password: 'a@b' }],
    ['redis://[::1]:6380/1', { host: '::1', port: 6380, db: 1 }],
    ['rediss://:pw@cache.example:6380', cache()],
    ['redis-socket:///run/redis.sock', { path: '/run/redis.sock', db: 0 }],
    ['redis-socket://:pw@/run/a%20b.sock?db=2', { path: '/run/a b.sock', db: 2, password: 'pw' }],
    ['redis-socket:///run/a@b.sock', { path: '/run/a@b.sock', db: 0 }],
    ['redis-socket:///a.sock?db=', { path: '/a.sock', db: 0 }],
    ['redis://', { host: 'localhost', port: 6379, db: 0 }],
    ['redis:///3', { host: 'localhost', port: 6379, db: 3 }],
    ['redis://:6380', { host: 'localhost', port: 6380, db: 0 }],
    ['redis://:pw@', { host: 'localhost', port: 6379, db: 0, password: 'pw' }],
    ['redis://h/+3', { host: 'h', port: 6379, db: 3 }],
    ['rediss://', { host: 'localhost', port: 6379, db: 0, tls: { servername: 'localhost' } }],
    ['redis-sentinel://h1:5000,h2/?master=mymaster', { ...sentinels(), db: 0 }],
    ['redis-sentinel://h1:5000,h2/2?master=mymaster', { ...sentinels(), db: 2 }],
    ['redis-sentinel://:pw@h1:5000,h2?master=mymaster', { ...sentinels(), db: 0, sentinelPassword: 'pw' }],
  ])('%s', (url, options) => {
    expect(parseRedisUrl(url)).toEqual(options);
  });

  it.each([
    ['http://localhost', 'asynq: unsupported uri scheme: "http"; use one of redis://, rediss://'],
    ['localhost:6379', 'asynq: unsupported uri scheme: "localhost"; write redis://localhost:6379 for a server'],
    ['', 'asynq: unsupported uri scheme: ""'],
    ['memroy', 'write redis://memroy for a server of that name, or use one of redis://'],
    ['memroy', "redis-sentinel://, or 'memory' for the connection"],
    ['constructor://h', 'asynq: unsupported uri scheme: "constructor"'],
    ['redis://h/', 'asynq: could not parse redis uri: database number should be the first segment of the path'],
    ['redis://h/one', 'asynq: could not parse redis uri: database number should be the first segment of the path'],
    ['redis://:pw', 'asynq: could not parse redis uri: ":…" is not a host'],
    ['redis://h:99999', 'asynq: could not parse redis uri: "h:…" is not a host'],
    ['redis://a b', 'asynq: could not parse redis uri: "a b" is not a host'],
    ['redis://:50%@h', 'asynq: could not parse redis uri: it has a % that does not begin an escape'],
    ['redis-socket://', 'asynq: could not parse redis socket uri: path does not exist'],
    ['redis-socket:a.sock', 'asynq: could not parse redis socket uri: path does not exist'],
    ['redis-socket:///s?db=x', 'asynq: could not parse redis socket uri: query param `db` should be a number'],
    [
      'redis-sentinel://h/x?master=m',
      'asynq: could not parse redis sentinel uri: database number should be the first segment of the path',
    ],
    ['redis-sentinel://h', 'asynq: could not parse redis sentinel uri: query param `master` does not exist'],
    ['redis-sentinel://h1,,h2?master=m', 'asynq: could not parse redis sentinel uri: "" is not a host'],
  ])('refuses %j', (url, message) => {
    expect(() => parseRedisUrl(url)).toThrow(InvalidOptionError);
    expect(() => parseRedisUrl(url)).toThrow(message);
  });

  it.each([
    'redis://bob:top/secret@h:1',
    'redis://:top?secret@h',
    'redis://h:secret',
    'redis://:secret',
    'redis://:secret@h/x',
    'redis://:secret%@h',
    'redis://:secret@h:port',
    'nope://:secret@h',
  ])('does not show the password of %s', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(InvalidOptionError);
    expect(() => parseRedisUrl(url)).not.toThrow(/secret|top/);
  });
});

function cache() {
  return { host: 'cache.example', port: 6380, db: 0, password: 'pw', tls: { servername: 'cache.example' } };
}

function sentinels() {
  return {
    name: 'mymaster',
    sentinels: [
      { host: 'h1', port: 5000 },
      { host: 'h2', port: 26379 },
    ],
  };
}
