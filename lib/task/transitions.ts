import type { TaskState } from '../wire/states.js';
import { STATES_BY_ACTION } from './actions.js';

/**
 * What can happen to a task: the three ways to enqueue it, its claim, the six settlements, and what
 * limiters, maintenance and inspectors do. Named as in the broker contract.
 */
export type TaskOperation =
  | 'enqueue'
  | 'schedule'
  | 'addToGroup'
  | 'take'
  | 'done'
  | 'complete'
  | 'retry'
  | 'archive'
  | 'requeue'
  | 'wait'
  | 'wakeWaiting'
  | 'forward'
  | 'deleteExpiredCompleted'
  | 'trimArchived'
  | 'finishSet'
  | 'archiveDamagedMembers'
  | 'runTask'
  | 'archiveTask'
  | 'deleteTask'
  | 'rescheduleTask';

export interface Transition {
  /** `undefined`: no task has this id yet. */
  readonly from: TaskState | undefined;
  readonly operation: TaskOperation;
  /** `undefined`: the task is deleted. */
  readonly to: TaskState | undefined;
  /** When this row applies, and the position in the new state. */
  readonly note: string;
}

/**
 * Every change of state that a client, a server or an inspector can make (wire-protocol section D).
 * Claiming the tasks of a group, and giving them back, changes no state. Nothing else changes a
 * state. The contract tests try every row.
 */
export const TRANSITIONS: readonly Transition[] = [
  { from: undefined, operation: 'enqueue', to: 'pending', note: 'no time and no group; last in line' },
  { from: undefined, operation: 'schedule', to: 'scheduled', note: 'with a time, also when it has a group' },
  { from: undefined, operation: 'addToGroup', to: 'aggregating', note: 'with a group and no time' },
  { from: 'pending', operation: 'take', to: 'active', note: 'first in line, queue not paused; leased' },
  { from: 'active', operation: 'done', to: undefined, note: 'success without retention, or revoked; lock released' },
  { from: 'active', operation: 'complete', to: 'completed', note: 'success with retention; lock released' },
  { from: 'active', operation: 'retry', to: 'retry', note: 'failed with retries left, or not a failure' },
  { from: 'active', operation: 'archive', to: 'archived', note: 'given up; the archive is trimmed' },
  { from: 'active', operation: 'requeue', to: 'pending', note: 'shutdown; first in line' },
  { from: 'active', operation: 'wait', to: 'held', note: 'deferred: a limit of its handler is reached' },
  { from: 'held', operation: 'wakeWaiting', to: 'pending', note: 'woken; first in line' },
  { from: 'scheduled', operation: 'forward', to: 'pending', note: 'due; last in line' },
  { from: 'retry', operation: 'forward', to: 'pending', note: 'due; last in line' },
  { from: 'held', operation: 'forward', to: 'pending', note: 'nobody has woken it in time; last in line' },
  { from: 'scheduled', operation: 'forward', to: 'aggregating', note: 'due, and the hash names a group' },
  { from: 'retry', operation: 'forward', to: 'aggregating', note: 'due, and the hash names a group' },
  { from: 'completed', operation: 'deleteExpiredCompleted', to: undefined, note: 'retention over' },
  {
    from: 'archived',
    operation: 'trimArchived',
    to: undefined,
    note: 'older than 90 days, or beyond the newest 9,999; or other limits of its queue',
  },
  {
    from: 'aggregating',
    operation: 'finishSet',
    to: undefined,
    note: 'part of the aggregated task now; lock released',
  },
  {
    from: 'aggregating',
    operation: 'archiveDamagedMembers',
    to: 'archived',
    note: 'cannot be read; the others are aggregated',
  },
  ...byHand('runTask', STATES_BY_ACTION.run, 'pending', 'last in line'),
  ...byHand('archiveTask', STATES_BY_ACTION.archive, 'archived', 'lock kept'),
  ...byHand('deleteTask', STATES_BY_ACTION.delete, undefined, 'lock released'),
  ...byHand(
    'rescheduleTask',
    STATES_BY_ACTION.reschedule.filter((state) => state !== 'retry'),
    'scheduled',
    'at the time given; its lock lasts as much longer',
  ),
  ...byHand('rescheduleTask', ['retry'], 'retry', 'at the time given; its lock lasts as much longer'),
];

/**
 * The rows of an inspector's operation, which leads to one state from each of several; not while a
 * group's tasks are claimed.
 */
function byHand(
  operation: TaskOperation,
  states: readonly TaskState[],
  to: TaskState | undefined,
  note: string,
): Transition[] {
  return states.map((from) => ({ from, operation, to, note }));
}
