import type { QueueInfo, DailyStats } from '../../../inspector/views.js';
import { formatGoDuration, nanosecondsOf } from '../../../wire/go-duration.js';
import type { QueueStatus } from '../../queue-overview.js';
import { amount, count, flag, type Schema, shape, text, time } from '../schema.js';
import { goTime } from './times.js';

const QUEUE: Schema = shape({
  queue: text(),
  memory_usage_bytes: count('estimated from a sample'),
  size: count('tasks in all states'),
  groups: count('groups with waiting tasks'),
  latency_msec: count('how long the next task has waited'),
  display_latency: text("the same as Go's duration text"),
  oldest_pending_ms: amount('the same with its fraction'),
  active: count(),
  pending: count(),
  aggregating: count(),
  scheduled: count(),
  retry: count(),
  archived: count(),
  completed: count(),
  waiting: count('tasks that wait for other tasks'),
  held: count('tasks that a limit of their handler holds back, or that are too new for it'),
  oldest_held_ms: amount('how long the one that is held longest has been held'),
  processed: count('attempts finished today (UTC)'),
  succeeded: count('of those, today'),
  failed: count('of those, today'),
  processed_total: count(),
  failed_total: count(),
  paused: flag(),
  timestamp: time(),
});

export const queueSchemas = {
  Queue: QUEUE,
  UnreadableQueue: shape({ queue: text(), error: text('why it cannot be read') }),
  Daily: shape({
    queue: text(),
    processed: count(),
    succeeded: count(),
    failed: count(),
    date: text('YYYY-MM-DD, UTC'),
  }),
  Group: shape({ group: text(), size: count() }),
};

export function showQueue(state: QueueStatus) {
  return 'error' in state ? { queue: state.queue, error: state.error.message } : showReadable(state);
}

function showReadable(info: QueueInfo) {
  const { queue, size, groups, active, pending, aggregating, scheduled, retry, archived, completed, waiting, held } =
    info;
  return {
    queue,
    size,
    groups,
    active,
    pending,
    aggregating,
    scheduled,
    retry,
    archived,
    completed,
    waiting,
    held,
    oldest_held_ms: info.oldestHeld,
    memory_usage_bytes: info.memoryUsage,
    latency_msec: Math.trunc(info.latency),
    display_latency: formatGoDuration(nanosecondsOf(Math.round(info.latency / 10) * 10)),
    oldest_pending_ms: info.latency,
    processed: info.processed,
    succeeded: info.processed - info.failed,
    failed: info.failed,
    processed_total: info.processedTotal,
    failed_total: info.failedTotal,
    paused: info.paused,
    timestamp: goTime(info.timestamp),
  };
}

export const showDay = ({ queue, processed, failed, date }: DailyStats) => ({
  queue,
  processed,
  failed,
  date,
  succeeded: processed - failed,
});
