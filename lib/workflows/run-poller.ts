import { mapConcurrent } from '../async.js';
import type { RunSummary, WorkflowsRole } from '../broker/workflows.js';
import type { Clock, ClockTimer } from '../clock.js';
import { ClosedError, WorkflowNotFoundError, WorkflowTimeoutError } from '../errors.js';

const SHORTEST_DELAY_MS = 20;
const LONGEST_DELAY_MS = 1_000;
/** Each delay is this many times as long as the one before. */
const GROWTH = 1.5;
const MAX_CALLS_AT_ONCE = 16;

interface Wait {
  readonly timer: ClockTimer;
  readonly timeout: number;
  resolve(summary: RunSummary): void;
  reject(error: Error): void;
}

/** A run that somebody waits for. */
interface Awaited {
  readonly queue: string;
  readonly id: string;
  readonly waits: Set<Wait>;
  /** By the clock's `elapsed`. */
  dueAt: number;
  delay: number;
  asking: boolean;
  /** The error of the last question, for a wait that ends without a reply. */
  error: unknown;
}

/**
 * Asks for the state of runs until they end: each run once, however many wait for it, first often,
 * then once a second, and 16 at a time. In a test, whose clock stands still while steps run: when
 * the test moves its clock, be it by nothing, and every 20 ms of real time.
 */
export class RunPoller {
  private readonly awaited = new Map<string, Awaited>();
  private timer: ClockTimer | undefined;
  private timerAt = Infinity;
  private askingSoon = false;
  private closed = false;

  constructor(
    private readonly workflows: Pick<WorkflowsRole, 'summary'>,
    private readonly clock: Clock,
    /** Real time, where `clock` is moved by a test: what is waited for ends by the first of both. */
    private readonly real?: Clock,
  ) {}

  /**
   * Resolves when the run has ended. Errors of the store are no end: it asks again.
   *
   * @param timeout milliseconds
   * @throws WorkflowTimeoutError; WorkflowNotFoundError; ClosedError
   */
  ended(queue: string, id: string, timeout: number): Promise<RunSummary> {
    if (this.closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const key = `${queue}\n${id}`;
      let awaited = this.awaited.get(key);
      if (!awaited) {
        const fresh = { waits: new Set<Wait>(), dueAt: this.clock.elapsed(), delay: SHORTEST_DELAY_MS, asking: false };
        this.awaited.set(key, (awaited = { queue, id, ...fresh, error: undefined }));
      }
      const { waits } = awaited;
      const timer = this.after(timeout, timeout, () => this.giveUp(awaited, wait));
      const wait: Wait = { timer, timeout, resolve, reject };
      waits.add(wait);
      this.askSoon();
    });
  }

  /** Rejects all who wait. */
  close(): void {
    this.closed = true;
    this.timer?.cancel();
    for (const awaited of this.awaited.values()) this.finish(awaited, (wait) => wait.reject(closedError()));
  }

  /** Once for all who begin to wait in one go. */
  private askSoon(): void {
    if (this.askingSoon) return;
    this.askingSoon = true;
    queueMicrotask(() => {
      this.askingSoon = false;
      void this.ask();
    });
  }

  private async ask(): Promise<void> {
    const now = this.clock.elapsed();
    const due = [...this.awaited.values()].filter(({ asking, dueAt }) => !asking && dueAt <= now);
    for (const awaited of due) awaited.asking = true;
    await mapConcurrent(due, MAX_CALLS_AT_ONCE, (awaited) => this.askFor(awaited));
    this.schedule();
  }

  private async askFor(awaited: Awaited): Promise<void> {
    const { queue, id } = awaited;
    try {
      const summary = await this.workflows.summary(queue, id);
      if (!summary) return this.finish(awaited, (wait) => wait.reject(new WorkflowNotFoundError(queue, id)));
      if (summary.state !== 'running') return this.finish(awaited, (wait) => wait.resolve(summary));
      awaited.error = undefined;
    } catch (error) {
      awaited.error = error;
    }
    awaited.asking = false;
    awaited.dueAt = this.clock.elapsed() + (this.real ? 0 : awaited.delay);
    awaited.delay = Math.min(awaited.delay * GROWTH, LONGEST_DELAY_MS);
  }

  private schedule(): void {
    const idle = [...this.awaited.values()].filter(({ asking }) => !asking);
    const next = idle.reduce((soonest, { dueAt }) => Math.min(soonest, dueAt), Infinity);
    if (this.closed || next === Infinity || (this.timer && this.timerAt <= next)) return;
    this.timer?.cancel();
    this.timerAt = next;
    this.timer = this.after(next - this.clock.elapsed(), SHORTEST_DELAY_MS, () => {
      this.timer = undefined;
      void this.ask();
    });
  }

  /** @param realDelay by real time, where a test moves the clock */
  private after(delay: number, realDelay: number, callback: () => void): ClockTimer {
    if (!this.real) return this.clock.after(delay, callback);
    const timers = [this.clock.after(delay, () => first()), this.real.after(realDelay, () => first())];
    const cancel = (): void => timers.forEach((timer) => timer.cancel());
    const first = (): void => {
      cancel();
      callback();
    };
    return { cancel };
  }

  private giveUp(awaited: Awaited, wait: Wait): void {
    awaited.waits.delete(wait);
    if (awaited.waits.size === 0) this.awaited.delete(`${awaited.queue}\n${awaited.id}`);
    const seconds = Math.round(wait.timeout) / 1000; // what is left of a timeout is no whole number
    const message =
      `run "${awaited.id}" of queue "${awaited.queue}" has not ended within ${seconds} s; it goes on: wait again, or ` +
      'look at its steps with AsynqInspector.getWorkflow()';
    wait.reject(new WorkflowTimeoutError(message, { cause: awaited.error }));
  }

  private finish(awaited: Awaited, tell: (wait: Wait) => void): void {
    this.awaited.delete(`${awaited.queue}\n${awaited.id}`);
    for (const wait of awaited.waits) {
      wait.timer.cancel();
      tell(wait);
    }
  }
}

const closedError = (): ClosedError => new ClosedError('the client was closed while a run was waited for');
