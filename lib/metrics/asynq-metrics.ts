import type { QueueInfo } from '../inspector/views.js';
import type { MetricDefinition } from './definition.js';
import type { Sample } from './sample.js';

/** The states of asynq's exporter; tasks in groups are not among them. */
const STATES = ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed'] as const;

const ofQueue = (
  name: string,
  help: string,
  type: 'counter' | 'gauge',
  valueOf: (info: QueueInfo) => number,
): MetricDefinition => ({
  name,
  help,
  type,
  labels: ['queue'],
  merge: 'max',
  read: async (source) =>
    (await source.read()).queues.map((info) => ({ labels: { queue: info.queue }, value: valueOf(info) })),
});

/** As Go counts them: a task that is held is a retry. */
const tasksByState = ({ queue, ...numbers }: QueueInfo): Sample[] =>
  STATES.map((state) => ({
    labels: { queue, state },
    value: state === 'retry' ? numbers.retry + numbers.held : numbers[state],
  }));

/**
 * The metrics of asynq's exporter (x/metrics, tools/metrics_exporter, asynqmon), with its names,
 * types and labels (wire-protocol 8.3).
 */
export const ASYNQ_METRICS: readonly MetricDefinition[] = [
  {
    name: 'asynq_tasks_enqueued_total',
    help: 'Number of tasks in the queue, by state.',
    type: 'gauge',
    labels: ['queue', 'state'],
    merge: 'max',
    read: async (source) => (await source.read()).queues.flatMap(tasksByState),
  },
  ofQueue('asynq_queue_size', 'Number of tasks in the queue, in all states.', 'gauge', ({ size }) => size),
  ofQueue(
    'asynq_queue_latency_seconds',
    'Seconds the task that is next to run has been pending.',
    'gauge',
    ({ latency }) => latency / 1000,
  ),
  ofQueue(
    'asynq_queue_memory_usage_approx_bytes',
    'Bytes the queue takes in Redis, estimated from some of its tasks.',
    'gauge',
    ({ memoryUsage }) => memoryUsage,
  ),
  ofQueue(
    'asynq_tasks_processed_total',
    'Number of attempts finished by all servers, failed ones included.',
    'counter',
    ({ processedTotal }) => processedTotal,
  ),
  ofQueue(
    'asynq_tasks_failed_total',
    'Number of attempts that failed on all servers.',
    'counter',
    ({ failedTotal }) => failedTotal,
  ),
  ofQueue('asynq_queue_paused_total', '1 when the queue is paused, else 0.', 'gauge', ({ paused }) => Number(paused)),
];
