import { backoff, withTimeout } from './async.js';
import type { Clock, ClockTimer } from './clock.js';

/** Milliseconds until the next pass. */
export type NextDelay = number;

export interface LoopOptions {
  readonly name: string;
  readonly clock: Clock;
  /** One pass; returns when the next one is due. */
  readonly runOnce: () => Promise<NextDelay>;
  readonly onError: (loop: string, error: unknown) => void;
  /** Longest back-off after failures in a row, in milliseconds. Default 5,000. */
  readonly longestBackoff?: number;
  /**
   * Passes are due at times of day, which follow the system's time when it is set. Default false.
   */
  readonly byTimeOfDay?: boolean;
}

/** The state of a loop; times in milliseconds. */
export interface LoopStats {
  readonly loop: string;
  /**
   * How much too late its latest pass began, if that was within the last minute, else 0: a busy
   * event loop.
   */
  readonly lag: number;
  /** How long its next pass has been due; 0 when it is not. */
  readonly overdue: number;
  /** How long the pass under way has taken so far; 0 when none is. */
  readonly busyFor: number;
  /** Passes in a row that have failed. */
  readonly failures: number;
}

/**
 * How long a stop waits for the pass under way: it may work off a backlog, or wait for a Redis that
 * hangs.
 */
const STOP_TIMEOUT_MS = 2_000;

/**
 * How long a lag is shown: for a loop that runs once, or when triggered, a late pass would show for
 * ever.
 */
const LAG_SHOWN_MS = 60_000;

/**
 * The longest timer of a loop by time of day: timers stop while a machine sleeps, and clocks are
 * set.
 */
const MAX_SLEEP_MS = 60_000;

/**
 * Runs a pass again and again, one at a time: after the delay it asked for, or at once when
 * triggered.
 */
export class Loop {
  private timer: ClockTimer | undefined;
  private current: Promise<void> | undefined;
  private triggered = false;
  private running = false;
  private failures = 0;
  /** When the next pass is due; a loop that never ran is due. */
  private due = 0;
  private beganAt = 0;
  private lastLag = 0;
  private stopping: Promise<void> | undefined;

  constructor(private readonly options: LoopOptions) {}

  /** @param delay milliseconds until the first pass */
  start(delay = 0): void {
    this.running = true;
    this.schedule(delay);
  }

  /**
   * When the next pass is due, on the loop's clock (see `byTimeOfDay`); `Infinity` = never, or
   * while one runs.
   */
  get dueAt(): number {
    return this.current ? Infinity : this.due;
  }

  stats(): LoopStats {
    const now = this.now();
    const busyFor = this.current ? Math.max(0, now - this.beganAt) : 0;
    const overdue = this.current || !this.running ? 0 : Math.max(0, now - this.due);
    const lag = now - this.beganAt < LAG_SHOWN_MS ? this.lastLag : 0;
    return { loop: this.options.name, lag, overdue, busyFor, failures: this.failures };
  }

  /** Runs a pass as soon as the one under way (if any) is over. */
  trigger(): void {
    if (!this.running) return;
    if (this.current) this.triggered = true;
    else this.schedule(0);
  }

  /**
   * Has the next pass begin after `delay` milliseconds at the latest; a pass under way decides for
   * itself.
   */
  runWithin(delay: number): void {
    if (this.running && !this.current && this.now() + delay < this.due) this.schedule(delay);
  }

  /**
   * Runs a pass now, or waits for the one under way. For tests, which drive loops that are not
   * started.
   */
  run(): Promise<void> {
    this.timer?.cancel();
    this.current ??= this.pass();
    return this.current;
  }

  /**
   * No pass begins after this; resolves when the one under way is over, or takes long to end.
   * Idempotent.
   */
  stop(): Promise<void> {
    this.running = false;
    this.timer?.cancel();
    this.stopping ??= this.passOver();
    return this.stopping;
  }

  private async passOver(): Promise<void> {
    if (this.current) await withTimeout(this.current, STOP_TIMEOUT_MS, this.options.clock);
  }

  private now(): number {
    const { clock, byTimeOfDay } = this.options;
    return byTimeOfDay ? clock.now() : clock.elapsed();
  }

  private schedule(delay: number): void {
    this.due = this.now() + delay;
    this.sleep(delay, delay);
  }

  /**
   * @param delay what the pass before asked for: more than that is left when the time was set back
   */
  private sleep(left: number, delay: number): void {
    this.timer?.cancel();
    const { clock, byTimeOfDay } = this.options;
    this.timer = clock.after(byTimeOfDay ? Math.min(left, MAX_SLEEP_MS) : left, () => {
      const rest = byTimeOfDay ? this.due - clock.now() : 0;
      if (rest > 0 && rest <= delay) this.sleep(rest, delay);
      else this.current = this.pass();
    });
  }

  private async pass(): Promise<void> {
    this.beganAt = this.now();
    this.lastLag = Math.max(0, this.beganAt - this.due);
    this.triggered = false;
    let delay: number;
    try {
      delay = await this.options.runOnce();
      this.failures = 0;
    } catch (error) {
      delay = backoff(++this.failures, { longest: this.options.longestBackoff });
      if (!this.stopping) this.options.onError(this.options.name, error); // after a stop it has no reader
    }
    this.current = undefined;
    if (this.running) this.schedule(this.triggered && this.failures === 0 ? 0 : delay);
    else this.due = this.now() + delay;
  }
}
