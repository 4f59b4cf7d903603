import type { Clock } from '../../clock.js';

/** The least, in milliseconds. */
const MIN_ALLOWANCE_MS = 2;
/** What a late reply makes of it, and one that came in time: so about one of 50 is late. */
const GROWTH = 1.3;
const DECAY = 0.995;

/** A call that counts starts. */
export interface CountedCall {
  /** For how many milliseconds after the call its tasks may wait for their start. */
  readonly allowance: number;
  /** When it was made, and until when its tasks may start, by `Clock.elapsed`. */
  readonly sentAt: number;
  readonly startBy: number;
}

/**
 * For how long a task whose start a rate has counted may wait for it. A rate counts a start when Redis is asked; its handler starts when the
 * reply has come, and the event loop has come to it. So it is counted at the latest time at which it may start, and is not started
 * later. What is allowed follows from how long replies take: a long allowance leaves some of the rate unused, a short one wastes starts.
 */
export class StartAllowance {
  private milliseconds: number;

  /** @param first milliseconds; 0: calls take no time, and nothing is late */
  constructor(
    private readonly clock: Pick<Clock, 'elapsed'>,
    private readonly first: number,
  ) {
    this.milliseconds = first;
  }

  /** A call is made now. */
  begin(): CountedCall {
    const sentAt = this.clock.elapsed();
    if (this.first === 0) return { allowance: 0, sentAt, startBy: Infinity };
    const whole = Math.ceil(this.milliseconds);
    return { allowance: whole + 1, sentAt, startBy: sentAt + whole }; // clocks give whole milliseconds
  }

  /** Its reply has come, and its tasks are about to start. */
  observe({ sentAt }: CountedCall): void {
    if (this.first === 0) return;
    const took = this.clock.elapsed() - sentAt;
    const next = took > Math.ceil(this.milliseconds) ? this.milliseconds * GROWTH : this.milliseconds * DECAY;
    this.milliseconds = Math.max(MIN_ALLOWANCE_MS, next);
  }

  isOver(startBy: number): boolean {
    return startBy !== Infinity && this.clock.elapsed() > startBy;
  }
}
