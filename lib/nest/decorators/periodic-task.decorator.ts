import { InvalidHandlerError } from '../../errors.js';
import { FOREIGN } from '../../foreign-names.js';
import { PERIODIC_OPTION_NAMES, checkPlan, type PeriodicTaskOptions } from '../../scheduler/options.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';
import { TASK_HANDLER_METADATA } from '../names/nest.constants.js';
import { addMethodMetadata, nameOf, requireMethod } from './handler-method.js';
import { requireOwnFields } from './handler-parameter.js';
import { HANDLER_OPTION_NAMES, toMetadata, type TaskHandlerOptions } from './task-handler.decorator.js';

/** Options of `@PeriodicTask`: of the schedule, of the tasks it enqueues, and of their handler. */
export interface PeriodicTaskHandlerOptions extends PeriodicTaskOptions, Omit<TaskHandlerOptions, 'batch'> {
  /** The type of the tasks. Default `<class>.<method>`: set it if your build changes or shortens names. */
  type?: string;
  /** The payload of every task. Default: none. */
  payload?: unknown;
}

const OWN = ['type', 'payload'];

/**
 * Makes a method of a provider a periodic task: its schedule and its handler in one. Any number of processes may have it; each
 * planned time is enqueued once, as an ordinary task of `queue` (default `default`) for any server of the fleet.
 *
 * @example
 * \@PeriodicTask('0 9 * * 1-5', { tz: 'Europe/Berlin', missed: 'one', overlap: 'skip', queue: 'reports' })
 * async sendReport() { … }
 *
 * @param spec see `AsynqScheduler.register`
 * @throws InvalidScheduleError, InvalidHandlerError, InvalidOptionError
 */
export function PeriodicTask(spec: string, options: PeriodicTaskHandlerOptions = {}): MethodDecorator {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const what = nameOf(target, key);
    const method = requireMethod('PeriodicTask', target, key, descriptor);
    requireObject(options, `${what}: the options of @PeriodicTask`, InvalidHandlerError);
    const known = [...OWN, ...HANDLER_OPTION_NAMES.filter((name) => name !== 'batch'), ...PERIODIC_OPTION_NAMES];
    const kind = `@PeriodicTask option of ${what}:`;
    rejectUnknownKeys(options, known, kind, InvalidHandlerError, FOREIGN.periodic);
    const { type = what, payload, ...rest } = options;
    requireNonBlank(type, `${what}: type`, InvalidHandlerError);
    const { handling, periodic } = splitOptions(rest);
    checkPlan(spec, periodic, `@PeriodicTask of ${what}`);
    const handler = toMetadata(type, handling, what);
    requireOwnFields(target, key!, type);
    const metadata = { ...handler, periodic: { spec, payload, options: periodic } };
    addMethodMetadata(TASK_HANDLER_METADATA, target, method, metadata);
  };
}

/** Splits the options into those of the handler, and those of the schedule and its tasks. */
function splitOptions(options: PeriodicTaskHandlerOptions): {
  handling: TaskHandlerOptions;
  periodic: PeriodicTaskOptions;
} {
  const names: readonly string[] = HANDLER_OPTION_NAMES;
  const entries = Object.entries(options);
  return {
    handling: Object.fromEntries(entries.filter(([name]) => names.includes(name))),
    periodic: Object.fromEntries(entries.filter(([name]) => !names.includes(name))),
  };
}
