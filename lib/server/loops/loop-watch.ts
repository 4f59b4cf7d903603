import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { clearInterval, setInterval } from 'node:timers'; // the real ones, also where a test fakes the global
import type { LeaseGuard } from '../../broker/lease-guards.js';
import type { AsynqEvents } from '../../events/events.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

const BEAT_INTERVAL_MS = 500;
/** An event loop that stood still for so long is reported. */
const BLOCKED_MS = 1_000;
/** How finely delays are measured: Node looks so often. */
const RESOLUTION_MS = 50;
/** Delays are those of this time, and of the one before. */
const WINDOW_MS = 30_000;
/** How many types a report names. */
const MOST_TYPES = 10;

/** How late the event loop was lately, in milliseconds. */
export interface LoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const NO_DELAY: LoopDelay = { p50: 0, p99: 0, max: 0 };

export interface LoopWatchOptions {
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly guard: LeaseGuard | undefined;
}

/** Notices when handlers keep the event loop busy, and tells the guard of the leases that it goes on. In real time, whatever the clock. */
export class LoopWatch {
  private timer: NodeJS.Timeout | undefined;
  private histogram: IntervalHistogram | undefined;
  private last = NO_DELAY;
  private beatAt = 0;
  private windowAt = 0;
  /** The longest delay of a beat in this window: Node begins to measure with its first look. */
  private latest = 0;

  constructor(private readonly options: LoopWatchOptions) {}

  start(): void {
    this.beatAt = this.windowAt = performance.now();
    this.timer = setInterval(() => this.beat(), BEAT_INTERVAL_MS).unref();
    this.histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.histogram.enable();
    this.options.guard?.beat();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.histogram?.disable();
    await this.options.guard?.close();
  }

  get delay(): LoopDelay {
    const { histogram, last } = this;
    if (!histogram) return last;
    const now = delayOf(histogram, this.latest);
    return { p50: Math.max(now.p50, last.p50), p99: Math.max(now.p99, last.p99), max: Math.max(now.max, last.max) };
  }

  private beat(): void {
    const now = performance.now();
    const late = now - this.beatAt - BEAT_INTERVAL_MS;
    this.beatAt = now;
    this.latest = Math.max(this.latest, late);
    this.options.guard?.beat();
    if (late >= BLOCKED_MS) this.report(late);
    if (now - this.windowAt < WINDOW_MS) return;
    this.windowAt = now;
    this.last = delayOf(this.histogram!, this.latest);
    this.latest = 0;
    this.histogram!.reset();
  }

  /** A task that has kept it busy is held until its end is stored. */
  private report(milliseconds: number): void {
    const types = new Set(Array.from(this.options.queues.held(), ({ type }) => type));
    if (types.size === 0) return;
    this.options.events.emit('loopBlocked', {
      milliseconds: Math.round(milliseconds),
      types: [...types].slice(0, MOST_TYPES),
    });
  }
}

/** Node measures from one look to the next. @param latest milliseconds */
function delayOf(histogram: IntervalHistogram, latest: number): LoopDelay {
  if (histogram.count === 0) return { ...NO_DELAY, max: latest };
  const milliseconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  return {
    p50: milliseconds(histogram.percentile(50)),
    p99: milliseconds(histogram.percentile(99)),
    max: Math.max(latest, milliseconds(histogram.max)),
  };
}
