import { Scope, type FactoryProvider } from '@nestjs/common';
import { classOf, getAsynqTasksToken, injectedTasks } from './injected-tasks.js';
import { TaskCalls } from './task-calls.js';

/**
 * A provider for each class that `@InjectTasks` has named. Every AsynqModule has all of them: they are the same objects, and find the
 * connection of each handler themselves. Nest makes a transient provider only for those who inject it, so an application has only the
 * calls that it uses.
 */
export function tasksProviders(): FactoryProvider[] {
  const classes = new Set(Array.from(injectedTasks(), classOf));
  return Array.from(classes, (tasks) => ({
    provide: getAsynqTasksToken(tasks),
    scope: Scope.TRANSIENT,
    useFactory: (calls: TaskCalls) => calls.of(tasks),
    inject: [TaskCalls],
  }));
}
