/** The states of a task, and the values of the hash field `state`. */
export const TASK_STATES = ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;

export type TaskState = (typeof TASK_STATES)[number];

/**
 * The numbers of Go's `TaskState` (wire-protocol section 3.4). They are in no key and no message,
 * only in Go's API.
 */
export const GO_STATE_NUMBERS: Readonly<Record<TaskState, number>> = {
  active: 1,
  pending: 2,
  scheduled: 3,
  retry: 4,
  archived: 5,
  completed: 6,
  aggregating: 7,
};
