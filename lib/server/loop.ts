import type { Clock, ClockTimer } from '../clock.js';

/** Milliseconds until the next pass. */
export type NextDelay = number;

export interface LoopOptions {
  readonly name: string;
  readonly clock: Clock;
  /** One pass; answers when the next one is to come. */
  readonly runOnce: () => Promise<NextDelay>;
  readonly onError: (loop: string, error: unknown) => void;
  /** Longest back-off after failures in a row, in milliseconds. Default 5,000. */
  readonly longestBackoff?: number;
}

/** How a loop stands; times in milliseconds. */
export interface LoopStats {
  readonly loop: string;
  /** How much later than planned its latest pass began, if that was within the last minute, else 0: a busy event loop. */
  readonly lag: number;
  /** How long its next pass has been due; 0 when it is not. */
  readonly overdue: number;
  /** How long the pass under way has taken so far; 0 when none is. */
  readonly busyFor: number;
  /** Passes in a row that have failed. */
  readonly failures: number;
}

/** Milliseconds a stop waits for the pass under way: it may work off a backlog, or wait for a Redis that hangs. */
const LONGEST_STOP = 2_000;

/** Milliseconds a lag is told: of loops that run once, or when triggered, a late pass would show for ever. */
const LAG_SHOWN = 60_000;

/** Exponential from 100 ms with full jitter in its upper half: 50–100, 100–200 … up to `longest` milliseconds. */
export function backoff(failures: number, longest = 5_000, random: () => number = Math.random): number {
  const full = Math.min(longest, 100 * 2 ** Math.min(failures - 1, 20));
  return full / 2 + (full / 2) * random();
}

/** Runs a pass again and again, one at a time: after the delay it asked for, or at once when triggered. */
export class Loop {
  private timer: ClockTimer | undefined;
  private current: Promise<void> | undefined;
  private triggered = false;
  private running = false;
  private failures = 0;
  /** When the next pass is due, and when the one under way began, by the clock's `elapsed`. */
  private dueAt = Infinity;
  private beganAt = 0;
  private lastLag = 0;
  private stopping: Promise<void> | undefined;

  constructor(private readonly options: LoopOptions) {}

  /** @param delay milliseconds until the first pass */
  start(delay = 0): void {
    this.running = true;
    this.schedule(delay);
  }

  stats(): LoopStats {
    const now = this.options.clock.elapsed();
    const busyFor = this.current ? Math.max(0, now - this.beganAt) : 0;
    const overdue = this.current || !this.running ? 0 : Math.max(0, now - this.dueAt);
    const lag = now - this.beganAt < LAG_SHOWN ? this.lastLag : 0;
    return { loop: this.options.name, lag, overdue, busyFor, failures: this.failures };
  }

  /** Runs a pass as soon as the one under way (if any) is over. */
  trigger(): void {
    if (!this.running) return;
    if (this.current) this.triggered = true;
    else this.schedule(0);
  }

  /** No pass begins after this; resolves when the one under way is over, or takes long to end. Idempotent. */
  stop(): Promise<void> {
    this.running = false;
    this.timer?.cancel();
    this.stopping ??= this.passOver();
    return this.stopping;
  }

  private async passOver(): Promise<void> {
    if (!this.current) return;
    let limit: ClockTimer | undefined;
    const passed = new Promise<void>((resolve) => (limit = this.options.clock.after(LONGEST_STOP, resolve)));
    await Promise.race([this.current, passed]);
    limit?.cancel();
  }

  private schedule(delay: number): void {
    this.timer?.cancel();
    const { clock } = this.options;
    this.dueAt = clock.elapsed() + delay;
    this.timer = clock.after(delay, () => {
      this.beganAt = clock.elapsed();
      this.lastLag = Math.max(0, this.beganAt - this.dueAt);
      this.current = this.pass();
    });
  }

  private async pass(): Promise<void> {
    this.triggered = false;
    let delay: number;
    try {
      delay = await this.options.runOnce();
      this.failures = 0;
    } catch (error) {
      delay = backoff(++this.failures, this.options.longestBackoff);
      if (this.running) this.options.onError(this.options.name, error); // when stopped, nobody waits for it
    }
    this.current = undefined;
    if (this.running) this.schedule(this.triggered && this.failures === 0 ? 0 : delay);
  }
}
