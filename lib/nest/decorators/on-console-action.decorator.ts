import { InvalidHandlerError } from '../../errors.js';
import type { ConsoleActionFilter } from '../../events/console-action.js';
import { requireNonBlank, requireObject } from '../../validation.js';
import { checkConsoleActionFilter } from '../events/console-action.checks.js';
import { CONSOLE_ACTION_METADATA, DEFAULT_CONNECTION } from '../nest.constants.js';
import { addMetadata, nameOf, requireMethod } from './handler-method.js';

export interface OnConsoleActionOptions extends ConsoleActionFilter {
  /** The `name` of the AsynqModule whose console it is. Default: the unnamed one. */
  connection?: string;
}

/** What one `@OnConsoleAction` says. */
export interface ConsoleActionMetadata {
  readonly filter: ConsoleActionFilter;
  readonly connection: string;
}

/**
 * Calls a method of a provider or controller with a {@link ConsoleAction} after something was changed through the web console, or was refused or
 * failed, in the process that was asked. What the method throws, or rejects with, is logged and changes nothing. Promises are not waited
 * for, but at shutdown for up to 5 s. The provider must be made once: a request-scoped one is refused at boot.
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
