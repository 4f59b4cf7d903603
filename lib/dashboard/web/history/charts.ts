import { bytes, compact, duration, rate } from '../text/format.js';
import { niceTime } from '../ui/chart-geometry.js';

export interface HistoryChart {
  /** The name of the query in the REST API. */
  key: string;
  title: string;
  unit: string;
  /** The metric that Prometheus needs for it. */
  metric: string;
  figure: 'sum' | 'highest';
  format: (value: number) => string;
  nice?: (value: number) => number;
}

const share = (value: number): string => `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
const milliseconds = (seconds: number): number => niceTime(seconds * 1000) / 1000;

/** In the order of display: what is done, what waits, what it costs. */
export const CHARTS: readonly HistoryChart[] = [
  {
    key: 'tasks_processed_per_second',
    title: 'Processed',
    unit: 'tasks/s',
    figure: 'sum',
    format: rate,
    metric: 'asynq_tasks_processed_total',
  },
  {
    key: 'tasks_failed_per_second',
    title: 'Failed',
    unit: 'tasks/s',
    figure: 'sum',
    format: rate,
    metric: 'asynq_tasks_failed_total',
  },
  {
    key: 'error_rate',
    title: 'Error rate',
    unit: 'highest',
    figure: 'highest',
    format: share,
    metric: 'asynq_tasks_failed_total',
  },
  {
    key: 'queue_latency_seconds',
    title: 'Latency',
    unit: 'longest',
    figure: 'highest',
    format: duration,
    metric: 'asynq_queue_latency_seconds',
    nice: milliseconds,
  },
  {
    key: 'queue_size',
    title: 'Size',
    unit: 'tasks',
    figure: 'sum',
    format: compact,
    metric: 'asynq_queue_size',
  },
  {
    key: 'pending_tasks_by_queue',
    title: 'Pending',
    unit: 'tasks',
    figure: 'sum',
    format: compact,
    metric: 'asynq_tasks_enqueued_total',
  },
  {
    key: 'retry_tasks_by_queue',
    title: 'Retry',
    unit: 'tasks',
    figure: 'sum',
    format: compact,
    metric: 'asynq_tasks_enqueued_total',
  },
  {
    key: 'archived_tasks_by_queue',
    title: 'Archived',
    unit: 'tasks',
    figure: 'sum',
    format: compact,
    metric: 'asynq_tasks_enqueued_total',
  },
  {
    key: 'queue_memory_usage_approx_bytes',
    title: 'Memory',
    unit: 'about',
    figure: 'sum',
    format: bytes,
    metric: 'asynq_queue_memory_usage_approx_bytes',
  },
];
