import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { parseDuration, type Duration } from '../../duration.js';
import { InvalidOptionError } from '../../errors.js';
import { describe, rejectUnknownKeys, requireGuards, requireNonBlank, requireObject } from '../../validation.js';
import {
  DEFAULT_PROBE_CACHE_MS,
  resolveLiveness,
  resolveReadiness,
  type LivenessOptions,
  type ReadinessOptions,
  type ResolvedReadiness,
} from '../health/health-options.js';

/** The options of `AsynqOperationsModule.forRoot`. */
export interface AsynqOperationsOptions {
  /** The path of the routes `<path>/live`, `<path>/ready` and `<path>/drain`. Default `asynq`. */
  path?: string;
  /**
   * Who may drain. `'none'`: nobody. `'loopback'`: programs on this machine (or in this container); use it only if no proxy on this
   * machine forwards requests to this application, as a request cannot prove that. `'everyone'`: everybody whom guards or network
   * admit. Default `'none'`, and `'everyone'` with guards.
   */
  drainAccess?: DrainAccess;
  /** Guards of `drain`: classes, or instances. Default none. */
  guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Modules the guards need. Default: none. */
  imports?: ModuleMetadata['imports'];
  /** How long `drain` waits before it replies that tasks still run; `?timeout=` of a request overrides it. Default: without limit. */
  drainTimeout?: Duration;
  /** When `live` is down. Default: a loop of a server is 30 s late, or its pass takes over 15 minutes. */
  live?: LivenessOptions;
  /** When `ready` is also down: thresholds of queues, and how long Redis may take. Default: no thresholds, 2 s. */
  ready?: ReadinessOptions;
  /** Whether `problems` of `live` and `ready` name queues, loops and numbers; everyone can read them. Default false. */
  showDetails?: boolean;
}

export type DrainAccess = 'none' | 'loopback' | 'everyone';

const DRAIN_ACCESSES: readonly unknown[] = ['none', 'loopback', 'everyone'] satisfies DrainAccess[];

export interface ResolvedOperationsOptions {
  readonly path: string;
  readonly drainAccess: DrainAccess;
  readonly guards: readonly (Type<CanActivate> | CanActivate)[];
  readonly imports: NonNullable<ModuleMetadata['imports']>;
  readonly drainTimeout: Duration | undefined;
  readonly live: LivenessOptions | undefined;
  readonly ready: ResolvedReadiness;
  readonly showDetails: boolean;
}

const KNOWN_OPTIONS: readonly (keyof AsynqOperationsOptions)[] = [
  'path',
  'drainAccess',
  'guards',
  'imports',
  'drainTimeout',
  'live',
  'ready',
  'showDetails',
];

/** @throws InvalidOptionError naming the option, its value and the remedy */
export function resolveOperationsOptions(options: AsynqOperationsOptions = {}): ResolvedOperationsOptions {
  requireObject(options, 'AsynqOperationsModule options', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN_OPTIONS, 'AsynqOperationsModule option', InvalidOptionError);
  const { path = 'asynq', guards = [], imports = [], drainTimeout, live, ready } = options;
  const { showDetails = false } = options;
  const { drainAccess = guards.length > 0 ? 'everyone' : 'none' } = options;
  requireNonBlank(path, 'AsynqOperationsModule option path', InvalidOptionError);
  requireGuards(guards, 'AsynqOperationsModule option guards', InvalidOptionError);
  if (!DRAIN_ACCESSES.includes(drainAccess)) {
    throw wrong('drainAccess', '"none", "loopback" or "everyone"', drainAccess);
  }
  if (typeof showDetails !== 'boolean') throw wrong('showDetails', 'true or false', showDetails);
  if (drainTimeout !== undefined) parseDuration(drainTimeout, 'AsynqOperationsModule option drainTimeout');
  resolveLiveness(live);
  const resolvedReady = resolveReadiness(ready, DEFAULT_PROBE_CACHE_MS);
  return { path, guards, imports, drainAccess, drainTimeout, live, ready: resolvedReady, showDetails };
}

const wrong = (option: string, expected: string, value: unknown): InvalidOptionError =>
  new InvalidOptionError(`AsynqOperationsModule option ${option} must be ${expected}, not ${describe(value)}`);
