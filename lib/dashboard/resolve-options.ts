import type { DynamicModule } from '@nestjs/common';
import { type Duration, parseDuration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { checkRedaction, type Redaction } from '../redaction/rules.js';
import {
  describe,
  rejectUnknownKeys,
  requireFunction,
  requireGuards,
  requireInteger,
  requireNonBlank,
  requireObject,
} from '../validation.js';
import { type DashboardAccess, checkAccess } from './access.js';
import type { DashboardActor } from './audit/actor.js';
import { misplacedStatic, noOptionsSource } from './dashboard.messages.js';
import type {
  AsynqDashboardAsyncOptions,
  AsynqDashboardOptions,
  AsynqDashboardSettings,
  AsynqDashboardStatics,
} from './dashboard.options.js';
import { checkDecoders, type PayloadDecoder } from './payload/decoders.js';

export type ResolvedStatics = Required<Omit<AsynqDashboardStatics, 'version' | 'imports'>> & {
  readonly version: string | string[] | undefined;
  readonly imports: NonNullable<DynamicModule['imports']>;
};

export interface ResolvedSettings {
  /** `undefined`: the `guards` decide alone. */
  readonly access: DashboardAccess | undefined;
  readonly actor: DashboardActor | undefined;
  readonly auditLength: number;
  readonly readOnly: boolean;
  readonly redact: Redaction;
  readonly defaultRedaction: boolean;
  readonly decoders: readonly PayloadDecoder[];
  /** Milliseconds. */
  readonly refresh: number;
  readonly prometheus: string | undefined;
  readonly title: string;
  readonly trustedOrigins: ReadonlySet<string>;
  readonly maxPayloadLength: number;
  readonly maxResultLength: number;
}

const STATICS: readonly (keyof AsynqDashboardStatics)[] = ['path', 'connection', 'guards', 'imports', 'version'];
const SETTINGS: readonly (keyof AsynqDashboardSettings)[] = [
  'access',
  'actor',
  'auditLength',
  'readOnly',
  'redact',
  'defaultRedaction',
  'decoders',
  'refresh',
  'prometheus',
  'title',
  'trustedOrigins',
  'maxPayloadLength',
  'maxResultLength',
];
const SOURCES = ['useFactory', 'useClass', 'useExisting'] as const;

/** Separates the options of `forRoot`. @throws InvalidOptionError */
export function splitOptions(options: AsynqDashboardOptions): [ResolvedStatics, AsynqDashboardSettings] {
  requireObject(options, 'AsynqDashboardModule options', InvalidOptionError);
  rejectUnknownKeys(options, [...STATICS, ...SETTINGS], 'AsynqDashboardModule option', InvalidOptionError);
  const { path, connection, guards, imports, version, ...settings } = options;
  return [resolveStatics({ path, connection, guards, imports, version }), settings];
}

/** @throws InvalidOptionError */
export function resolveAsyncStatics(options: AsynqDashboardAsyncOptions): ResolvedStatics {
  requireObject(options, 'AsynqDashboardModule.forRootAsync options', InvalidOptionError);
  const known = [...STATICS, ...SOURCES, 'inject'];
  rejectUnknownKeys(options, known, 'AsynqDashboardModule.forRootAsync option', InvalidOptionError);
  if (!SOURCES.some((source) => options[source] !== undefined)) throw new InvalidOptionError(noOptionsSource);
  return resolveStatics(options);
}

function resolveStatics(statics: AsynqDashboardStatics): ResolvedStatics {
  const { path = '/asynq', connection = 'default', guards = [], imports = [], version } = statics;
  requireNonBlank(connection, option('connection'), InvalidOptionError);
  requireGuards(guards, option('guards'), InvalidOptionError);
  if (!Array.isArray(imports)) throw wrong('imports', imports, 'an array of modules');
  const texts = version === undefined || (Array.isArray(version) ? version : [version]).every(isText);
  if (!texts) throw wrong('version', version, "text, or an array of texts, as in Nest's @Version()");
  return { path: checkPath(path), connection, guards, imports, version };
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

function checkPath(path: unknown): string {
  if (
    typeof path === 'string' &&
    /^\/?(?:[\w.~-]+(?:\/[\w.~-]+)*\/?)?$/.test(path) &&
    !/(^|\/)\.\.?(\/|$)/.test(path)
  ) {
    return `/${path.replace(/^\/|\/$/g, '')}`;
  }
  throw wrong('path', path, 'a plain path such as "/asynq", of letters, digits and . _ ~ -');
}

/** @throws InvalidOptionError naming the option, its value and the remedy */
export function resolveSettings(settings: AsynqDashboardSettings): ResolvedSettings {
  requireObject(settings, 'AsynqDashboardModule options', InvalidOptionError);
  const misplaced = STATICS.find((key) => key in settings);
  if (misplaced) throw new InvalidOptionError(misplacedStatic(misplaced));
  rejectUnknownKeys(settings, SETTINGS, 'AsynqDashboardModule option', InvalidOptionError);
  const { readOnly = false, title = 'Asynq', maxPayloadLength = 200, maxResultLength = 200 } = settings;
  if (typeof readOnly !== 'boolean') throw wrong('readOnly', readOnly, 'true or false');
  const { defaultRedaction = true } = settings;
  if (typeof defaultRedaction !== 'boolean') throw wrong('defaultRedaction', defaultRedaction, 'true or false');
  const { actor, auditLength = 10_000 } = settings;
  if (actor !== undefined) requireFunction(actor, option('actor'), InvalidOptionError);
  requireInteger(auditLength, option('auditLength'), InvalidOptionError, { least: 100, most: 50_000 });
  requireInteger(maxPayloadLength, option('maxPayloadLength'), InvalidOptionError, { least: 1, most: 1_000_000 });
  requireInteger(maxResultLength, option('maxResultLength'), InvalidOptionError, { least: 1, most: 1_000_000 });
  return {
    actor,
    auditLength,
    readOnly,
    defaultRedaction,
    maxPayloadLength,
    maxResultLength,
    access: settings.access === undefined ? undefined : checkAccess(settings.access),
    redact: checkRedaction(settings.redact ?? [], option('redact')),
    decoders: checkDecoders(settings.decoders ?? []),
    refresh: checkRefresh(settings.refresh ?? 2000),
    prometheus: settings.prometheus === undefined ? undefined : checkAddress(settings.prometheus),
    title: requireNonBlank(title, option('title'), InvalidOptionError),
    trustedOrigins: new Set(checkOrigins(settings.trustedOrigins ?? [])),
  };
}

function checkRefresh(refresh: Duration): number {
  const milliseconds = parseDuration(refresh, option('refresh'));
  if (milliseconds >= 250 && milliseconds <= 3_600_000) return milliseconds;
  throw wrong('refresh', refresh, 'from 250ms to 1h');
}

function checkAddress(address: unknown): string {
  const url = typeof address === 'string' && URL.canParse(address) ? new URL(address) : undefined;
  if (url && /^https?:$/.test(url.protocol)) return url.href.replace(/\/$/, '');
  throw wrong('prometheus', address, 'an address such as "http://prometheus:9090"');
}

function checkOrigins(origins: readonly string[]): string[] {
  if (!Array.isArray(origins)) throw wrong('trustedOrigins', origins, 'an array of origins');
  return origins.map((origin: unknown) => {
    const url = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined;
    if (url && url.origin !== 'null' && url.pathname === '/' && url.search === '' && url.hash === '') return url.origin;
    throw wrong('trustedOrigins', origin, 'origins such as "https://ops.example.com"');
  });
}

const option = (name: string): string => `AsynqDashboardModule option ${name}`;

const wrong = (name: string, value: unknown, expected: string): InvalidOptionError =>
  new InvalidOptionError(`${option(name)} must be ${expected}, not ${describe(value)}`);
