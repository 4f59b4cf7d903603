import { AsynqError } from './asynq-error.js';

/** A module, server or connection option is invalid. Thrown at boot, before anything connects. */
export class InvalidOptionError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_OPTION';
}

/** The spec of a periodic task is invalid. The message contains that of robfig/cron. */
export class InvalidScheduleError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_SCHEDULE';
}

/** A handler is declared wrongly: two for one pattern, or a blank pattern. Thrown at boot. */
export class InvalidHandlerError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_HANDLER';
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

/** Arguments, environment or config file of the command line are invalid. Nothing was sent. */
export class CommandLineError extends AsynqError {
  readonly code = 'ASYNQ_COMMAND_LINE';
}

/** The testing kit cannot do what a test calls for, or a test reached a limit. */
export class TestingError extends AsynqError {
  readonly code = 'ASYNQ_TESTING';
}
