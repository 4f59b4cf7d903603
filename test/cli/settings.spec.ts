import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readConfigFile } from '../../lib/cli/connection/config-file.js';
import { toConnection } from '../../lib/cli/connection/connection.js';
import { resolveSettings, SETTING_NAMES, type Sources } from '../../lib/cli/connection/settings.js';
import { CommandLineError } from '../../lib/errors.js';

const plan = (sources: Partial<Sources>) => toConnection(resolveSettings({ flags: {}, env: {}, ...sources }));
const file = (values: Record<string, unknown>) => ({ path: '/etc/a.yaml', values });

describe('the settings', () => {
  const VALUES: Record<string, [flag: unknown, text: string, value: unknown]> = {
    uri: ['h:1', 'h:1', 'h:1'],
    db: ['3', '3', 3],
    cluster: [true, 'T', true],
    cluster_addrs: ['a:1, b:2', 'a:1,b:2', ['a:1', 'b:2']],
    tls: [true, '1', true],
    insecure: [true, 'TRUE', true],
  };

  it.each(SETTING_NAMES)('take %s from flag, environment and file, in this order', (name) => {
    const [flag, text, value] = VALUES[name] ?? ['x', 'x', 'x'];
    const variable = name.toUpperCase();
    const wrong = { number: 'zero', list: ',' };
    const other = name === 'db' ? wrong.number : name === 'cluster_addrs' ? wrong.list : 'f';
    const all: Sources = {
      flags: { [name]: flag },
      env: { [variable]: other, [`ASYNQ_${variable}`]: other },
      file: file({ [name]: other }),
    };
    const of = (sources: Sources) => resolveSettings(sources)[name];
    expect(of(all)).toMatchObject({ value, origin: `--${name}` });
    const env = { ...all.env, [`ASYNQ_${variable}`]: text };
    expect(of({ ...all, flags: {}, env })).toMatchObject({
      value,
      origin: `the environment variable ASYNQ_${variable}`,
    });
    const bare = of({ ...all, flags: {}, env: { [variable]: text, [`ASYNQ_${variable}`]: '' }, file: undefined });
    if (name === 'key_prefix') expect(bare).toBeUndefined();
    else expect(bare).toMatchObject({ value, origin: `the environment variable ${variable}` });
    expect(of({ flags: {}, env: { [variable]: '' }, file: file({ [name]: flag }) })).toMatchObject({
      value,
      origin: `"${name}" in /etc/a.yaml`,
    });
    expect(of({ flags: {}, env: {} })).toBeUndefined();
  });

  it.each([
    [{ flags: { db: '-1' } }, '--db is "-1"; it must be a whole number of at least 0'],
    [
      { env: { DB: 'postgres' } },
      'the environment variable DB is "postgres"; it must be a whole number of at least 0; if',
    ],
    [{ env: { DB: 'postgres' } }, 'ASYNQ_DB or --db win over it'],
    [{ env: { ASYNQ_TLS: 'maybe' } }, 'the environment variable ASYNQ_TLS is "maybe"; it must be true or false'],
    [{ file: file({ db: 1.5 }) }, '"db" in /etc/a.yaml is 1.5'],
    [{ file: file({ uri: 6379 }) }, '"uri" in /etc/a.yaml is 6379; it must be text; in a config file put it in quotes'],
    [{ file: file({ password: 12345 }) }, '"password" in /etc/a.yaml is a value of type number; it must be text'],
    [{ flags: { cluster_addrs: 'a,,b' } }, '--cluster_addrs is "a,,b"'],
  ])('refuse %j', (sources: Partial<Sources>, message) => {
    expect(() => resolveSettings({ flags: {}, env: {}, ...sources })).toThrow(CommandLineError);
    expect(() => resolveSettings({ flags: {}, env: {}, ...sources })).toThrow(message);
  });
});

