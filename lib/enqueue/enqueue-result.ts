import { DuplicateTaskError, type RefusedTask, TaskIdConflictError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import type { TaskInfo } from '../task/info.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import type { EnqueueReply } from './producing.js';
import { infoOf, type PreparedTask } from './prepared-task.js';

/** What became of one task of `enqueueMany`. */
export type EnqueueResult =
  | { readonly ok: true; readonly info: TaskInfo; readonly error?: undefined }
  /**
   * DuplicateTaskError, TaskIdConflictError, InvalidTaskError, PrerequisiteNotFoundError or
   * BrokerUnavailableError.
   */
  | { readonly ok: false; readonly error: Error; readonly info?: undefined };

/**
 * What follows the broker's reply about one task, whoever enqueues it: a client, an entry of a
 * scheduler or an aggregator. The status becomes an error or an info, the span ends, and a stored
 * task is reported by an event.
 *
 * @param span the span of this task alone, if it has one
 */
export function resultOf(
  task: PreparedTask,
  status: EnqueueReply,
  events: AsynqEvents | undefined,
  span?: EnqueueSpan,
): EnqueueResult {
  const error = statusError(status, task.request.message);
  span?.end(error);
  if (error) return { ok: false, error };
  const info = infoOf(task);
  if (events?.wants('taskEnqueued')) events.emit('taskEnqueued', { task: info });
  return { ok: true, info };
}

/** The error of a task that was not stored. */
export function statusError(status: EnqueueReply, task: RefusedTask): Error | undefined {
  if (typeof status !== 'string') return status;
  switch (status) {
    case 'enqueued':
      return undefined;
    case 'duplicate':
      return new DuplicateTaskError(task);
    case 'conflict':
      return new TaskIdConflictError(task);
  }
}
