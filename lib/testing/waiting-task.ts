import type { EdgeState, FailurePolicy, StoredWait, TimeoutPolicy } from '../broker/links.js';
import type { TestTask } from './task-filter.js';

/** A task that waits for others. */
export interface WaitingTask<P = unknown> extends TestTask<P> {
  /** Each prerequisite with its state, in the order of the option `after`. */
  readonly waitsFor: readonly EdgeState[];
  readonly onFailure: FailurePolicy;
  readonly onTimeout: TimeoutPolicy;
  /** When it stops waiting. */
  readonly waitsUntil: Date;
}

export const withWait = <P>(task: TestTask<P>, wait: StoredWait): WaitingTask<P> => ({
  ...task,
  waitsFor: wait.edges,
  onFailure: wait.onFailure,
  onTimeout: wait.onTimeout,
  waitsUntil: task.nextProcessAt!,
});
