/** What one run in a process of its own prints as JSON. */
export interface Measurement {
  /** Tasks per second, or milliseconds for latencies. */
  readonly value: number;
  /** Milliseconds of CPU per 1,000 tasks, of the measured process. */
  readonly cpu?: number;
  /** Resident megabytes of the measured process at the end. */
  readonly rss?: number;
  /** Microseconds of processor time of Redis per task. */
  readonly redis?: number;
  /** Bytes in Redis per waiting task. */
  readonly bytes?: number;
  /** 95th percentile, for latencies. */
  readonly p95?: number;
}
