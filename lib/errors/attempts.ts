import { AsynqError } from './asynq-error.js';

/** No pattern of a handler matches the type (asynq's ErrHandlerNotFound). The task is retried. */
export class HandlerNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_HANDLER_NOT_FOUND';
  /** @param near the pattern of a handler here that the type most likely means */
  constructor(type: string, near?: string) {
    super(`handler not found for task "${type}"${near === undefined ? '' : `; did you mean "${near}"?`}`);
  }
}

/** The payload cannot be decoded, or a pipe refused it. By default the task is archived at once. */
export class InvalidPayloadError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_PAYLOAD';
}

/**
 * A guard, interceptor or pipe of the whole application failed before the handler, most likely because it is written for HTTP. `cause`
 * is what it threw. An ordinary failure.
 */
export class GlobalEnhancerError extends AsynqError {
  readonly code = 'ASYNQ_GLOBAL_ENHANCER';
}

/**
 * A batch handler returned something else than one result per task. All its tasks fail with it, as which of them is done is not known.
 */
export class InvalidBatchResultError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_BATCH_RESULT';
}

/**
 * The `cost` of a rate gave no cost, or one above the limit, or `spent` was called wrongly. With a cost above the limit the task is
 * archived: it could never run. Otherwise it is an ordinary failure.
 */
export class InvalidCostError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_COST';
}

/** `limitBy` threw, or returned no key. The task is archived: it would fail so again. */
export class InvalidLimitKeyError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_LIMIT_KEY';
}

/** The task's timeout or deadline has passed (Go's context.DeadlineExceeded). */
export class DeadlineExceededError extends AsynqError {
  readonly code = 'ASYNQ_DEADLINE_EXCEEDED';
  constructor() {
    super('context deadline exceeded');
  }
}

/** No attempt began in time (`expiresIn`), so the task did not run. By default it is archived. */
export class TaskExpiredError extends AsynqError {
  readonly code = 'ASYNQ_TASK_EXPIRED';
  constructor(
    /** By when the first attempt had to begin. */
    readonly expiredAt: Date,
    now: Date,
  ) {
    super(
      `the task has expired (expiresIn): it was to begin by ${expiredAt.toJSON()}, and was claimed at ${now.toJSON()}`,
    );
  }
}

/**
 * The task was cancelled (Go's context.Canceled). The message is the reason, if there is one. An
 * ordinary failure, which is retried; with the cause SkipRetry the task is archived, with the cause
 * RevokeTask deleted.
 */
export class TaskCanceledError extends AsynqError {
  readonly code = 'ASYNQ_TASK_CANCELED';
  constructor(reason = 'context canceled', options?: ErrorOptions) {
    super(reason, options);
  }
}

/** This server lost the lease; the handler's result changes nothing (asynq's ErrLeaseExpired). */
export class LeaseExpiredError extends AsynqError {
  readonly code = 'ASYNQ_LEASE_EXPIRED';
  constructor() {
    super('asynq: task lease expired');
  }
}

/** The servers of a task have died so often (`maxCrashes`) that it may be the cause. The task is archived. */
export class TaskCrashedError extends AsynqError {
  readonly code = 'ASYNQ_TASK_CRASHED';
  constructor(
    /** How often its server has died. */
    readonly crashes: number,
    /** Where and when, the last times, in words. */
    last: readonly string[],
  ) {
    super(
      `archived as a suspect: its server has died ${crashes === 1 ? 'once' : `${crashes} times`} while it ran: ${last.join('; ')}`,
    );
  }
}

/** The thread in which a task ran has ended, or could not start. An ordinary failure of this task; others are not touched. */
export class ThreadDiedError extends AsynqError {
  readonly code = 'ASYNQ_THREAD_DIED';
  constructor(reason: string, options?: ErrorOptions) {
    super(`the thread of the task has died: ${reason}`, options);
  }
}

/** Aggregating a set took longer than 2 minutes: its tasks are in their group again. */
export class AggregationSetLostError extends AsynqError {
  readonly code = 'ASYNQ_AGGREGATION_SET_LOST';
  constructor() {
    super('the tasks have gone back to their group: aggregating them took longer than 2 minutes');
  }
}

