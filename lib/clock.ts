/** A pending timer of a {@link Clock}; `cancel` is idempotent. */
export interface ClockTimer {
  cancel(): void;
}

/**
 * The only source of time in this library. It is injected, so that tests move time instead of
 * waiting. Scripts get the time as an argument from here, as they do from Go servers. Redis's own
 * clock is not used: a server only warns at its start when it differs.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since some moment. For durations: `now` jumps when the system's time is set. */
  elapsed(): number;
  /**
   * Calls back once after `delay` milliseconds (negative counts as 0, `Infinity` never fires).
   * Delays beyond 24.8 days are honoured. A timer does not keep the process alive.
   */
  after(delay: number, callback: () => void): ClockTimer;
}

/** The longest delay `setTimeout` takes; a longer one fires at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Wall-clock time and the timers of Node. */
export class SystemClock implements Clock {
  now(): number {
    return Date.now();
  }

  elapsed(): number {
    return performance.now();
  }

  after(delay: number, callback: () => void): ClockTimer {
    let handle: NodeJS.Timeout | undefined;
    const wait = (left: number): void => {
      const step = Math.min(Math.max(left, 0), MAX_TIMEOUT_MS);
      handle = setTimeout(() => (left > step ? wait(left - step) : callback()), step);
      handle.unref();
    };
    if (delay !== Infinity) wait(delay);
    return { cancel: () => clearTimeout(handle) };
  }
}

interface ManualTimer {
  due: number;
  order: number;
  callback: () => void;
}

/** A clock that only moves when told to. Timers fire in the order of their time, then creation. */
export class ManualClock implements Clock {
  private time: number;
  private created = 0;
  private readonly timers = new Set<ManualTimer>();

  /** @param start milliseconds since the epoch, or a date; default: the real time of the call */
  constructor(start: number | Date = Date.now()) {
    this.time = Number(start);
  }

  now(): number {
    return this.time;
  }

  elapsed(): number {
    return this.time;
  }

  after(delay: number, callback: () => void): ClockTimer {
    const timer: ManualTimer = { due: this.time + Math.max(delay, 0), order: this.created++, callback };
    if (delay !== Infinity) this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  }

  /** When the next timer is due (milliseconds since the epoch), `undefined` when there is none. */
  nextDue(): number | undefined {
    let next: number | undefined;
    for (const timer of this.timers) if (next === undefined || timer.due < next) next = timer.due;
    return next;
  }

  /** Moves to `time` (never back) and fires every timer due until then, each at its own time. */
  moveTo(time: number | Date): void {
    const target = Number(time);
    for (let timer = this.takeDue(target); timer; timer = this.takeDue(target)) {
      this.time = Math.max(this.time, timer.due);
      timer.callback();
    }
    this.time = Math.max(this.time, target);
  }

  /** Moves ahead by `milliseconds`. */
  advance(milliseconds: number): void {
    this.moveTo(this.time + milliseconds);
  }

  private takeDue(until: number): ManualTimer | undefined {
    let first: ManualTimer | undefined;
    for (const timer of this.timers) {
      if (timer.due > until) continue;
      if (!first || timer.due < first.due || (timer.due === first.due && timer.order < first.order)) first = timer;
    }
    if (first) this.timers.delete(first);
    return first;
  }
}

/** Calls back once, when the first of some clocks has moved on by its delay, in milliseconds. */
export function afterFirst(delays: readonly (readonly [Clock, number])[], callback: () => void): ClockTimer {
  const timers = delays.map(([clock, delay]) => clock.after(delay, () => first()));
  const cancel = (): void => timers.forEach((timer) => timer.cancel());
  const first = (): void => {
    cancel();
    callback();
  };
  return { cancel };
}

/** For callers that wait while a test moves its clock: what passes by that clock counts, and what really passes. */
export class WaitingClock implements Clock {
  private readonly real = new SystemClock();

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now();
  }

  elapsed(): number {
    return this.clock.elapsed() + this.real.elapsed();
  }

  after(delay: number, callback: () => void): ClockTimer {
    return afterFirst(
      [
        [this.clock, delay],
        [this.real, delay],
      ],
      callback,
    );
  }
}

/** The greatest distance of a Date from the epoch. */
const MAX_DATE_MS = 8.64e15;

/**
 * A time from Redis as a Date. Redis and Go allow times beyond what a Date can hold (scores up to
 * ±1e308 and ±inf); these become the last possible Date.
 *
 * @param milliseconds since the epoch
 */
export const toDate = (milliseconds: number): Date =>
  new Date(Math.min(Math.max(milliseconds, -MAX_DATE_MS), MAX_DATE_MS));

/** Whole seconds since the epoch, rounded down: asynq's "now" in scores, counters and messages. */
export const floorSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);

/** Whole seconds, rounded up: for times before which something must not happen. */
export const ceilSeconds = (milliseconds: number): number => Math.ceil(milliseconds / 1000);
