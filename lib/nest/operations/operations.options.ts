import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { parseDuration, type Duration } from '../../duration.js';
import { InvalidOptionError } from '../../errors.js';
import { describe, rejectUnknownKeys, requireGuards, requireNonBlank, requireObject } from '../../validation.js';
import {
  resolveLiveness,
  resolveReadiness,
  type LivenessOptions,
  type ReadinessOptions,
} from '../health/health-options.js';

/** What `AsynqOperationsModule.forRoot` takes. All of it is optional. */
export interface AsynqOperationsOptions {
  /** Where the routes are: `<path>/live`, `<path>/ready` and `<path>/drain`. Default `asynq`. */
  path?: string;
  /**
   * Who may drain: `'loopback'`, programs on this machine (or in this container) that speak to it directly; `'everyone'`, which leaves
   * it to the guards or to the network. Default `'loopback'`, and `'everyone'` with guards.
   */
  drainAccess?: 'loopback' | 'everyone';
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
}

export interface ResolvedOperationsOptions {
  readonly path: string;
  readonly drainAccess: 'loopback' | 'everyone';
  readonly guards: readonly (Type<CanActivate> | CanActivate)[];
  readonly imports: NonNullable<ModuleMetadata['imports']>;
  readonly drainTimeout: Duration | undefined;
  readonly live: LivenessOptions | undefined;
  readonly ready: ReadinessOptions | undefined;
}

const KNOWN: readonly (keyof AsynqOperationsOptions)[] = [
  'path',
  'drainAccess',
  'guards',
  'imports',
  'drainTimeout',
  'live',
  'ready',
];

/** @throws InvalidOptionError naming the option, its value and the remedy */
export function resolveOperationsOptions(options: AsynqOperationsOptions = {}): ResolvedOperationsOptions {
  requireObject(options, 'AsynqOperationsModule options', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN, 'AsynqOperationsModule option', InvalidOptionError);
  const { path = 'asynq', guards = [], imports = [], drainTimeout, live, ready } = options;
  const { drainAccess = guards.length > 0 ? 'everyone' : 'loopback' } = options;
  requireNonBlank(path, 'AsynqOperationsModule option path', InvalidOptionError);
  requireGuards(guards, 'AsynqOperationsModule option guards', InvalidOptionError);
  if (drainAccess !== 'loopback' && drainAccess !== 'everyone') {
    throw new InvalidOptionError(
      `AsynqOperationsModule option drainAccess must be "loopback" or "everyone", not ${describe(drainAccess)}`,
    );
  }
  if (drainTimeout !== undefined) parseDuration(drainTimeout, 'AsynqOperationsModule option drainTimeout');
  resolveLiveness(live);
  resolveReadiness(ready);
  return { path, guards, imports, drainAccess, drainTimeout, live, ready };
}
