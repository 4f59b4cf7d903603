import type { ArgumentsHost } from '@nestjs/common';
import type { TaskContext } from '../../task/context.js';
import { ASYNQ_CONTEXT_TYPE } from '../nest.constants.js';

/**
 * Whether a guard, interceptor, filter or parameter decorator meets a task. Global ones meet HTTP requests and tasks alike: one
 * that is meant for HTTP begins with `if (isAsynqContext(context)) return …`.
 */
export const isAsynqContext = (host: ArgumentsHost): boolean => host.getType<string>() === ASYNQ_CONTEXT_TYPE;

/** The context of the running task. Call it only where {@link isAsynqContext} holds. */
export const getTaskContext = (host: ArgumentsHost): TaskContext => host.getArgByIndex<TaskContext>(1);

/**
 * The payload of the running task: decoded, but before the pipes; the stored bytes when the handler takes them (or no payload), or when
 * they cannot be decoded. Call it only where {@link isAsynqContext} holds.
 */
export const getTaskPayload = <P = unknown>(host: ArgumentsHost): P => host.getArgByIndex<P>(0);
