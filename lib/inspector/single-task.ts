import type { MoveStatus, TaskAction } from '../broker/inspection.js';
import { type AsynqError, TaskNotFoundError, TaskStateError } from '../errors.js';

/** Why a task was not moved, in asynq's words (wire-protocol appendix B). */
export function refusal(action: TaskAction, status: MoveStatus, queue: string, id: string): AsynqError {
  switch (status) {
    case 'active':
      if (action === 'run') return new TaskStateError('task is already running');
      return new TaskStateError(`cannot ${action} task in active state. use cancelProcessing instead.`);
    case 'same':
      if (action === 'run') return new TaskStateError('task is already in pending state');
      return new TaskStateError(`task is already archived: id=${id}, queue=${queue}`);
    case 'claimed':
      return new TaskStateError(
        `the group of task "${id}" is being aggregated; it is free again within two minutes, or gone`,
      );
    case 'elsewhere':
      return new TaskStateError(`task "${id}" is not listed where its state says; see what else writes to its queue`);
    default:
      return new TaskNotFoundError(queue, id);
  }
}
