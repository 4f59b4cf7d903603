/** asynq's states, which are the values of the hash field `state`. */
export const STORED_STATES = [
  'active',
  'pending',
  'scheduled',
  'retry',
  'archived',
  'completed',
  'aggregating',
] as const;

export type StoredState = (typeof STORED_STATES)[number];

/**
 * The states of a task. Two are ours. `waiting`: it waits for other tasks. It is stored as aggregating, in
 * a group of its own that no aggregator takes (WAITING_GROUP), so that Go's tools can read it. `held`: it
 * was deferred, and is in a waitlist. It is stored as a retry, so that any forwarder brings it back in the end.
 */
export const TASK_STATES = [...STORED_STATES, 'waiting', 'held'] as const;

export type TaskState = (typeof TASK_STATES)[number];

/**
 * The numbers of Go's `TaskState` (wire-protocol section 3.4). They are in no key and no message,
 * only in Go's API.
 */
export const GO_STATE_NUMBERS: Readonly<Record<StoredState, number>> = {
  active: 1,
  pending: 2,
  scheduled: 3,
  retry: 4,
  archived: 5,
  completed: 6,
  aggregating: 7,
};
