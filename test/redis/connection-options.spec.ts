import { Cluster, Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { afterEach, describe, expect, it } from 'vitest';
import { type ConnectionInput, planConnection } from '../../lib/broker/redis/connection/connection-options.js';
import { InvalidOptionError } from '../../lib/errors.js';

const clients: { disconnect(): void }[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

const made = <T extends { disconnect(): void }>(client: T): T => {
  clients.push(client);
  return client;
};

describe('planConnection', () => {
  it('passes ioredis options on, without those that are undefined', () => {
    const input = { host: 'h', port: 1, username: 'u', password: 'p', db: 2, tls: {}, path: undefined };
    expect(planConnection(input)).toEqual({
      kind: 'options',
      options: { host: 'h', port: 1, username: 'u', password: 'p', db: 2, tls: {} },
    });
  });

  it('prefers options to the URL beside them', () => {
    const plan = planConnection({ url: 'redis-sentinel://:s@h:1?master=m', password: 'p', db: 4, port: undefined });
    expect(plan).toEqual({
      kind: 'options',
      options: { sentinels: [{ host: 'h', port: 1 }], name: 'm', sentinelPassword: 's', password: 'p', db: 4 },
    });
  });

  it('accepts nodes of a cluster as text and as objects', () => {
    const options = { redisOptions: { password: 'p' } };
    const cluster = ['a:7000', 'b', { host: 'c' }, { host: 'd', port: 7003 }];
    expect(planConnection({ cluster, options })).toEqual({
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 7000 },
        { host: 'b', port: 6379 },
        { host: 'c', port: 6379 },
        { host: 'd', port: 7003 },
      ],
      options,
    });
  });

  it('recognizes clients of any copy of ioredis by their shape', () => {
    expect(planConnection(made(new Redis({ lazyConnect: true }))).kind).toBe('client');
    expect(planConnection(made(new Redis5({ lazyConnect: true }))).kind).toBe('client');
    expect(planConnection(made(new Cluster(['redis://h'], { lazyConnect: true }))).kind).toBe('clusterClient');
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'connection is undefined; give a URL such as redis://localhost:6379'],
    ['a list', [], 'connection is an array'],
    ['a misspelt option', { hots: 'h' }, 'unknown connection option "hots"; did you mean "host"?'],
    ['a misspelt form', { clusters: [] }, 'unknown connection option "clusters"; did you mean "cluster"?'],
    ['a URL that is none', { url: 6379 }, 'connection: url is 6379; it must be a URL such as redis://localhost:6379'],
    ['a port as text', { port: '6379' }, 'connection: port must be a whole number from 1 to 65535, not "6379"'],
    ['a database below 0', { db: -1 }, 'connection: db must be a whole number of at least 0, not -1'],
    ['a blank host', { host: ' ' }, 'connection: host must contain'],
    ['a password that is no text', { password: 123456 }, 'connection: password must be a string, not a value of type'],
    ['no sentinels', { sentinels: [], name: 'm' }, 'connection: sentinels is an array; it must be a list such as'],
    [
      'sentinels without a name',
      { sentinels: [{}] },
      'connection: name is undefined; it must be the name of the master',
    ],
    ['a timeout of 0', { socketTimeout: 0 }, 'connection: socketTimeout (milliseconds) must be a whole number of at'],
    ['an empty cluster', { cluster: [] }, 'connection: cluster is an array; it must be a list of nodes'],
    ['a cluster and a host', { cluster: ['h'], host: 'h' }, 'unknown cluster connection option "host"'],
    ['a node that is none', { cluster: [7000] }, 'connection: a node of cluster must be an object, not 7000'],
    ['a node without port', { cluster: ['h:'] }, 'could not parse cluster node: "h:…" is not a host'],
    [
      'a misspelt node',
      { cluster: [{ host: 'h', prot: 1 }] },
      'unknown cluster node option "prot"; did you mean "port"',
    ],
    ['a misspelt cluster option', { cluster: ['h'], options: { natmap: {} } }, 'did you mean "natMap"?'],
    [
      'a misspelt option of its nodes',
      { cluster: ['h'], options: { redisOptions: { pasword: 'secret' } } },
      'unknown redisOptions option "pasword"; did you mean "password"?',
    ],
    [
      'a database in a cluster',
      { cluster: ['h'], options: { redisOptions: { db: 1 } } },
      'options.redisOptions: db is 1; it must be left out',
    ],
  ])('refuses %s', (_what, input, message) => {
    expect(() => planConnection(input as ConnectionInput)).toThrow(InvalidOptionError);
    expect(() => planConnection(input as ConnectionInput)).toThrow(message);
    expect(() => planConnection(input as ConnectionInput)).not.toThrow(/secret|123456/);
  });

  it.each<[string, () => ConnectionInput]>([
    ['options', () => ({ host: 'h', keyPrefix: 'shop:' })],
    ['a cluster', () => ({ cluster: ['h'], options: { keyPrefix: 'shop:' } })],
    ['its nodes', () => ({ cluster: ['h'], options: { redisOptions: { keyPrefix: 'shop:' } } })],
    ['a client', () => made(new Redis({ lazyConnect: true, keyPrefix: 'shop:' }))],
    ['a cluster client', () => made(new Cluster(['redis://h'], { lazyConnect: true, keyPrefix: 'shop:' }))],
  ])("refuses ioredis' keyPrefix in %s and names ours", (_where, input) => {
    expect(() => planConnection(input())).toThrow(/keyPrefix "shop:" cannot be used.*set the keyPrefix option of the/s);
  });
});
