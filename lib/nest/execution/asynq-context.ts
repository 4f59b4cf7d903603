import type { ArgumentsHost } from '@nestjs/common';
import type { TaskContext } from '../../task/context.js';
import { ASYNQ_CONTEXT_TYPE } from '../names/nest.constants.js';

/**
 * Whether a guard, interceptor, filter or parameter decorator runs for a task. Global ones run for HTTP requests and for tasks: one
 * for HTTP only begins with `if (isAsynqContext(context)) return …`.
 */
export const isAsynqContext = (host: ArgumentsHost): boolean => host.getType<string>() === ASYNQ_CONTEXT_TYPE;

/** The TaskContext of the running task. Call it only if {@link isAsynqContext} returns true. */
export const getTaskContext = (host: ArgumentsHost): TaskContext => host.getArgByIndex<TaskContext>(1);

/**
 * The payload of the running task: decoded, before the pipes. It is the stored bytes if the handler takes these (or no payload), or
 * if they cannot be decoded. Call it only if {@link isAsynqContext} returns true.
 */
export const getTaskPayload = <P = unknown>(host: ArgumentsHost): P => host.getArgByIndex<P>(0);
