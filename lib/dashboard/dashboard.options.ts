import type {
  CanActivate,
  DynamicModule,
  InjectionToken,
  ModuleMetadata,
  OptionalFactoryDependency,
  Type,
} from '@nestjs/common';
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
import { checkDecoders, type PayloadDecoder } from './payload/decoders.js';

/** A guard class, which Nest instantiates, or an instance. */
export type DashboardGuard = Type<CanActivate> | CanActivate;

/**
 * The options that Nest needs before any factory runs. In `forRootAsync` they stand beside
 * `useFactory`.
 */
export interface AsynqDashboardStatics {
  /** The path of the console, below the global prefix of the application. Default `/asynq`. */
  path?: string;
  /** The `name` of the AsynqModule whose queues it shows. Default: the unnamed one. */
  connection?: string;
  /**
   * Guards of all routes of the console, including the page: classes or instances. They run after
   * the application's own guards.
   */
  guards?: readonly DashboardGuard[];
  /** Modules that export the dependencies of the guards and of the `forRootAsync` factory. */
  imports?: ModuleMetadata['imports'];
  /** The version of its routes in a versioned application. Default: neutral to versions. */
  version?: string | string[];
}

/** The options of `forRoot` besides AsynqDashboardStatics; a factory returns them. */
export interface AsynqDashboardSettings {
  /**
   * What users of the console may do: `'view'`, `'act'` (also run, archive, cancel, enqueue …) or
   * `'destroy'` (also delete); or a function of the request that returns one of them, or
   * `undefined` for no access (403). Default: `'destroy'` for everyone whom the `guards` admit.
   * Without guards the application does not start, unless NODE_ENV is `development`.
   */
  access?: DashboardAccess;
  /**
   * Names the sender of a change for the audit trail. Default, also if it returns nothing or
   * throws: the name of `request.user` (`username`, `email`, `preferred_username`, `name`, `sub` or
   * `id`), else the address of the sender.
   */
  actor?: DashboardActor;
  /**
   * How many changes the audit trail keeps in Redis, about: 100 to 50,000. Default 10,000, which
   * takes a few megabytes.
   */
  auditLength?: number;
  /** Whether to refuse every change (405), whatever the role. Default false. */
  readOnly?: boolean;
  /**
   * Rules that hide parts of tasks, in addition to the option `redact` of AsynqModule. Default:
   * none.
   */
  redact?: Redaction;
  /**
   * Whether to hide fields and headers with names of secrets in every task: {@link
   * DEFAULT_REDACTION}. Default true.
   */
  defaultRedaction?: boolean;
  /**
   * Decoders for payloads and results that are not JSON, in the order of trial. Default: JSON only.
   */
  decoders?: readonly PayloadDecoder[];
  /** How often the page polls, and how long a reply is reused, 250ms to 1h. Default 2 s. */
  refresh?: Duration;
  /**
   * The address of a Prometheus with asynq's metrics, for the history of queues:
   * `http://prometheus:9090`. Default: none.
   */
  prometheus?: string;
  /** The title of the page. Default `Asynq`. */
  title?: string;
  /**
   * Trusted origins besides the console's own, such as `https://ops.example.com`. Needed behind a
   * proxy that changes the Host header. Default: none.
   */
  trustedOrigins?: readonly string[];
  /** Characters of a payload shown in a list. Default 200. */
  maxPayloadLength?: number;
  /** Characters of a result shown in a list. Default 200. */
  maxResultLength?: number;
}

/**
 * The options of `AsynqDashboardModule.forRoot`. All are optional, but `guards` or `access` must
 * say who may come in.
 */
export interface AsynqDashboardOptions extends AsynqDashboardStatics, AsynqDashboardSettings {}

/** Implemented by a class for `useClass` or `useExisting`. */
export interface AsynqDashboardOptionsFactory {
  createAsynqDashboardOptions(): Promise<AsynqDashboardSettings> | AsynqDashboardSettings;
}

/** The options of `AsynqDashboardModule.forRootAsync`: one of the three sources of settings. */
export interface AsynqDashboardAsyncOptions extends AsynqDashboardStatics {
  /** Called with the providers that `inject` names. */
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
