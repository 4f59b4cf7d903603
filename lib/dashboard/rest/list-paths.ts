import { TASK_STATES, type TaskState } from '../../wire/states.js';
import type { ApiRequest } from './route.js';

/** Where the tasks of a state are in paths: `archived_tasks`; of a group `groups/{group}/aggregating_tasks`. */
export const listPathOf = (state: TaskState): string =>
  state === 'aggregating' ? 'queues/{queue}/groups/{group}/aggregating_tasks' : `queues/{queue}/${state}_tasks`;

export const listScopeOf = (state: TaskState, { params }: ApiRequest): { state: TaskState; group?: string } =>
  state === 'aggregating' ? { state, group: params.group! } : { state };

export { TASK_STATES, type TaskState };
