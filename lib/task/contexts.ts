import type { TaskBatch } from './batch.js';
import type { WorkflowContext } from './workflow-context.js';

/** The step that a task is: the queue and the id of its run, and its name. */
export interface StepLink {
  readonly to: string;
  readonly run: string;
  /** When the run has started: milliseconds since the epoch. */
  readonly since?: string;
  readonly step: string;
  /** The names of the steps before it, if they are known. */
  readonly before?: readonly string[];
}

/** What running tasks see of that which they belong to. The client makes it. */
export interface TaskContexts {
  /** Of a member, or of a callback. @param batch where it lives, and its id */
  batchOf(batch: { readonly queue: string; readonly id: string }, isMember: boolean): TaskBatch;
  /** Of a step. */
  workflowOf(taskId: string, link: StepLink): WorkflowContext;
}
