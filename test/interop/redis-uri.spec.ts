import type { RedisOptions } from 'ioredis';
import { expect, it } from 'vitest';
import { parseRedisUrl } from '../../lib/broker/redis/connection/redis-url.js';
import { describeWithGo } from '../support/go.js';
import type { GoAddress } from '../support/go-peer.js';
import { useGo } from './fixture.js';

const URIS = [
  'redis://',
  'redis:',
  'redis:///',
  'redis:///3',
  'redis://:6380',
  'redis://:6380/2',
  'redis://:secret',
  'redis://:pw@',
  'redis://h',
  'redis://h/',
  'redis://h//3',
  'redis://h/+3',
  'redis://h/03',
  'redis://h/3/4',
  'redis://h/x',
  'redis://h:1?db=3',
  'redis://h:1/2#part',
  'REDIS://h:1',
  'redis://:p%40w@h:1',
  'redis://[::1]:6380',
  'rediss://',
  'rediss://h:1',
  'redis-socket:///a.sock',
  'redis-socket:///a.sock?db=',
  'redis-socket:///a.sock?db=2',
  'redis-socket:///a.sock?db=+2',
  'redis-socket:///a.sock?db=%2B2',
  'redis-socket:///a.sock?db=x',
  'redis-socket:///a.sock?db=3&db=4',
  'redis-socket://:pw@/a.sock',
  'redis-socket://host/a.sock',
  'redis-socket:/a.sock',
  'redis-socket:a.sock',
  'redis-socket://',
  'redis-sentinel://h1:1,h2:2?master=m',
  'redis-sentinel://:pw@h1:1/?master=m',
  'redis-sentinel://h1:1//?master=m',
  'http://h',
  '',
];

/** Where the driver of Go connects to: what asynq leaves empty it fills in. */
function goTarget({ refused, network, addr, db, password, tls, master, hosts }: GoAddress) {
  if (refused) return 'refused';
  if (master) return { sentinels: hosts, master, password };
  if (network === 'unix') return { path: addr, db, password };
  const [, host = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(addr)!;
  return { host: host || 'localhost', port: Number(port || 6379), db, password, tls };
}

function ourTarget(uri: string) {
  let options: RedisOptions;
  try {
    options = parseRedisUrl(uri);
  } catch {
    return 'refused';
  }
  const { host = '', port, path, db, sentinels, name, tls } = options;
  const password = (sentinels ? options.sentinelPassword : options.password) ?? '';
  if (sentinels) return { sentinels: sentinels.map((one) => `${one.host}:${one.port}`), master: name, password };
  if (path !== undefined) return { path, db, password };
  return { host: host.includes(':') ? `[${host}]` : host, port, db, password, tls: tls !== undefined };
}

describeWithGo('the forms of a connection URL, beside asynq.ParseRedisURI', () => {
  const peer = useGo();

  it('lead to the same server', async () => {
    const theirs = await peer.go.redisURIs(URIS);
    expect(URIS.map((uri) => [uri, ourTarget(uri)])).toEqual(URIS.map((uri, i) => [uri, goTarget(theirs[i]!)]));
  });
});
