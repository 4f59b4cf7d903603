import type { Clock } from '../../clock.js';
import { ClosedError } from '../../errors.js';
import { backoff, withTimeout } from '../../async.js';
import { QUEUE_REPLY_TIMEOUT_MS } from '../fetching/queue-state.js';

export interface Passes<T> {
  /** By queue. */
  readonly results: ReadonlyMap<string, T>;
  /** Milliseconds until a queue that failed or hangs is due again; `Infinity` when all is well. */
  readonly retryIn: number;
}

/**
 * Runs the work of a loop for each queue. A queue that fails or hangs does not hold up the others:
 * it is left out until it replies, or until its own back-off is over.
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

  /** @throws the first error when all queues failed: then the loop backs off */
  async run(queues: readonly string[]): Promise<Passes<T>> {
    for (const queue of this.failed.keys()) if (!queues.includes(queue)) this.failed.delete(queue);
    const now = this.clock.elapsed();
    const due = queues.filter((queue) => !this.underWay.has(queue) && (this.failed.get(queue)?.dueAt ?? 0) <= now);
    const results = new Map<string, T>();
    const errors: unknown[] = [];
    const open = { waited: true };
    const passes = Promise.all(due.map((queue) => this.pass(queue, results, errors, open)));
    await withTimeout(passes, QUEUE_REPLY_TIMEOUT_MS, this.clock);
    open.waited = false;
    if (errors.length > 0 && errors.length === queues.length) {
      this.failed.clear();
      throw errors[0];
    }
    errors.forEach(this.onError);
    return { results, retryIn: this.retryIn() };
  }

  private async pass(
    queue: string,
    results: Map<string, T>,
    errors: unknown[],
    open: { readonly waited: boolean },
  ): Promise<void> {
    this.underWay.add(queue);
    try {
      results.set(queue, await this.work(queue));
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

  /** A queue whose work is under way is checked again later, whatever its failures before. */
  private retryIn(): number {
    let delay = this.underWay.size > 0 ? QUEUE_REPLY_TIMEOUT_MS : Infinity;
    for (const [queue, { dueAt }] of this.failed) {
      if (!this.underWay.has(queue)) delay = Math.min(delay, Math.max(1, dueAt - this.clock.elapsed()));
    }
    return delay;
  }
}
