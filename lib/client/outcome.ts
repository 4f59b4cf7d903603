import type { EnqueueStatus } from '../broker/broker.js';
import { DuplicateTaskError, type RefusedTask, TaskIdConflictError } from '../errors.js';

/** The error a status means; `undefined` when the task was enqueued. */
export function statusError(status: EnqueueStatus, task: RefusedTask): Error | undefined {
  switch (status) {
    case 'enqueued':
      return undefined;
    case 'duplicate':
      return new DuplicateTaskError(task);
    case 'conflict':
      return new TaskIdConflictError(task);
  }
}
