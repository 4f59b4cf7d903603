import type {
  CanActivate,
  DynamicModule,
  InjectionToken,
  ModuleMetadata,
  OptionalFactoryDependency,
  Type,
} from '@nestjs/common';
import { InvalidOptionError } from '../errors.js';
import { type Duration, parseDuration } from '../duration.js';
import {
  describe,
  rejectUnknownKeys,
  requireFunction,
  requireGuards,
  requireInteger,
  requireNonBlank,
  requireObject,
} from '../validation.js';
import { checkRedaction, type Redaction } from '../redaction/rules.js';
import { type DashboardAccess, checkAccess } from './access.js';
import type { DashboardActor } from './audit/actor.js';
import { misplacedStatic, noOptionsSource } from './dashboard.messages.js';
import { checkDecoders, type PayloadDecoder } from './payload/decoders.js';

/** A class with `canActivate`, which Nest makes, or an instance of one. */
export type DashboardGuard = Type<CanActivate> | CanActivate;

/** What Nest must know before any factory runs. In `forRootAsync` these stand beside `useFactory`. */
export interface AsynqDashboardStatics {
  /** Where the console lives, below the global prefix of the application. Default `/asynq`. */
  path?: string;
  /** The `name` of the AsynqModule whose queues it shows. Default: the one without a name. */
  connection?: string;
  /** Guards of every route of the console, the page's, too: classes, or instances. They run after the application's own. */
  guards?: readonly DashboardGuard[];
  /** Modules that export what the guards, and the factory of `forRootAsync`, inject. */
  imports?: ModuleMetadata['imports'];
  /** The version of its routes in an application that has versions. Default: every version, and none. */
  version?: string | string[];
}

/** What `forRoot` takes besides AsynqDashboardStatics, and what a factory answers. */
export interface AsynqDashboardSettings {
  /**
   * What those who reach the console may do: `'view'`, `'act'` (also run, archive, cancel, enqueue …) or `'destroy'` (also delete);
   * or a function of the request that answers one of them, or `undefined` for nothing (403). Default: `'destroy'` for all whom
   * the `guards` let in; without guards the application does not start, unless NODE_ENV is `development`.
   */
  access?: DashboardAccess;
  /**
   * Who sends a request, for the audit trail; asked only when something is to be changed. Default, and where it returns nothing or throws: the
   * name of `request.user` (`username`, `email`, `preferred_username`, `name`, `sub` or `id`), else the address the request comes from.
   */
  actor?: DashboardActor;
  /** About how many changes the audit trail keeps in Redis, 100 to 50,000. Default 10,000: some megabytes. */
  auditLength?: number;
  /** Whether everything but looking is refused (405), whatever the role. Default false. */
  readOnly?: boolean;
  /** What nobody gets to see of tasks, besides what AsynqModule's option `redact` hides of those of its connection. Default: no more. */
  redact?: Redaction;
  /** Whether fields and headers that are called like a secret are hidden in every task: {@link DEFAULT_REDACTION}. Default true. */
  defaultRedaction?: boolean;
  /** How payloads and results that are no JSON are made readable, in the order in which they are tried. Default: JSON only. */
  decoders?: readonly PayloadDecoder[];
  /** How often the page asks for news, and for how long an answer is used again, 250ms to 1h. Default 2 s. */
  refresh?: Duration;
  /** The address of a Prometheus that has asynq's metrics, for the history of queues: `http://prometheus:9090`. Default: none. */
  prometheus?: string;
  /** The name of the page. Default `Asynq`. */
  title?: string;
  /**
   * Origins from which requests may come besides the host's own, as `https://ops.example.com`: needed behind a proxy that changes the
   * Host header. Default: none.
   */
  trustedOrigins?: readonly string[];
  /** Characters of a payload in a list. Default 200. */
  maxPayloadLength?: number;
  /** Characters of a result in a list. Default 200. */
  maxResultLength?: number;
}

/** What `AsynqDashboardModule.forRoot` takes. All of it is optional, but who may come in must be said: `guards` or `access`. */
export interface AsynqDashboardOptions extends AsynqDashboardStatics, AsynqDashboardSettings {}

/** What a class given to `useClass` or `useExisting` implements. */
export interface AsynqDashboardOptionsFactory {
  createAsynqDashboardOptions(): Promise<AsynqDashboardSettings> | AsynqDashboardSettings;
}

/** What `AsynqDashboardModule.forRootAsync` takes: one of the three sources of settings. */
export interface AsynqDashboardAsyncOptions extends AsynqDashboardStatics {
  /** Is called with what `inject` names. */
  useFactory?: (...args: never[]) => Promise<AsynqDashboardSettings> | AsynqDashboardSettings;
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useClass?: Type<AsynqDashboardOptionsFactory>;
  useExisting?: Type<AsynqDashboardOptionsFactory>;
}

export type ResolvedStatics = Required<Omit<AsynqDashboardStatics, 'version' | 'imports'>> & {
  readonly version: string | string[] | undefined;
  readonly imports: NonNullable<DynamicModule['imports']>;
};

export interface ResolvedSettings {
  /** `undefined`: by `guards` only. */
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

/** Splits the options of `forRoot`. @throws InvalidOptionError */
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
