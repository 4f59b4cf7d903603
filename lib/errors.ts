/**
 * Every error this library throws. Each class has a stable `code`; a message names the thing, the
 * value and the remedy. Texts that asynq stores or shows are asynq's, word for word (wire-protocol
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

/** The error class that a check throws. */
export type ErrorClass = new (message: string) => Error;

/** A module, server or connection option is invalid. Thrown at boot, before anything connects. */
export class InvalidOptionError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_OPTION';
}

/** A task, or an option of an enqueue call, is invalid. Thrown before anything is written. */
export class InvalidTaskError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_TASK';
}

/** The spec of a periodic task is invalid. The message contains that of robfig/cron. */
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

/**
 * A task to wait for cannot be found: it is over and gone, or never was. Nothing was enqueued.
 */
export class PrerequisiteNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_PREREQUISITE_NOT_FOUND';
  constructor(
    /** The task that was not stored. */
    task: RefusedTask,
    /** What it was to wait for. */
    readonly prerequisite: { readonly queue: string; readonly id: string },
  ) {
    const { queue, id } = prerequisite;
    super(
      `task "${task.type}" cannot wait for task ${JSON.stringify(id)}: queue ${JSON.stringify(queue)} has no such task. ` +
        'If it has succeeded, give it a retention, or its definition key and rememberFor and wait for that, or make both ' +
        "steps of a workflow; or say how a missing one counts: missing: 'succeeded' or 'failed'",
    );
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
 * The queue has tasks: delete it by force, or when no task is active (asynq's ErrQueueNotEmpty).
 */
export class QueueNotEmptyError extends AsynqError {
  readonly code = 'ASYNQ_QUEUE_NOT_EMPTY';
}

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

/** The queue has no such task: it is done, deleted, or never existed (asynq's ErrTaskNotFound). */
export class TaskNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_TASK_NOT_FOUND';
  constructor(queue: string, id: string) {
    super(`task not found: id=${JSON.stringify(id)}, queue=${JSON.stringify(queue)}`);
  }
}

/** The state of the task does not allow this (FAILED_PRECONDITION). Nothing was written. */
export class TaskStateError extends AsynqError {
  readonly code = 'ASYNQ_TASK_STATE';
}

/** The archive is full (`maxArchived`). What the call archived before that stays archived. */
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

/** The queue has no such batch: it was deleted, its retention is over, or it never existed. */
export class BatchNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_NOT_FOUND';
  constructor(queue: string, id: string) {
    super(
      `batch not found: id=${JSON.stringify(id)}, queue=${JSON.stringify(queue)}; a batch is found in the queue it was opened in, ` +
        'until the retention after its end',
    );
  }
}

/** The batch did not end in the time that the caller would wait. The batch goes on. */
export class BatchTimeoutError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_TIMEOUT';
}

/** The batch has ended, or is closed and has no member left: it takes no more members. */
export class BatchEndedError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_ENDED';
  constructor(queue: string, id: string) {
    super(
      `batch ${JSON.stringify(id)} of queue ${JSON.stringify(queue)} has ended and takes no more members; close it after the last ` +
        'add, give it a longer closeWithin, or open another',
    );
  }
}

/** A handler has read `batch` of a task that is in no batch. */
export class NotAMemberError extends AsynqError {
  readonly code = 'ASYNQ_NOT_A_MEMBER';
  constructor(task: { readonly id: string; readonly type: string }) {
    super(
      `task "${task.type}" (id ${task.id}) is not a member of a batch, so it has none; add it by the batch: ` +
        'batch.add(definition, payloads)',
    );
  }
}

/** The batch has not ended: its callbacks are still to come. Nothing was deleted. */
export class BatchRunningError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_RUNNING';
  constructor(queue: string, id: string) {
    super(
      `batch ${JSON.stringify(id)} of queue ${JSON.stringify(queue)} has not ended and was not deleted; close it, and let its ` +
        'members end (delete those that are not wanted)',
    );
  }
}

/** Payloads of one call that were not added, and why. */
export interface NotAdded {
  /** The index of the first. */
  readonly from: number;
  /** The index behind the last. */
  readonly to: number;
  /**
   * InvalidTaskError, DuplicateTaskError, BatchEndedError or BrokerUnavailableError. After the last
   * one they may have been added all the same; the batch finds out within a minute and counts them.
   */
  readonly error: Error;
}

/** Some payloads of a call were not added to the batch; the others are members. */
export class BatchAddError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_ADD';
  /** How many payloads of the call are members. */
  readonly added: number;
  /** In order. */
  readonly notAdded: readonly NotAdded[];
  /** How many payloads were read; those behind are not added, too. */
  readonly read: number;

  constructor(
    message: string,
    { added, notAdded, read }: Pick<BatchAddError, 'added' | 'notAdded' | 'read'>,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.added = added;
    this.notAdded = notAdded;
    this.read = read;
  }
}

/** Redis cannot be reached, or refused the call. `cause` is the error of the driver. */
export class BrokerUnavailableError extends AsynqError {
  readonly code = 'ASYNQ_BROKER_UNAVAILABLE';
}

/** Redis, or a proxy, refuses CLIENT TRACKING: idle servers poll instead. `cause` is its reply. */
export class WakeUpRefusedError extends AsynqError {
  readonly code = 'ASYNQ_WAKE_UP_REFUSED';
}

/**
 * A Redis key has another type than asynq writes. Nothing was written. `cause` is the driver's
 * error.
 */
export class WrongKeyTypeError extends AsynqError {
  readonly code = 'ASYNQ_WRONG_KEY_TYPE';
}

/** The client, server or broker is closed. */
export class ClosedError extends AsynqError {
  readonly code = 'ASYNQ_CLOSED';
}

/** The state of the server does not allow this (asynq's texts, section 5.12). */
export class ServerStateError extends AsynqError {
  readonly code = 'ASYNQ_SERVER_STATE';
}

/** The state of the scheduler does not allow this (asynq's texts, section 6.1). */
export class SchedulerStateError extends AsynqError {
  readonly code = 'ASYNQ_SCHEDULER_STATE';
}

/** A handler is declared wrongly: two for one pattern, or a blank pattern. Thrown at boot. */
export class InvalidHandlerError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_HANDLER';
}

/** No pattern of a handler matches the type (asynq's ErrHandlerNotFound). The task is retried. */
export class HandlerNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_HANDLER_NOT_FOUND';
  constructor(type: string) {
    super(`handler not found for task "${type}"`);
  }
}

/** Bytes from Redis are not the expected protobuf message. */
export class UndecodableMessageError extends AsynqError {
  readonly code = 'ASYNQ_UNDECODABLE_MESSAGE';
}

/** The payload cannot be decoded, or a pipe refused it. By default the task is archived at once. */
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

/** Arguments, environment or config file of the command line are invalid. Nothing was sent. */
export class CommandLineError extends AsynqError {
  readonly code = 'ASYNQ_COMMAND_LINE';
}

/** The testing kit cannot do what a test calls for, or a test reached a limit. */
export class TestingError extends AsynqError {
  readonly code = 'ASYNQ_TESTING';
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
