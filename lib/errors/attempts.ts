import { AsynqError } from './asynq-error.js';

/** No pattern of a handler matches the type (asynq's ErrHandlerNotFound). The task is retried. */
export class HandlerNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_HANDLER_NOT_FOUND';
  constructor(type: string) {
    super(`handler not found for task "${type}"`);
  }
}

/** The payload cannot be decoded, or a pipe refused it. By default the task is archived at once. */
export class InvalidPayloadError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_PAYLOAD';
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
