import { parseDuration, type Duration } from '../duration.js';
import { AsynqError, InvalidTaskError } from '../errors.js';

/**
 * Throw it (or an error whose `cause` chain holds it) from a handler: the task runs again after `delay`, rounded up to a second,
 * as though this attempt had not been. It costs no retry, counts as nothing and leaves no error text; what a task does
 * that finds a limit reached. asynq has no such thing; to Go the task is one that waits for a retry.
 */
export class PostponeTask extends AsynqError {
  readonly code = 'ASYNQ_POSTPONE_TASK';
  /** Milliseconds. */
  readonly delay: number;

  /** @throws InvalidTaskError when the delay is no duration or below zero */
  constructor(delay: Duration, message = 'the task is postponed', options?: ErrorOptions) {
    super(message, options);
    this.delay = parseDuration(delay, 'delay of PostponeTask', InvalidTaskError);
    if (this.delay < 0) throw new InvalidTaskError(`delay of PostponeTask is ${delay}; it must be zero or more`);
  }
}
