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

/** What `AsynqOperationsModule.forRoot` takes. All of it is optional. */
export interface AsynqOperationsOptions {
  /** Where the routes are: `<path>/live`, `<path>/ready` and `<path>/drain`. Default `asynq`. */
  path?: string;
  /**
   * Who may drain. `'none'`: nobody. `'loopback'`: programs on this machine (or in this container); it states that no proxy on
   * this machine forwards requests to this application, which nothing in a request can show. `'everyone'`: whom the guards or
   * the network let in. Default `'none'`, and `'everyone'` with guards.
   */
  drainAccess?: DrainAccess;
  /** Guards of `drain`: classes, or instances. Default none. */
  guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Modules the guards need. */
  imports?: ModuleMetadata['imports'];
  /** How long `drain` waits before it answers that tasks still run; `?timeout=` of a request says otherwise. Default: as long as it takes. */
  drainTimeout?: Duration;
  /** When `live` is down. Default: a loop of a server is 30 s late, or has been at one pass for 15 minutes. */
  live?: LivenessOptions;
  /** When `ready` is down, besides: thresholds of queues, and how long Redis may take. Default: no thresholds, 2 s. */
  ready?: ReadinessOptions;
  /** Whether `live` and `ready` name queues, loops and numbers in `problems`. Everyone can read them. Default false. */
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
  const resolved = { ready: resolveReadiness(ready, DEFAULT_PROBE_CACHE_MS), showDetails };
  return { path, guards, imports, drainAccess, drainTimeout, live, ...resolved };
}

const wrong = (option: string, expected: string, value: unknown): InvalidOptionError =>
  new InvalidOptionError(`AsynqOperationsModule option ${option} must be ${expected}, not ${describe(value)}`);
