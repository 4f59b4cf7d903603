import { parseDuration, type Duration } from '../duration.js';
import { AsynqError, InvalidTaskError } from '../errors.js';

/**
 * Throw it, also as a `cause`, from a handler: the task runs again after `delay`, rounded up to a
 * second, as if this attempt had not happened. It uses up no retry, is not counted and leaves no
 * error text. It is for tasks that find a limit reached. asynq has nothing like it; for Go the task
 * waits for a retry.
 */
export class PostponeTask extends AsynqError {
  readonly code = 'ASYNQ_POSTPONE_TASK';
  /** Milliseconds. */
  readonly delay: number;

  /** @throws InvalidTaskError when the delay is not a duration or negative */
  constructor(delay: Duration, message = 'the task is postponed', options?: ErrorOptions) {
    super(message, options);
    this.delay = parseDuration(delay, 'delay of PostponeTask', InvalidTaskError);
    if (this.delay < 0)
      throw new InvalidTaskError(`delay of PostponeTask is ${delay}; give how long from now, zero or more`);
  }
}