describe('the connection', () => {
  const tls = { servername: 'h' };

  it.each<[Partial<Sources>, unknown]>([
    [{}, { host: '127.0.0.1', port: 6379 }],
    [{ flags: { uri: 'h' } }, { host: 'h', port: 6379 }],
    [
      { flags: { uri: '[::1]:7', db: '2', password: 'p', username: 'u' } },
      { host: '::1', port: 7, db: 2, password: 'p', username: 'u' },
    ],
    [{ flags: { uri: 'redis://u:p@h:1/3' } }, { host: 'h', port: 1, db: 3, username: 'u', password: 'p' }],
    [
      { flags: { uri: 'rediss://h', insecure: true } },
      { host: 'h', port: 6379, db: 0, tls: { ...tls, rejectUnauthorized: false } },
    ],
    [{ flags: { uri: 'redis-socket:///run/r.sock?db=2' } }, { path: '/run/r.sock', db: 2 }],
    [
      { flags: { uri: 'redis-sentinel://:s@a,b:1/2?master=m', password: 'p' } },
      {
        sentinels: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 1 },
        ],
        name: 'm',
        db: 2,
        sentinelPassword: 's',
        password: 'p',
      },
    ],
    [{ flags: { tls: true } }, { host: '127.0.0.1', port: 6379, tls: {} }],
    [{ flags: { uri: 'h', tls_server: 'n' } }, { host: 'h', port: 6379, tls: { servername: 'n' } }],
    [
      { flags: { uri: 'redis-sentinel://a?master=m', tls: true } },
      {
        sentinels: [{ host: 'a', port: 26379 }],
        name: 'm',
        db: 0,
        tls: {},
        sentinelTLS: {},
        enableTLSForSentinelMode: true,
      },
    ],
    [
      { flags: { cluster: true } },
      {
        cluster: [7000, 7001, 7002, 7003, 7004, 7005].map((port) => ({ host: '127.0.0.1', port })),
        options: { redisOptions: {} },
      },
    ],
    [
      { env: { CLUSTER: '1', CLUSTER_ADDRS: 'a,b:1', PASSWORD: 'p', TLS_SERVER: 'n' } },
      {
        cluster: [
          { host: 'a', port: 6379 },
          { host: 'b', port: 1 },
        ],
        options: { redisOptions: { password: 'p', tls: { servername: 'n' } } },
      },
    ],
    [
      { flags: { uri: 'h' }, env: { CLUSTER: '1' } },
      { host: 'h', port: 6379 },
    ],
    [
      { flags: { cluster: true, cluster_addrs: 'a' }, env: { URI: 'h' } },
      { cluster: [{ host: 'a', port: 6379 }], options: { redisOptions: {} } },
    ],
  ])('of %j', (sources, connection) => expect(plan(sources)).toEqual(connection));

  it('takes from a URL what no source of the same or a higher rank gives', () => {
    const url = 'redis://u:p@h/3';
    expect(plan({ flags: { uri: url, db: '4', password: 'q', username: 'v' } })).toMatchObject({
      db: 4,
      password: 'q',
      username: 'v',
    });
    expect(plan({ env: { ASYNQ_URI: url }, flags: { db: '4' } })).toMatchObject({
      db: 4,
      password: 'p',
      username: 'u',
    });
    expect(plan({ flags: { uri: url }, env: { DB: '4', PASSWORD: 'q', USERNAME: 'v' } })).toMatchObject({
      db: 3,
      password: 'p',
      username: 'u',
    });
    expect(plan({ flags: { uri: 'redis://h' }, env: { DB: '4', PASSWORD: 'q' } })).toMatchObject({
      db: 4,
      password: 'q',
    });
  });

  it("uses the system's USERNAME only together with a password", () => {
    expect(plan({ env: { USERNAME: 'joe' } })).toEqual({ host: '127.0.0.1', port: 6379 });
    expect(plan({ env: { USERNAME: 'joe', PASSWORD: 'p' } })).toMatchObject({ username: 'joe', password: 'p' });
    expect(plan({ flags: { username: 'joe' } })).toMatchObject({ username: 'joe', password: '' });
  });

  it.each<[Partial<Sources>, string]>([
    [
      { flags: { uri: 'h:x' } },
      '--uri: asynq: could not parse the address: "h:…" is not a host; write host, host:port',
    ],
    [
      { env: { URI: 'http://h' } },
      'the environment variable URI: asynq: unsupported uri scheme: "http"; use one of redis://',
    ],
    [{ flags: { uri: 'h', cluster: true } }, '--uri and --cluster name two servers; leave one out'],
    [{ flags: { cluster_addrs: 'a' } }, '--cluster_addrs is for a cluster; add --cluster'],
    [{ flags: { cluster: true, db: '1' } }, '--db is 1; a Redis Cluster has database 0 only'],
    [{ flags: { insecure: true } }, '--insecure is for TLS, and there is none; add --tls'],
  ])('is refused for %j', (sources, message) => {
    expect(() => plan(sources)).toThrow(CommandLineError);
    expect(() => plan(sources)).toThrow(message);
  });
});

describe('the config file', () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'asynq-config-'));
  });
  afterEach(() => rm(home, { recursive: true }));
  const put = async (name: string, text: string): Promise<string> => {
    await writeFile(join(home, name), text);
    return join(home, name);
  };

  it('is the given one, or the first default one that exists', async () => {
    expect(await readConfigFile(undefined, home)).toBeUndefined();
    expect(await readConfigFile(undefined, undefined)).toBeUndefined();
    await put('.asynq.json', '{"db": 3, "CLUSTER_ADDRS": ["a:1"]}');
    expect((await readConfigFile(undefined, home))?.values).toEqual({ db: 3, cluster_addrs: ['a:1'] });
    await put('.asynq.yml', 'db: 2');
    expect((await readConfigFile(undefined, home))?.values).toEqual({ db: 2 });
    await put('.asynq.yaml', '# nothing\n');
    expect((await readConfigFile(undefined, home))?.values).toEqual({});
    const other = await put('other.yaml', 'uri: h:1\ntls: true\n');
    expect(await readConfigFile(other, home)).toEqual({ path: other, values: { uri: 'h:1', tls: true } });
  });

  it.each([
    ['uri: h\npasword: x', 'unknown setting "pasword" in the config file FILE; did you mean "password"?'],
    ['colour: red', 'unknown setting "colour" in the config file FILE; known are uri, db'],
    ['[1]', 'the config file FILE must contain settings such as "uri: localhost:6379", not an array'],
    ['{"password": "geheim", "uri" "h"}', 'the config file FILE is neither YAML nor JSON: '],
  ])('is refused with %j', async (text, message) => {
    const path = await put('.asynq.yaml', text);
    const refused = await readConfigFile(undefined, home).catch((error: Error) => error);
    expect(refused).toBeInstanceOf(CommandLineError);
    expect((refused as Error).message).toContain(message.replace('FILE', path));
    expect((refused as Error).message).not.toMatch(/geheim|\n/);
  });

  it('is refused when it cannot be read', async () => {
    const missing = join(home, 'no.yaml');
    await expect(readConfigFile(missing, home)).rejects.toThrow(`the config file ${missing} cannot be read: ENOENT`);
    await expect(readConfigFile(home, home)).rejects.toThrow('EISDIR');
    if (process.getuid?.() === 0) return;
    await chmod(await put('.asynq.yaml', 'db: 1'), 0);
    await expect(readConfigFile(undefined, home)).rejects.toThrow('EACCES');
  });
});
