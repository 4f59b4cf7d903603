import { InvalidHandlerError } from '../../errors.js';
import type { TaskEvent, TaskEventFilter, TaskEventName } from '../../events/task-events.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';
import { DEFAULT_CONNECTION, TASK_EVENT_METADATA } from '../names/nest.constants.js';
import { checkEventFilter, checkEventNames } from './task-event.checks.js';
import { addMetadata, nameOf, requireMethod } from './handler-method.js';
import type { WrongHandler } from './handler-types.js';

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

/** The decorator of a method that takes events of these names: it compiles when the method takes one parameter, such an event, or none. */
export interface TaskEventDecorator<E extends TaskEventName> {
  <M>(target: object, key: string | symbol, method: TypedPropertyDescriptor<M>): CheckedListener<M, E>;
  // The same again, as in TaskHandlerDecorator: for `applyDecorators(OnTaskEvent(…), …)`.
  <M>(target: object, key: string | symbol, method: TypedPropertyDescriptor<M>): CheckedListener<M, E>;
}

type CheckedListener<M, E extends TaskEventName> = 0 extends 1 & M
  ? void
  : M extends (event: TaskEvent<E>) => unknown
    ? void
    : WrongHandler<'the method does not take one parameter, the event', TaskEvent<E>>;

/** Of `@OnQueueFailed({ name, id })`. */
const FOREIGN_OPTIONS = {
  name: 'here it is type, as in { type: "mail:" }',
  id: 'there is none here: compare task.id of the event',
};
const KNOWN_OPTIONS: readonly (keyof OnTaskEventOptions)[] = ['connection', 'type', 'queue'];

/**
 * Calls a method of a provider or controller with a {@link TaskEvent} after a change of a task is stored, in the process that made
 * it. Errors of the method are logged and change nothing. Its promises are awaited only at shutdown, for up to 5 s. A request-scoped
 * provider is refused at boot. The compiler refuses a method that takes something else than the event.
 *
 * @example
 * \@OnTaskEvent('failed', { type: 'mail:' })
 * onFailed({ task, error, retryAt }: TaskEvent<'failed'>) { … }
 *
 * @param events one name, or several: the method is called for each of these events
 * @throws InvalidHandlerError for an unknown event or option, or on anything but an instance method
 */
export function OnTaskEvent<E extends TaskEventName>(
  events: E | readonly E[],
  options: OnTaskEventOptions = {},
): TaskEventDecorator<E> {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const what = nameOf(target, key);
    const method = requireMethod('OnTaskEvent', target, key, descriptor);
    const names = checkEventNames(events, `${what}: @OnTaskEvent`);
    requireObject(options, `${what}: the options of @OnTaskEvent`, InvalidHandlerError);
    rejectUnknownKeys(options, KNOWN_OPTIONS, `@OnTaskEvent option of ${what}:`, InvalidHandlerError, FOREIGN_OPTIONS);
    const { connection = DEFAULT_CONNECTION, ...filter } = options;
    requireNonBlank(connection, `${what}: connection`, InvalidHandlerError);
    checkEventFilter(filter, what);
    addMetadata<TaskEventMetadata>(TASK_EVENT_METADATA, method, { names, filter, connection });
  };
}
