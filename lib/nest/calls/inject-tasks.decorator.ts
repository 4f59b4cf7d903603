import { forwardRef, Inject } from '@nestjs/common';
import { calledMethods } from './called-handlers.js';
import { classOf, getAsynqTasksToken, injectedTasks, type TasksRef } from './injected-tasks.js';

/**
 * Injects the handlers of a class as methods that enqueue: see {@link TasksOf}. The class gives types and metadata only; it need not
 * be a provider here, and no instance of it is made. Its tasks go to the connections that its handlers name. The module of the
 * consumer imports the AsynqModule, or that is global.
 *
 * @example
 * constructor(\@InjectTasks(EmailTasks) private readonly emails: TasksOf<EmailTasks>) {}
 * await this.emails.welcome({ userId: 42 });
 *
 * @param tasks the class; `forwardRef(() => EmailTasks)` where two files import each other
 * @throws InvalidHandlerError when it is no class, or has no handlers, or one with a reserved name (at boot with `forwardRef`)
 */
export function InjectTasks(tasks: TasksRef): PropertyDecorator & ParameterDecorator {
  const late = typeof tasks === 'object' && tasks !== null;
  if (!late) calledMethods(classOf(tasks)); // a mistake is seen here, and not where an application boots
  injectedTasks().add(tasks);
  return Inject(late ? forwardRef(() => getAsynqTasksToken(classOf(tasks))) : getAsynqTasksToken(tasks));
}
