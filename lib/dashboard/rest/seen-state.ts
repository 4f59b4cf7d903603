import type { MovableState } from '../../inspector/bulk.js';
import type { MoveOptions } from '../../inspector/move-options.js';
import type { Dashboard } from '../dashboard.js';
import { ApiError } from './api-error.js';
import { TASK_STATES, type TaskState } from './list-paths.js';
import { oneOf, type Schema } from './schema.js';

/**
 * The field of a body that names the state in which the sender saw the task. The action is refused
 * if the task has moved since.
 */
export const SEEN_STATE: Schema = oneOf(TASK_STATES, 'only while it is in this state');

/** Reads the field; the body may be absent. @throws ApiError */
export function seenState(body: unknown): MovableState | undefined {
  const { state } = (body ?? {}) as { state?: TaskState };
  if (state === 'active') throw new ApiError('BAD_REQUEST', 'active tasks cannot be moved; cancel them');
  return state;
}

/**
 * Where the task must still be for the action.
 *
 * @param group the group it was seen in; default: the task's own
 */
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
