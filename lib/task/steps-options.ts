import type { ErrorClass } from '../errors.js';
import { describe, rejectUnknownKeys, requireObject } from '../validation.js';

const ON_CHANGE = ['fail', 'continue'] as const;

/** How a handler with steps meets tasks that it has begun before a deploy. */
export interface StepsOptions {
  /**
   * What happens when the stored steps of a task do not fit its handler, as others come in their place, or some are not asked for any
   * more. `fail`: the attempt fails with StepsChangedError, and the task is retried. `continue`: steps are found by their names alone,
   * whatever their order, and those that are not asked for are ignored. Default `'fail'`.
   */
  onChange?: (typeof ON_CHANGE)[number];
  /** A whole number from 1 on, raised by whoever changes the steps: see `steps.version()`. Default 1. */
  version?: number;
  /**
   * What happens to a task that another version of the handler has begun. `continue`: the handler is called, and may ask
   * `steps.version()`. `fail`: the attempt fails with StepsChangedError, and the task is retried. Default `'continue'`.
   */
  onOtherVersion?: (typeof ON_CHANGE)[number];
}

const NAMES = ['onChange', 'version', 'onOtherVersion'] as const satisfies readonly (keyof StepsOptions)[];

/** @param what whose options these are, for messages. @throws `Failure` */
export function readStepsOptions(given: unknown, what: string, Failure: ErrorClass): StepsOptions {
  const options = requireObject(given, `${what}: steps`, Failure) as StepsOptions;
  rejectUnknownKeys(options, NAMES, `steps option of ${what}`, Failure);
  const { version } = options;
  for (const name of ['onChange', 'onOtherVersion'] as const) {
    const value = options[name];
    if (value === undefined || ON_CHANGE.includes(value)) continue;
    throw new Failure(`${what}: ${name} of steps must be 'fail' or 'continue', not ${describe(value)}`);
  }
  if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1)) {
    throw new Failure(`${what}: version of steps must be a whole number from 1 on, not ${describe(version)}`);
  }
  return options;
}
