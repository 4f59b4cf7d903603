/**
 * Every error this library throws. Each class has a stable `code`; a message names the thing, the
 * value and the remedy. Texts that asynq stores or shows are kept word for word (wire-protocol
 * appendix B, section 5.6).
 */
export abstract class AsynqError extends Error {
  /** Stable, machine-readable: compare this, not the message. */
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A class of error a check is told to throw. */
export type ErrorClass = new (message: string) => Error;

/** A module, server or connection option is wrong. Thrown at boot, before anything is connected. */
export class InvalidOptionError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_OPTION';
}

/** A task, or an option of one enqueue call, is wrong. Thrown before anything is written. */
export class InvalidTaskError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_TASK';
}

/**
 * The spec of a periodic task cannot be read. The message holds that of robfig/cron, which asynq
 * uses.
 */
export class InvalidScheduleError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_SCHEDULE';
}

/** The task that was not stored. */
export interface RefusedTask {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
}

/** Another task holds the unique lock (asynq's ErrDuplicateTask). */
export class DuplicateTaskError extends AsynqError {
  readonly code = 'ASYNQ_DUPLICATE_TASK';
  constructor({ type, queue }: RefusedTask, options?: ErrorOptions) {
    const holder = `another of type "${type}" with the same payload holds the unique lock in queue "${queue}"`;
    super(`task already exists: ${holder}`, options);
  }
}

/** A task with this id exists in the queue, in whatever state (asynq's ErrTaskIDConflict). */
export class TaskIdConflictError extends AsynqError {
  readonly code = 'ASYNQ_TASK_ID_CONFLICT';
  constructor({ id, queue }: RefusedTask, options?: ErrorOptions) {
    super(`task ID conflicts with another task: queue "${queue}" has one with id "${id}", in whatever state`, options);
  }
}

/** Nothing was ever enqueued to the queue, or it was deleted (asynq's ErrQueueNotFound). */
export class QueueNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_QUEUE_NOT_FOUND';
  constructor(
    readonly queue: string,
    remedy = 'check its name against AsynqInspector.queues()',
  ) {
    super(`queue not found: queue=${JSON.stringify(queue)}; ${remedy}`);
  }
}

/**
 * The queue has tasks: delete it by force, or, when they are active, once they have ended (asynq's
 * ErrQueueNotEmpty).
 */
export class QueueNotEmptyError extends AsynqError {
  readonly code = 'ASYNQ_QUEUE_NOT_EMPTY';
}

/**
 * The queue has no such task (any more): done without retention, deleted, or never there (asynq's
 * ErrTaskNotFound).
 */
export class TaskNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_TASK_NOT_FOUND';
  constructor(queue: string, id: string) {
    super(`task not found: id=${JSON.stringify(id)}, queue=${JSON.stringify(queue)}`);
  }
}

/**
 * The task is in a state in which this cannot be done to it (asynq's FAILED_PRECONDITION). Nothing
 * was written.
 */
export class TaskStateError extends AsynqError {
  readonly code = 'ASYNQ_TASK_STATE';
}

/**
 * As many tasks are archived as the caller may fill the archive with (`maxArchived`). What was
 * archived before stays so.
 */
export class ArchiveFullError extends AsynqError {
  readonly code = 'ASYNQ_ARCHIVE_FULL';
  constructor(
    queue: string,
    maxArchived: number,
    /** Tasks that the same call archived before. */
    readonly archived = 0,
  ) {
    const before = archived > 0 ? `; ${archived.toLocaleString('en-US')} were archived before that` : '';
    super(
      `the archive of queue ${JSON.stringify(queue)} holds ${maxArchived.toLocaleString('en-US')} tasks or more, and this call ` +
        `may add none then (maxArchived)${before}; run or delete archived tasks first`,
    );
  }
}

/** Redis could not be reached, or refused. `cause` is the driver's error. */
export class BrokerUnavailableError extends AsynqError {
  readonly code = 'ASYNQ_BROKER_UNAVAILABLE';
}

/**
 * Redis, or what stands before it, does not allow CLIENT TRACKING: idle servers poll instead.
 * `cause` is its answer.
 */
export class WakeUpRefusedError extends AsynqError {
  readonly code = 'ASYNQ_WAKE_UP_REFUSED';
}

/**
 * A Redis key holds something else than asynq keeps there. Nothing was written. `cause` is the
 * driver's error.
 */