/** The shutdown timeout has passed; the task goes back to the front of its queue. */
export class ShutdownError extends AsynqError {
  readonly code = 'ASYNQ_SHUTDOWN';
  constructor() {
    super('server is shutting down');
  }
}

/** Throw it, also as a `cause`, from a handler: the task is archived, not retried. */
export class SkipRetry extends AsynqError {
  readonly code = 'ASYNQ_SKIP_RETRY';
  constructor(message = 'skip retry for the task', options?: ErrorOptions) {
    super(message, options);
  }
}

/**
 * Throw it, also as a `cause`, from a handler: the task is deleted, neither retried nor archived.
 */
export class RevokeTask extends AsynqError {
  readonly code = 'ASYNQ_REVOKE_TASK';
  constructor(message = 'revoke task', options?: ErrorOptions) {
    super(message, options);
  }
}

/** A handler has called `progress`, `log` or `emit` with what cannot be stored. An ordinary failure. */
export class InvalidNoteError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_NOTE';
}

/** A step of a handler is used wrongly, or its result cannot be stored. The task is archived: it would fail so again. */
export class InvalidStepError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_STEP';
}

/** What was stored of the steps of a task does not fit the handler any more. An ordinary failure: the task goes on after a fix. */
export class StepsChangedError extends AsynqError {
  readonly code = 'ASYNQ_STEPS_CHANGED';
}

/**
 * What is stored of the steps of a task cannot be read, or not be added to: `cause` says why. Redis is away, say, or full. The task is
 * retried, and that does not count as one of its retries. What a step has done since its record is the one that is missing may be done again.
 */
export class StepNotStoredError extends AsynqError {
  readonly code = 'ASYNQ_STEP_NOT_STORED';
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`what is stored of the steps of the task cannot be read or written: ${reason}`, { cause });
  }
}

/**
 * A step has failed for good: its own retries are used up, or the task that it called has failed. It throws this in every later call, too,
 * so the task is archived when its handler lets it pass, and not retried.
 */
export class StepFailedError extends AsynqError {
  readonly code = 'ASYNQ_STEP_FAILED';
  constructor(
    readonly step: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What a task has failed with whose steps were undone. */
export class TaskUndoneError extends AsynqError {
  readonly code = 'ASYNQ_TASK_UNDONE';
  /** @param steps the names of those that were undone, in the order in which that was done */
  constructor(
    message: string,
    readonly steps: readonly string[],
  ) {
    super(message);
  }
}

/** The signal did not come in time. A handler that lets it pass has its task archived at once, and its steps undone. */
export class SignalTimeoutError extends AsynqError {
  readonly code = 'ASYNQ_SIGNAL_TIMEOUT';
  constructor(
    readonly step: string,
    readonly signal: string,
  ) {
    super(`step "${step}" has waited for the signal "${signal}" until its timeout`);
  }
}

/**
 * Ends a call of a handler that sleeps or waits: it is called again later. Let it pass; a handler that catches it has failed with the
 * code `ASYNQ_SUSPENSION_SWALLOWED`.
 */
export class TaskSuspended extends AsynqError {
  readonly code = 'ASYNQ_TASK_SUSPENDED';
  constructor(
    readonly step: string,
    why = 'and is called again later',
  ) {
    super(`the handler is suspended in step "${step}", ${why}: do not catch this`);
  }
}

/** A handler has caught TaskSuspended, or lost it in a `Promise.race`, and gone on. */
export class SuspensionSwallowedError extends AsynqError {
  readonly code = 'ASYNQ_SUSPENSION_SWALLOWED';
  constructor(step: string, cause?: unknown) {
    super(
      `the handler caught what step "${step}" throws to suspend it, or went on without that step (Promise.race, Promise.allSettled, a ` +
        'missing await); wait for it, and throw it again: ' +
        'catch (error) { if (error instanceof TaskSuspended) throw error; … }',
      { cause },
    );
  }
}
