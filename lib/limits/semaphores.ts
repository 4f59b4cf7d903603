import type { Broker } from '../broker/broker.js';
import { InvalidOptionError } from '../errors.js';
import { describe, isBlank } from '../validation.js';
import { Semaphore } from './semaphore.js';

/** Semaphores of the whole fleet, including Go servers with asynq's x/rate. Works without a server in the process. */
export class AsynqSemaphores {
  constructor(private readonly broker: Pick<Broker, 'limiting' | 'clock'>) {}

  /**
   * @param scope the name of the semaphore: the same in every process, Go's included
   * @param max tokens, at least 1: use the same number everywhere, as each caller counts against
   * its own
   * @throws InvalidOptionError
   */
  get(scope: string, max: number): Semaphore {
    if (typeof scope !== 'string' || isBlank(scope)) {
      throw new InvalidOptionError(`scope of a semaphore must contain one or more characters, not ${describe(scope)}`);
    }
    if (!Number.isSafeInteger(max) || max < 1) {
      throw new InvalidOptionError(
        `tokens of semaphore "${scope}" must be a whole number from 1 on, not ${describe(max)}`,
      );
    }
    return new Semaphore(this.broker, scope, max);
  }
}
