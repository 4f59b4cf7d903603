import 'reflect-metadata';
import type { ForwardReference } from '@nestjs/common';
import { InvalidHandlerError } from '../../errors.js';
import { describe } from '../../validation.js';
import { INJECTED_TASKS_METADATA, TASKS_TOKEN_METADATA } from '../names/nest.constants.js';
import { notATasksClass } from '../names/nest.messages.js';
import type { TasksClass } from './tasks-of.js';

/** A class, or what returns it when every file is loaded. */
export type TasksRef = TasksClass | ForwardReference<() => TasksClass>;

/** @throws InvalidHandlerError when it is no class */
export function classOf(ref: TasksRef): TasksClass {
  const found: unknown = typeof ref === 'object' && ref !== null ? ref.forwardRef() : ref;
  if (typeof found === 'function' && typeof found.prototype === 'object') return found as TasksClass;
  throw new InvalidHandlerError(notATasksClass(describe(found)));
}

/**
 * The token of the calls of a class. Give it a value of your own where `@InjectTasks` is used without the AsynqModule, as in a unit
 * test.
 *
 * @throws InvalidHandlerError when it is no class
 */
export function getAsynqTasksToken(tasks: TasksClass): symbol {
  const owner = classOf(tasks);
  const known = Reflect.getOwnMetadata(TASKS_TOKEN_METADATA, owner) as symbol | undefined;
  const token = known ?? Symbol(`TasksOf<${owner.name}>`);
  if (!known) Reflect.defineMetadata(TASKS_TOKEN_METADATA, token, owner);
  return token;
}

/**
 * What `@InjectTasks` has named in this process. Nest resolves no token that no module provides, so the AsynqModule has to know them;
 * it reads them when Nest scans the modules, which is after the files of the application were loaded.
 */
export function injectedTasks(): Set<TasksRef> {
  const known = Reflect.getOwnMetadata(INJECTED_TASKS_METADATA, globalThis) as Set<TasksRef> | undefined;
  const refs = known ?? new Set<TasksRef>();
  if (!known) Reflect.defineMetadata(INJECTED_TASKS_METADATA, refs, globalThis);
  return refs;
}
