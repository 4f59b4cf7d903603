import { AsynqError } from './asynq-error.js';

interface AwaitedTask {
  readonly queue: string;
  readonly id: string;
}

const nameOf = ({ queue, id }: AwaitedTask): string => `task ${JSON.stringify(id)} of queue ${JSON.stringify(queue)}`;

/** The task whose result was waited for is archived: it has failed for good, or somebody archived it. */
export class TaskFailedError extends AsynqError {
  readonly code = 'ASYNQ_TASK_FAILED';
  readonly queue: string;
  readonly id: string;
  constructor(
    task: AwaitedTask,
    /** The text of its last failure; empty when there was none. */
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`${nameOf(task)} is archived: ${reason === '' ? 'it did not run' : reason}`, options);
    this.queue = task.queue;
    this.id = task.id;
  }
}

/** The task whose result was waited for is over, and nothing is kept of it: it has succeeded, was revoked, or deleted. */
export class ResultNotKeptError extends AsynqError {
  readonly code = 'ASYNQ_RESULT_NOT_KEPT';
  readonly queue: string;
  readonly id: string;
  constructor(task: AwaitedTask) {
    super(
      `${nameOf(task)} is over, and its result was not kept; enqueue it with a retention, or by asynq.call, which keeps the result ` +
        'for as long as it waits',
    );
    this.queue = task.queue;
    this.id = task.id;
  }
}

/** The task did not end in the time that the caller would wait for its result. The task goes on. */
export class ResultTimeoutError extends AsynqError {
  readonly code = 'ASYNQ_RESULT_TIMEOUT';
  readonly queue: string;
  readonly id: string;
  constructor(
    task: AwaitedTask,
    /** Milliseconds. */
    readonly timeout: number,
    options?: ErrorOptions,
  ) {
    super(
      `${nameOf(task)} did not end within ${Math.round(timeout) / 1000} s; it goes on (if it has not begun, AsynqInspector.explain says why)`,
      options,
    );
    this.queue = task.queue;
    this.id = task.id;
  }
}
