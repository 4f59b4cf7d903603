import type { Clock } from '../clock.js';
import type { QueueInfo } from '../inspector/views.js';
import type { QueueOverview } from './queue-overview.js';

export interface QueueSample {
  readonly pending: number;
  readonly active: number;
  readonly scheduled: number;
  readonly retry: number;
  readonly archived: number;
  readonly completed: number;
  readonly aggregating: number;
  readonly waiting: number;
  readonly held: number;
  readonly processed_total: number;
  readonly failed_total: number;
  /** Milliseconds. */
  readonly latency_ms: number;
}

export interface Sample {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly queues: Readonly<Record<string, QueueSample>>;
}

const KEPT_MS = 15 * 60_000;
/**
 * Whoever asks for what came after a later time than this has it from before the clock was set
 * back. Clocks of processes behind one address differ by less.
 */
const MAX_AHEAD_MS = 60_000;
/** In all samples together: some 10 MB. */
const MAX_QUEUE_SAMPLES = 50_000;

/**
 * Keeps samples of all queues for the last minutes, for charts. A sample is taken on request, at
 * most one per interval: nothing is read while nobody looks, and ten clients cost as much as one.
 * Samples are numbered by time, so that a client that reaches several processes behind one address
 * gets no gaps.
 */
export class Sampler {
  private samples: Sample[] = [];
  private taking: Promise<void> | undefined;

  /** @param interval milliseconds */
  constructor(
    private readonly overview: QueueOverview,
    private readonly clock: Clock,
    private readonly interval: number,
  ) {}

  /** Samples after `since` (milliseconds since the epoch), oldest first. */
  async after(since: number): Promise<readonly Sample[]> {
    const now = this.clock.now();
    this.samples = this.samples.filter(({ at }) => at <= now); // the clock may have been set back
    const last = this.samples.at(-1)?.at ?? -Infinity;
    if (this.periodOf(now) > this.periodOf(last)) {
      this.taking ??= this.take().finally(() => (this.taking = undefined));
      await this.taking;
    }
    const from = since > now + MAX_AHEAD_MS ? 0 : since;
    return this.samples.filter(({ at }) => at > from);
  }

  private periodOf(time: number): number {
    return Math.floor(time / this.interval);
  }

  private async take(): Promise<void> {
    const states = await this.overview.all();
    const readable = states.filter((state): state is QueueInfo => !('error' in state));
    const at = this.clock.now();
    this.samples.push({ at, queues: Object.fromEntries(readable.map((info) => [info.queue, toSample(info)])) });
    const most = Math.max(2, Math.floor(MAX_QUEUE_SAMPLES / Math.max(1, readable.length)));
    this.samples = this.samples.filter((sample) => sample.at > at - KEPT_MS).slice(-most);
  }
}

const toSample = (info: QueueInfo): QueueSample => ({
  pending: info.pending,
  active: info.active,
  scheduled: info.scheduled,
  retry: info.retry,
  archived: info.archived,
  completed: info.completed,
  aggregating: info.aggregating,
  waiting: info.waiting,
  held: info.held,
  processed_total: info.processedTotal,
  failed_total: info.failedTotal,
  latency_ms: info.latency,
});
