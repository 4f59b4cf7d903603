import type { MovableState } from '../../inspector/bulk.js';
import type { MoveOptions } from '../../inspector/move-options.js';
import type { Dashboard } from '../dashboard.js';
import { ApiError } from './api-error.js';
import { oneOf, type Schema } from './schema.js';
import { TASK_STATES, type TaskState } from './list-paths.js';

/** A body's field: the state a task was seen in, so that nothing is done to one that somebody or a server has moved meanwhile. */
export const SEEN_STATE: Schema = oneOf(TASK_STATES, 'only while it is in this state');

/** Reads the field of bodies that may be absent. @throws ApiError */
export function seenState(body: unknown): MovableState | undefined {
  const { state } = (body ?? {}) as { state?: TaskState };
  if (state === 'active') throw new ApiError('BAD_REQUEST', 'active tasks cannot be moved; cancel them');
  return state;
}

/** Where a task must be found to be moved. @param group of tasks seen in one; default: that of the task */
export async function originOf(
  { inspector }: Dashboard,
  task: { readonly queue: string; readonly id: string },
  state: MovableState | undefined,
  group?: string,
): Promise<MoveOptions> {
  if (state === undefined) return {};
  if (state !== 'aggregating') return { state };
  return { state, group: group ?? ((await inspector.getTaskInfo(task.queue, task.id))?.group || '-') };
}
