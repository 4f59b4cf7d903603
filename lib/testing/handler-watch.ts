// The real timers, even when a test fakes the globals.
import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';
import { finishesWithin, type Timers } from '../async.js';
import { TestingError } from '../errors.js';
import type { ActiveTask, ByHand } from '../server/index.js';
import { stillRunning } from './testing.messages.js';

/** How often, in real time, handlers that are known to wait are checked. */
const CHECK_INTERVAL_MS = 1;
/**
 * After this much real time a wait that nothing can end is an error: before the test's own
 * time-out.
 */
const HOPELESS_AFTER_MS = 3_000;

/**
 * Detects handlers that wait for the clock. A handler may do real work, which takes real time, or
 * wait for its signal, which comes when the clock reaches its deadline. These look the same: a
 * handler that uses its signal and has not settled after some real time counts as waiting.
 */
export class HandlerWatch {
  private readonly parked = new WeakSet<ActiveTask>();

  /** @param patience milliseconds of real time that a handler with a signal may take */
  constructor(
    private readonly server: ByHand,
    private readonly patience: number,
  ) {}

  /**
   * Resolves when no handler runs, or every handler that does waits for its signal.
   *
   * @param takeMore claims more tasks, as handlers that do not end may wait for these; returns how many
   * @throws TestingError
   */
  async settle(takeMore: () => Promise<number>): Promise<void> {
    const quiet = this.server.whenQuiet();
    for (let stillSince = performance.now(), before = -1; ;) {
      const { running } = this.server;
      if (running.length !== before) stillSince = performance.now(); // something happened
      before = running.length;
      if (running.length > 0 && this.server.isSettled && this.allWait(running, stillSince)) return;
      if (await finishesWithin(quiet, this.areParked(running) ? CHECK_INTERVAL_MS : this.patience / 10, REAL_TIME))
        return;
      this.refuseStopped(stillSince);
      if (performance.now() - stillSince >= this.patience && (await takeMore()) > 0) stillSince = performance.now();
    }
  }

  /**
   * Waits for the work, and fails when only the clock can end it, which stands still.
   *
   * @throws TestingError
   */
  async outlast<T>(work: Promise<T>): Promise<T> {
    const longest = Math.max(HOPELESS_AFTER_MS, this.patience);
    for (let stillSince = performance.now(), before = -1; ;) {
      if (await finishesWithin(work, Math.min(longest, 50), REAL_TIME)) return work;
      const running = this.server.running;
      if (running.length !== before || !running.every(({ signalTaken }) => signalTaken)) stillSince = performance.now();
      before = running.length;
      if (performance.now() - stillSince >= longest) throw new TestingError(stillRunning(running));
    }
  }

  /** Earliest deadline of the handlers that wait, in milliseconds since the epoch. */
  nextDeadline(): number | undefined {
    const deadlines = this.server.running.filter((task) => this.parked.has(task)).map(({ deadlineAt }) => deadlineAt);
    return deadlines.length === 0 ? undefined : Math.min(...deadlines);
  }

  private allWait(running: readonly ActiveTask[], stillSince: number): boolean {
    if (this.areParked(running)) return true;
    if (!running.every(waits) || performance.now() - stillSince < this.patience) return false;
    for (const task of running) this.parked.add(task);
    return true;
  }

  private areParked(running: readonly ActiveTask[]): boolean {
    return running.length > 0 && running.every((task) => waits(task) && this.parked.has(task));
  }

  /** Fails for a handler that ignores its aborted signal: no clock ends it. */
  private refuseStopped(stillSince: number): void {
    if (performance.now() - stillSince < Math.max(HOPELESS_AFTER_MS, this.patience)) return;
    const stopped = this.server.running.filter(({ aborted }) => aborted);
    if (stopped.length > 0) throw new TestingError(stillRunning(stopped));
  }
}

const waits = ({ signalTaken, aborted }: ActiveTask): boolean => signalTaken && !aborted;

/** Real time; unlike those of SystemClock, its timers keep the process alive. */
export const REAL_TIME: Timers = {
  after: (delay, callback) => {
    const timer = setTimeout(callback, delay);
    return { cancel: () => clearTimeout(timer) };
  },
};