export class WrongKeyTypeError extends AsynqError {
  readonly code = 'ASYNQ_WRONG_KEY_TYPE';
}

/** The client, server or broker was already closed. */
export class ClosedError extends AsynqError {
  readonly code = 'ASYNQ_CLOSED';
}

/** The server was asked for something its state does not allow (asynq's texts, section 5.12). */
export class ServerStateError extends AsynqError {
  readonly code = 'ASYNQ_SERVER_STATE';
}

/** The scheduler was asked for something its state does not allow (asynq's texts, section 6.1). */
export class SchedulerStateError extends AsynqError {
  readonly code = 'ASYNQ_SCHEDULER_STATE';
}

/**
 * A handler declaration is wrong: two for one pattern, a blank pattern, a handler on nothing.
 * Thrown at boot.
 */
export class InvalidHandlerError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_HANDLER';
}

/**
 * No handler's pattern matches the task's type (asynq's ErrHandlerNotFound). An ordinary failure:
 * it is retried.
 */
export class HandlerNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_HANDLER_NOT_FOUND';
  constructor(type: string) {
    super(`handler not found for task "${type}"`);
  }
}

/** Bytes from Redis that are not the protobuf message they should be. */
export class UndecodableMessageError extends AsynqError {
  readonly code = 'ASYNQ_UNDECODABLE_MESSAGE';
}

/**
 * The payload does not fit the handler: not decodable, or refused by a pipe. The task is archived
 * at once by default.
 */
export class InvalidPayloadError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_PAYLOAD';
}

/** The task's timeout or deadline has passed (Go's context.DeadlineExceeded). */
export class DeadlineExceededError extends AsynqError {
  readonly code = 'ASYNQ_DEADLINE_EXCEEDED';
  constructor() {
    super('context deadline exceeded');
  }
}

/**
 * The task was cancelled (Go's context.Canceled). The message is the reason, if one was given. An
 * ordinary failure, which is retried; with the cause SkipRetry the task is archived, with the cause
 * RevokeTask deleted.
 */
export class TaskCanceledError extends AsynqError {
  readonly code = 'ASYNQ_TASK_CANCELED';
  constructor(reason = 'context canceled', options?: ErrorOptions) {
    super(reason, options);
  }
}

/**
 * The task is no longer leased by this server; whatever its handler returns changes nothing
 * (asynq's ErrLeaseExpired).
 */
export class LeaseExpiredError extends AsynqError {
  readonly code = 'ASYNQ_LEASE_EXPIRED';
  constructor() {
    super('asynq: task lease expired');
  }
}

/**
 * A set of grouped tasks was taken back while it was aggregated (after 2 minutes): its tasks are in
 * their group again.
 */
export class AggregationSetLostError extends AsynqError {
  readonly code = 'ASYNQ_AGGREGATION_SET_LOST';
  constructor() {
    super('the tasks have gone back to their group: aggregating them took longer than 2 minutes');
  }
}

/**
 * The server is shutting down and its shutdown timeout has passed; the task goes back to the front
 * of its queue.
 */
export class ShutdownError extends AsynqError {
  readonly code = 'ASYNQ_SHUTDOWN';
  constructor() {
    super('server is shutting down');
  }
}

/**
 * A command line, an environment variable or a config file of the command `nestjs-asynq` is wrong.
 * Nothing was sent.
 */
export class CommandLineError extends AsynqError {
  readonly code = 'ASYNQ_COMMAND_LINE';
}

/** The testing kit cannot do what a test asks of it, or a test ran into one of its limits. */
export class TestingError extends AsynqError {
  readonly code = 'ASYNQ_TESTING';
}

/**
 * Throw it (or an error whose `cause` chain holds it) from a handler: the task is archived, not
 * retried.
 */
export class SkipRetry extends AsynqError {
  readonly code = 'ASYNQ_SKIP_RETRY';
  constructor(message = 'skip retry for the task', options?: ErrorOptions) {
    super(message, options);
  }
}

/**
 * Throw it (or an error whose `cause` chain holds it) from a handler: the task is dropped, neither
 * retried nor archived.
 */
export class RevokeTask extends AsynqError {
  readonly code = 'ASYNQ_REVOKE_TASK';
  constructor(message = 'revoke task', options?: ErrorOptions) {
    super(message, options);
  }
}
