import type { Clock } from '../../clock.js';
import { ClosedError } from '../../errors.js';
import { backoff, withTimeout } from '../../async.js';
import { QUEUE_REPLY_TIMEOUT_MS } from '../fetching/queue-state.js';

export interface Passes<T> {
  /** By queue. */
  readonly answers: ReadonlyMap<string, T>;
  /** Milliseconds until a queue that failed or hangs is due again; `Infinity` when all is well. */
  readonly again: number;
}

/**
 * One piece of work of a loop for each queue, so that a queue that fails or hangs holds up no
 * other: it is left out until it has answered, or until its own back-off is over.
 */
export class QueuePasses<T> {
  private readonly underWay = new Set<string>();
  private readonly failed = new Map<string, { failures: number; dueAt: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly work: (queue: string) => Promise<T>,
    /** A queue failed, and others did not. */
    private readonly onError: (error: unknown) => void,
  ) {}

  /** @throws what the first queue threw, when all failed: the loop backs off then */
  async run(queues: readonly string[]): Promise<Passes<T>> {
    for (const queue of this.failed.keys()) if (!queues.includes(queue)) this.failed.delete(queue);
    const now = this.clock.elapsed();
    const due = queues.filter((queue) => !this.underWay.has(queue) && (this.failed.get(queue)?.dueAt ?? 0) <= now);
    const answers = new Map<string, T>();
    const errors: unknown[] = [];
    const open = { waited: true };
    const passes = Promise.all(due.map((queue) => this.pass(queue, answers, errors, open)));
    await withTimeout(passes, QUEUE_REPLY_TIMEOUT_MS, this.clock);
    open.waited = false;
    if (errors.length > 0 && errors.length === queues.length) {
      this.failed.clear();
      throw errors[0];
    }
    errors.forEach(this.onError);
    return { answers, again: this.again() };
  }

  private async pass(
    queue: string,
    answers: Map<string, T>,
    errors: unknown[],
    open: { readonly waited: boolean },
  ): Promise<void> {
    this.underWay.add(queue);
    try {
      answers.set(queue, await this.work(queue));
      this.failed.delete(queue);
    } catch (error) {
      const failures = (this.failed.get(queue)?.failures ?? 0) + 1;
      this.failed.set(queue, { failures, dueAt: this.clock.elapsed() + backoff(failures) });
      if (open.waited) errors.push(error);
      else if (!(error instanceof ClosedError)) this.onError(error);
    } finally {
      this.underWay.delete(queue);
    }
  }

  /** A queue that is being asked is looked at again later, whatever it failed at before. */
  private again(): number {
    let again = this.underWay.size > 0 ? QUEUE_REPLY_TIMEOUT_MS : Infinity;
    for (const [queue, { dueAt }] of this.failed) {
      if (!this.underWay.has(queue)) again = Math.min(again, Math.max(1, dueAt - this.clock.elapsed()));
    }
    return again;
  }
}
