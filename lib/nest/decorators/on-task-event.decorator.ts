import { InvalidHandlerError } from '../../errors.js';
import type { TaskEventFilter, TaskEventName } from '../../events/task-events.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';
import { DEFAULT_CONNECTION, TASK_EVENT_METADATA } from '../names/nest.constants.js';
import { checkEventFilter, checkEventNames } from './task-event.checks.js';
import { addMetadata, nameOf, requireMethod } from './handler-method.js';

export interface OnTaskEventOptions extends TaskEventFilter {
  /** The `name` of the AsynqModule whose events these are. Default: the unnamed one. */
  connection?: string;
}

/** The metadata of one `@OnTaskEvent`. */
export interface TaskEventMetadata {
  readonly names: readonly TaskEventName[];
  readonly filter: TaskEventFilter;
  readonly connection: string;
}

const KNOWN_OPTIONS: readonly (keyof OnTaskEventOptions)[] = ['connection', 'type', 'queue'];

/**
 * Calls a method of a provider or controller with a {@link TaskEvent} after a change of a task is stored, in the process that made
 * it. Errors of the method are logged and change nothing. Its promises are awaited only at shutdown, for up to 5 s. A request-scoped
 * provider is refused at boot.
 *
 * @example
 * \@OnTaskEvent('failed', { type: 'mail:' })
 * onFailed({ task, error, retryAt }: TaskEvent<'failed'>) { … }
 *
 * @param events one name, or several: the method is called for each of these events
 * @throws InvalidHandlerError for an unknown event or option, or on anything but an instance method
 */
export function OnTaskEvent(
  events: TaskEventName | readonly TaskEventName[],
  options: OnTaskEventOptions = {},
): MethodDecorator {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const what = nameOf(target, key);
    const method = requireMethod('OnTaskEvent', target, key, descriptor);
    const names = checkEventNames(events, `${what}: @OnTaskEvent`);
    requireObject(options, `${what}: the options of @OnTaskEvent`, InvalidHandlerError);
    rejectUnknownKeys(options, KNOWN_OPTIONS, `@OnTaskEvent option of ${what}`, InvalidHandlerError);
    const { connection = DEFAULT_CONNECTION, ...filter } = options;
    requireNonBlank(connection, `${what}: connection`, InvalidHandlerError);
    checkEventFilter(filter, what);
    addMetadata<TaskEventMetadata>(TASK_EVENT_METADATA, method, { names, filter, connection });
  };
}
