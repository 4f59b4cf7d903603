import { CommandLineError } from '../../errors.js';
import { describe } from '../../validation.js';

/** The type of a setting's value, in every source. */
type Kind = 'text' | 'number' | 'switch' | 'list';

interface SettingShape {
  readonly kind: Kind;
  readonly flags: string;
  readonly help: string;
  /** asynq does not have it, so its environment variable counts only with the prefix `ASYNQ_`. */
  readonly ours?: boolean;
}

/** The global flags, by the names that they also have in the config file and the environment. */
export const SETTINGS = {
  uri: {
    kind: 'text',
    flags: '-u, --uri <address>',
    help: 'Redis: host:port, redis://, rediss://, redis-socket:// or redis-sentinel:// (default: 127.0.0.1:6379)',
  },
  db: { kind: 'number', flags: '-n, --db <number>', help: 'number of the database (default: 0)' },
  password: { kind: 'text', flags: '-p, --password <password>', help: 'password; better given by ASYNQ_PASSWORD' },
  username: { kind: 'text', flags: '-U, --username <name>', help: 'user name' },
  cluster: { kind: 'switch', flags: '--cluster', help: 'connect to a Redis Cluster' },
  cluster_addrs: {
    kind: 'list',
    flags: '--cluster_addrs <addresses>',
    help: 'some of its nodes, separated by commas (default: 127.0.0.1:7000 to 127.0.0.1:7005)',
  },
  tls: { kind: 'switch', flags: '--tls', help: 'connect over TLS' },
  tls_server: { kind: 'text', flags: '--tls_server <name>', help: 'server name in the certificate; implies --tls' },
  insecure: { kind: 'switch', flags: '--insecure', help: 'do not check the certificate' },
  key_prefix: {
    kind: 'text',
    flags: '--key_prefix <prefix>',
    help: 'namespace of the keys; asynq sees no other (default: asynq)',
    ours: true,
  },
} as const satisfies Record<string, SettingShape>;

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

interface Values {
  readonly text: string;
  readonly number: number;
  readonly switch: boolean;
  readonly list: readonly string[];
}

/** A value, its origin as messages name it, and the rank of that origin: the highest wins. */
export interface Setting<T> {
  readonly value: T;
  readonly origin: string;
  readonly rank: number;
}

export type Settings = { readonly [Name in SettingName]?: Setting<Values[(typeof SETTINGS)[Name]['kind']]> };

/** The sources of settings, besides their defaults. */
export interface Sources {
  /** By name of the setting; `undefined` when the flag is not given. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file?: { readonly path: string; readonly values: Readonly<Record<string, unknown>> } | undefined;
}

/**
 * Reads each setting from flag, environment (`ASYNQ_DB` before `DB`) or config file, in this order. An empty environment
 * variable counts as not set.
 *
 * @throws CommandLineError naming the origin of the value that is wrong
 */
export function resolveSettings(sources: Sources): Settings {
  const found = SETTING_NAMES.map((name) => [name, resolve(name, sources)] as const);
  return Object.fromEntries(found.filter(([, setting]) => setting !== undefined));
}

function resolve(name: SettingName, { flags, env, file }: Sources): Setting<unknown> | undefined {
  const { kind, ours }: SettingShape = SETTINGS[name];
  const variable = name.toUpperCase();
  const candidates: [origin: string, value: unknown][] = [
    [`--${name}`, flags[name]],
    [`the environment variable ASYNQ_${variable}`, env[`ASYNQ_${variable}`] || undefined],
    [`the environment variable ${variable}`, ours ? undefined : env[variable] || undefined],
    [`"${name}" in ${file?.path}`, file?.values[name] ?? undefined],
  ];
  const index = candidates.findIndex(([, value]) => value !== undefined);
  if (index < 0) return undefined;
  const [origin, value] = candidates[index]!;
  return { value: READERS[kind](value, origin), origin, rank: candidates.length - index };
}

/** Turns the value of any source into the value of a setting. */
const READERS: { readonly [K in Kind]: (value: unknown, origin: string) => Values[K] } = {
  text: (value, origin) => {
    if (typeof value === 'string') return value;
    throw wrong(origin, value, 'text; in a config file put it in quotes');
  },
  number: (value, origin) => {
    const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0) return number;
    throw wrong(origin, value, 'a whole number of at least 0');
  },
  switch: (value, origin) => {
    if (typeof value === 'boolean') return value;
    const text = String(value).toLowerCase();
    if (['1', 't', 'true'].includes(text)) return true;
    if (['0', 'f', 'false'].includes(text)) return false;
    throw wrong(origin, value, 'true or false');
  },
  list: (value, origin) => {
    const parts = Array.isArray(value) ? (value as unknown[]) : String(value).split(',');
    if (parts.length > 0 && parts.every((part) => typeof part === 'string' && part.trim() !== ''))
      return parts.map((part) => String(part).trim());
    throw wrong(origin, value, 'addresses such as 10.0.0.1:7000,10.0.0.2:7000');
  },
};

function wrong(origin: string, value: unknown, expected: string): CommandLineError {
  const shown = /password/i.test(origin) ? `a value of type ${typeof value}` : describe(value);
  const [, stray] = /variable (?!ASYNQ_)(\w+)$/.exec(origin) ?? [];
  const remedy = stray
    ? `; if it is not meant for this command, ASYNQ_${stray} or --${stray.toLowerCase()} win over it`
    : '';
  return new CommandLineError(`${origin} is ${shown}; it must be ${expected}${remedy}`);
}
