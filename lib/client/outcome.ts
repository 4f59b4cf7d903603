import type { EnqueueStatus } from '../broker/broker.js';
import { DuplicateTaskError, TaskIdConflictError } from '../errors.js';

/** The error a status means; `undefined` when the task was enqueued. */
export function statusError(status: EnqueueStatus): Error | undefined {
  switch (status) {
    case 'enqueued':
      return undefined;
    case 'duplicate':
      return new DuplicateTaskError();
    case 'conflict':
      return new TaskIdConflictError();
  }
}
