import { parseGoDuration } from '../wire/go-duration.js';
import type { Schedule } from './schedule.js';

const NANOS_PER_SECOND = 1_000_000_000n;

/**
 * `@every`: a fixed delay after the last time, not aligned to the clock. At least one second;
 * fractions of a second are dropped.
 */
export class EverySchedule implements Schedule {
  /** Milliseconds. */
  readonly delay: number;

  /** @throws InvalidOptionError with Go's text when it is not a Go duration */
  constructor(duration: string) {
    const seconds = parseGoDuration(duration) / NANOS_PER_SECOND;
    this.delay = seconds < 1n ? 1000 : Number(seconds) * 1000;
  }

  next(after: number): number {
    return Math.floor(after / 1000) * 1000 + this.delay;
  }
}
