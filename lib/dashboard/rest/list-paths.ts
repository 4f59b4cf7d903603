import { TASK_STATES, type TaskState } from '../../wire/states.js';
import type { ApiRequest } from './route.js';

/** The path of a list of tasks: `archived_tasks`, or `groups/{group}/aggregating_tasks`. */
export const listPathOf = (state: TaskState): string =>
  state === 'aggregating' ? 'queues/{queue}/groups/{group}/aggregating_tasks' : `queues/{queue}/${state}_tasks`;

export const listScopeOf = (state: TaskState, { params }: ApiRequest): { state: TaskState; group?: string } =>
  state === 'aggregating' ? { state, group: params.group! } : { state };

export { TASK_STATES, type TaskState };
