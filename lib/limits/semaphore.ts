import type { Broker } from '../broker/broker.js';
import { ceilSeconds } from '../clock.js';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import type { TaskContext } from '../task/context.js';
import { PostponeTask } from '../task/postpone.js';

/** What a token is taken for: a task that runs. It comes back at the task's deadline at the latest. */
export type TokenHolder = Pick<TaskContext, 'id' | 'deadline'>;

export interface SemaphoreRunOptions {
  /** When a task that found no token runs again: at a random time between half of this and one and a half. Default 2 s. */
  wait?: Duration;
}

const DEFAULT_WAIT = 2_000;
/** Unix seconds; beyond it a score is no exact number. */
const LATEST = Number.MAX_SAFE_INTEGER;

/** So many tasks at a time, fleet-wide (asynq's x/rate Semaphore). */
export class Semaphore {
  constructor(
    private readonly broker: Pick<Broker, 'limiting' | 'clock'>,
    readonly scope: string,
    readonly max: number,
  ) {}

  /**
   * Takes a token; answers whether the task has one now. Asking again keeps it.
   *
   * @throws BrokerUnavailableError: the token may have been taken, and comes back at the task's deadline
   */
  async acquire(task: TokenHolder): Promise<boolean> {
    const deadline = Math.min(ceilSeconds(task.deadline.getTime()), LATEST);
    return (await this.broker.limiting.acquireTokens(this.scope, this.max, deadline, [task.id]))[0]!;
  }

  /** Gives the token back; answers whether the task held one. @throws BrokerUnavailableError */
  async release(task: TokenHolder): Promise<boolean> {
    return (await this.broker.limiting.releaseTokens(this.scope, [task.id])) === 1;
  }

  /**
   * Does the work while the task holds a token. Without one it throws PostponeTask: let it through, and the task comes again
   * later, which costs no retry. A token that cannot be given back does not fail the work; it comes back at the deadline.
   *
   * @throws PostponeTask, BrokerUnavailableError, InvalidOptionError for a wrong `wait`, and what the work throws
   */
  async run<T>(task: TokenHolder, work: () => T | Promise<T>, options: SemaphoreRunOptions = {}): Promise<T> {
    const wait = parseDuration(options.wait ?? DEFAULT_WAIT, 'wait of a semaphore');
    if (wait < 0) throw new InvalidOptionError(`wait of a semaphore is ${options.wait}; it must be zero or more`);
    if (!(await this.acquire(task))) {
      throw new PostponeTask(wait * (0.5 + Math.random()), `all ${this.max} tokens of "${this.scope}" are taken`);
    }
    try {
      return await work();
    } finally {
      await this.release(task).catch(() => undefined);
    }
  }
}
