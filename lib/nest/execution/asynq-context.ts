import type { ArgumentsHost } from '@nestjs/common';
import type { TaskContext } from '../../task/context.js';
import { InvalidOptionError } from '../../errors.js';
import { ASYNQ_CONTEXT_TYPE } from '../names/nest.constants.js';
import { contextOfBatch } from '../names/nest.messages.js';

/**
 * Whether a guard, interceptor, filter or parameter decorator runs for a task. Global ones run for HTTP requests and for tasks: one
 * for HTTP only begins with `if (isAsynqContext(context)) return …`.
 */
export const isAsynqContext = (host: ArgumentsHost): boolean => host.getType<string>() === ASYNQ_CONTEXT_TYPE;

/** Whether it runs for a batch of tasks. Call it only if {@link isAsynqContext} returns true. */
export const isBatchContext = (host: ArgumentsHost): boolean => Array.isArray(host.getArgByIndex(1));

/**
 * The TaskContext of the running task. Call it only if {@link isAsynqContext} returns true.
 *
 * @throws InvalidOptionError for a batch, which has one per task: see {@link getTaskContexts}
 */
export function getTaskContext(host: ArgumentsHost): TaskContext {
  const context = host.getArgByIndex<TaskContext | readonly TaskContext[]>(1);
  if (!Array.isArray(context)) return context as TaskContext;
  throw new InvalidOptionError(contextOfBatch(context.length));
}

/** The contexts of the tasks of a batch; for one task an array of one. Call it only if {@link isAsynqContext} returns true. */
export function getTaskContexts(host: ArgumentsHost): readonly TaskContext[] {
  const context = host.getArgByIndex<TaskContext | readonly TaskContext[]>(1);
  return Array.isArray(context) ? (context as readonly TaskContext[]) : [context as TaskContext];
}

/**
 * The payload of the running task: decoded, before the pipes. It is the stored bytes if the handler takes these (or no payload), or
 * if they cannot be decoded. For a batch it is an array of the payloads that can be decoded. Call it only if {@link isAsynqContext}
 * returns true.
 */
export const getTaskPayload = <P = unknown>(host: ArgumentsHost): P => host.getArgByIndex<P>(0);
