import { TASK_STATES, type TaskState } from '../wire/states.js';

/** What may be done with a task by hand. */
export const TASK_ACTIONS = ['run', 'archive', 'delete', 'cancel', 'reschedule', 'edit', 'clone'] as const;

export type TaskAction = (typeof TASK_ACTIONS)[number];

/**
 * The states in which a task allows each action. A task in a group that is being aggregated allows
 * none but `clone`; only the broker knows that. The inspector, the REST API, the console, the
 * command line and its dashboard all take this table; the contract tests compare every broker with
 * it.
 */
export const STATES_BY_ACTION = {
  run: ['scheduled', 'retry', 'archived', 'completed', 'aggregating', 'waiting', 'held'],
  archive: ['pending', 'scheduled', 'retry', 'completed', 'aggregating', 'waiting', 'held'],
  delete: ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating', 'waiting', 'held'],
  cancel: ['active'],
  reschedule: ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating', 'held'],
  edit: ['pending', 'scheduled', 'retry', 'archived', 'waiting', 'held'],
  clone: TASK_STATES,
} as const satisfies Readonly<Record<TaskAction, readonly TaskState[]>>;

export function isAllowed(action: TaskAction, state: TaskState): boolean {
  const states: readonly TaskState[] = STATES_BY_ACTION[action];
  return states.includes(state);
}
