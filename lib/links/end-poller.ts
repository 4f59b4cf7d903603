import { mapConcurrent } from '../async.js';
import { afterFirst, type Clock, type ClockTimer, SystemClock } from '../clock.js';
import { ClosedError } from '../errors.js';

const SHORTEST_DELAY_MS = 20;
const LONGEST_DELAY_MS = 1_000;
/** Each delay is this many times as long as the one before. */
const GROWTH = 1.5;
const MAX_CALLS_AT_ONCE = 16;

/** What is waited for: runs, or batches. */
export interface Polled<T> {
  /** `a run`, for messages. */
  readonly what: string;
  /** `undefined` when there is none. */
  read(queue: string, id: string): Promise<T | undefined>;
  hasEnded(state: T): boolean;
  missing(queue: string, id: string): Error;
  /** @param within the timeout, for people: `60 s` */
  late(queue: string, id: string, within: string, options: ErrorOptions): Error;
}

interface Wait<T> {
  readonly timer: ClockTimer;
  readonly timeout: number;
  resolve(state: T): void;
  reject(error: Error): void;
}

/** A run or a batch that somebody waits for. */
interface Awaited<T> {
  readonly queue: string;
  readonly id: string;
  readonly waits: Set<Wait<T>>;
  /** By the clock's `elapsed`. */
  dueAt: number;
  delay: number;
  asking: boolean;
  /** The error of the last question, for a wait that ends without a reply. */
  error: unknown;
}

/**
 * Asks for the state of runs or batches until they end: each once, however many wait for it, first
 * often, then once a second, and 16 at a time. In a test, whose clock stands still while tasks run:
 * when the test moves its clock, be it by nothing, and every 20 ms of real time.
 */
export class EndPoller<T> {
  private readonly awaited = new Map<string, Awaited<T>>();
  private timer: ClockTimer | undefined;
  private timerAt = Infinity;
  private askingSoon = false;
  private closed = false;
  private readonly clock: Clock;
  /** Real time, where `clock` is moved by a test: a wait ends by the first of both. */
  private readonly real: Clock | undefined;

  constructor(
    private readonly polled: Polled<T>,
    { clock, manual }: { readonly clock: Clock; readonly manual: boolean },
  ) {
    this.clock = clock;
    this.real = manual ? new SystemClock() : undefined;
  }

  /**
   * Resolves when it has ended. Errors of the store are no end: it asks again.
   *
   * @param timeout milliseconds
   * @throws `late` and `missing` of what is waited for; ClosedError
   */
  ended(queue: string, id: string, timeout: number): Promise<T> {
    if (this.closed) return Promise.reject(this.closedError());
    return new Promise((resolve, reject) => {
      const key = `${queue}\n${id}`;
      let awaited = this.awaited.get(key);
      if (!awaited) {
        const fresh = {
          waits: new Set<Wait<T>>(),
          dueAt: this.clock.elapsed(),
          delay: SHORTEST_DELAY_MS,
          asking: false,
        };
        this.awaited.set(key, (awaited = { queue, id, ...fresh, error: undefined }));
      }
      const { waits } = awaited;
      const timer = this.after(timeout, timeout, () => this.giveUp(awaited, wait));
      const wait: Wait<T> = { timer, timeout, resolve, reject };
      waits.add(wait);
      this.askSoon();
    });
  }

  /** Rejects all who wait. */
  close(): void {
    this.closed = true;
    this.timer?.cancel();
    for (const awaited of this.awaited.values()) this.finish(awaited, (wait) => wait.reject(this.closedError()));
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

  private async askFor(awaited: Awaited<T>): Promise<void> {
    const { queue, id } = awaited;
    try {
      const state = await this.polled.read(queue, id);
      if (!state) return this.finish(awaited, (wait) => wait.reject(this.polled.missing(queue, id)));
      if (this.polled.hasEnded(state)) return this.finish(awaited, (wait) => wait.resolve(state));
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
    return afterFirst(
      [
        [this.clock, delay],
        [this.real, realDelay],
      ],
      callback,
    );
  }

  private giveUp(awaited: Awaited<T>, wait: Wait<T>): void {
    awaited.waits.delete(wait);
    if (awaited.waits.size === 0) this.awaited.delete(`${awaited.queue}\n${awaited.id}`);
    const within = `${Math.round(wait.timeout) / 1000} s`; // what is left of a timeout is no whole number
    wait.reject(this.polled.late(awaited.queue, awaited.id, within, { cause: awaited.error }));
  }

  private finish(awaited: Awaited<T>, settle: (wait: Wait<T>) => void): void {
    this.awaited.delete(`${awaited.queue}\n${awaited.id}`);
    for (const wait of awaited.waits) {
      wait.timer.cancel();
      settle(wait);
    }
  }

  private closedError(): ClosedError {
    return new ClosedError(`the client was closed while ${this.polled.what} was waited for`);
  }
}
