import { InvalidHandlerError } from '../../errors.js';
import type { ConsoleActionFilter } from '../../events/console-action.js';
import { requireNonBlank, requireObject } from '../../validation.js';
import { checkConsoleActionFilter } from './console-action.checks.js';
import { CONSOLE_ACTION_METADATA, DEFAULT_CONNECTION } from '../names/nest.constants.js';
import { addMetadata, nameOf, requireMethod } from './handler-method.js';

export interface OnConsoleActionOptions extends ConsoleActionFilter {
  /** The `name` of the AsynqModule of the console. Default: the unnamed one. */
  connection?: string;
}

/** The metadata of one `@OnConsoleAction`. */
export interface ConsoleActionMetadata {
  readonly filter: ConsoleActionFilter;
  readonly connection: string;
}

/**
 * Calls a method of a provider or controller with a {@link ConsoleAction} after an action of the web console was done, was refused or
 * failed, in the process that served the request. Errors of the method are logged and change nothing. Its promises are awaited only
 * at shutdown, for up to 5 s. A request-scoped provider is refused at boot.
 *
 * @example
 * \@OnConsoleAction({ action: ['delete', 'delete_queue'] })
 * onDeleted({ actor, queue, count }: ConsoleAction) { … }
 *
 * @throws InvalidHandlerError for an unknown action or option, or on anything but an instance method
 */
export function OnConsoleAction(options: OnConsoleActionOptions = {}): MethodDecorator {
  return (target: object, key: string | symbol | undefined, descriptor?: PropertyDescriptor) => {
    const what = `${nameOf(target, key)}: @OnConsoleAction`;
    const method = requireMethod('OnConsoleAction', target, key, descriptor);
    requireObject(options, `${what}: the options`, InvalidHandlerError);
    const { connection = DEFAULT_CONNECTION, ...filter } = options;
    requireNonBlank(connection, `${what}: connection`, InvalidHandlerError);
    checkConsoleActionFilter(filter, what);
    addMetadata<ConsoleActionMetadata>(CONSOLE_ACTION_METADATA, method, { filter, connection });
  };
}
