import { AsynqError } from './asynq-error.js';

/** A workflow, or an option of one of its runs, is invalid. Thrown before anything is written. */
export class InvalidWorkflowError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_WORKFLOW';
}

/** The queue has no such run: its retention is over, it was deleted, or it never existed. */
export class WorkflowNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_WORKFLOW_NOT_FOUND';
  constructor(
    readonly queue: string,
    readonly id: string,
  ) {
    super(
      `workflow run not found: id=${JSON.stringify(id)}, queue=${JSON.stringify(queue)}; ` +
        'check whether its retention is over, and the queue that keeps it: asynq.run(workflow, id, { queue })',
    );
  }
}

/** A handler has read `workflow` of a task that is no step. */
export class NotAStepError extends AsynqError {
  readonly code = 'ASYNQ_NOT_A_STEP';
  constructor(task: { readonly id: string; readonly type: string }) {
    super(
      `task "${task.type}" (id ${task.id}) is not a step of a workflow, so it has none; ask isStep first, or start ` +
        'it as a step: workflow(name).add(step, definition, payload)',
    );
  }
}

/** The state of the run, or of a step, does not allow this. Nothing was written. */
export class WorkflowStateError extends AsynqError {
  readonly code = 'ASYNQ_WORKFLOW_STATE';
}

/** The run did not end in the time that the caller would wait. The run goes on. */
export class WorkflowTimeoutError extends AsynqError {
  readonly code = 'ASYNQ_WORKFLOW_TIMEOUT';
}
