/** The values of the hash field `state`, and what a task can be in. */
export const TASK_STATES = ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;

export type TaskState = (typeof TASK_STATES)[number];
