import 'reflect-metadata';
import type { Duration } from '../../duration.js';
import { InvalidHandlerError } from '../../errors.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';
import { DEFAULT_CONNECTION, PERIODIC_SOURCE_METADATA } from '../names/nest.constants.js';
import { nameOf, requireMethod } from './handler-method.js';

export interface PeriodicTaskSourceOptions {
  /** Time between two calls of the method. Default `'3m'`, as in asynq. At least a second. */
  interval?: Duration;
  /** The `name` of the AsynqModule these tasks are for. Default: the unnamed one. */
  connection?: string;
}

/** The metadata of `@PeriodicTaskSource`. */
export interface PeriodicSourceMetadata {
  readonly interval: Duration | undefined;
  readonly connection: string;
}

/**
 * Makes a method of a provider the source of a changing set of periodic tasks, for example from a database. Every call returns the
 * whole set (`PeriodicTaskConfig[]`): missing entries are removed and new ones added. If it throws, the old set stays. The
 * provider must not be request-scoped.
 *
 * @throws InvalidHandlerError
 */
export function PeriodicTaskSource(options: PeriodicTaskSourceOptions = {}): MethodDecorator {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const what = nameOf(target, key);
    const method = requireMethod('PeriodicTaskSource', target, key, descriptor);
    requireObject(options, `${what}: the options of @PeriodicTaskSource`, InvalidHandlerError);
    rejectUnknownKeys(
      options,
      ['interval', 'connection'],
      `@PeriodicTaskSource option of ${what}:`,
      InvalidHandlerError,
    );
    const { interval, connection = DEFAULT_CONNECTION } = options;
    requireNonBlank(connection, `${what}: connection`, InvalidHandlerError);
    Reflect.defineMetadata(PERIODIC_SOURCE_METADATA, { interval, connection }, method);
  };
}
