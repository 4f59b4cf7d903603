import type { Broker } from '../broker/broker.js';
import { ceilSeconds } from '../clock.js';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import type { TaskContext } from '../task/context.js';
import { PostponeTask } from '../task/postpone.js';

/** The task that holds a token, until its deadline at the latest. */
export type TokenHolder = Pick<TaskContext, 'id' | 'deadline'>;

export interface SemaphoreRunOptions {
  /**
   * When a task without a token runs again: after a random time from half to one and a half times
   * this. Default 2 s.
   */
  wait?: Duration;
}

const DEFAULT_WAIT_MS = 2_000;
/** The latest deadline, in Unix seconds: a greater score is not exact. */
const MAX_DEADLINE_SECONDS = Number.MAX_SAFE_INTEGER;

/** Limits how many tasks run at a time in the whole fleet (asynq's x/rate Semaphore). */
export class Semaphore {
  constructor(
    private readonly broker: Pick<Broker, 'limiting' | 'clock'>,
    readonly scope: string,
    readonly max: number,
  ) {}

  /**
   * Takes a token, and returns whether the task holds one. A repeated call keeps it.
   *
   * @throws BrokerUnavailableError: a token may be taken, and is free again at the task's deadline
   */
  async acquire(task: TokenHolder): Promise<boolean> {
    const deadline = Math.min(ceilSeconds(task.deadline.getTime()), MAX_DEADLINE_SECONDS);
    return (await this.broker.limiting.acquireTokens(this.scope, this.max, deadline, [task.id]))[0]!;
  }

  /** Releases the token, and returns whether the task held one. @throws BrokerUnavailableError */
  async release(task: TokenHolder): Promise<boolean> {
    return (await this.broker.limiting.releaseTokens(this.scope, [task.id])) === 1;
  }

  /**
   * Runs the work while the task holds a token. Without one it throws PostponeTask: do not catch
   * it, and the task runs again later without using up a retry. When the token cannot be released,
   * the work succeeds all the same, and the token is free again at the deadline.
   *
   * @throws PostponeTask, BrokerUnavailableError, InvalidOptionError for an invalid `wait`, and
   * what the work throws
   */
  async run<T>(task: TokenHolder, work: () => T | Promise<T>, options: SemaphoreRunOptions = {}): Promise<T> {
    const wait = parseDuration(options.wait ?? DEFAULT_WAIT_MS, 'wait of a semaphore');
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
