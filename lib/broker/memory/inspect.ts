import type { DayCount, GroupSize, QueueNumbers } from '../inspection.js';
import { utcDay } from '../../wire/keys.js';
import type { QueueStore } from './queue-store.js';

/** Tasks looked at, as in Redis: for what they weigh, and for the one that has waited longest. */
const SAMPLE = 20;

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

export const groups = (store: QueueStore): GroupSize[] =>
  [...store.groups].sort(byName).map(([group, members]) => ({ group, size: members.size }));

/** @param now milliseconds since the epoch */
export function describeQueue(store: QueueStore, now: number): QueueNumbers {
  const day = utcDay(now);
  let aggregating = 0;
  for (const members of store.groups.values()) aggregating += members.size;
  return {
    pending: store.pending.size,
    active: store.lease.size,
    scheduled: store.scheduled.size,
    retry: store.retry.size,
    archived: store.archived.size,
    completed: store.completed.size,
    aggregating,
    groups: store.groups.size,
    processed: store.processed.byDay(now)[day] ?? 0,
    failed: store.failed.byDay(now)[day] ?? 0,
    processedTotal: store.processed.total,
    failedTotal: store.failed.total,
    paused: store.pausedAt !== undefined,
    latency: longestWait(store, now),
    memoryUsage: weigh(store),
  };
}

function longestWait(store: QueueStore, now: number): number {
  let longest = 0;
  let seen = 0;
  for (const id of store.pending) {
    if (++seen > SAMPLE) break;
    longest = Math.max(longest, now - (store.tasks.get(id)?.pendingSince ?? now));
  }
  return longest;
}

function weigh(store: QueueStore): number {
  let bytes = 0;
  let seen = 0;
  for (const [id, { msg, result }] of store.tasks) {
    if (++seen > SAMPLE) break;
    bytes += id.length + msg.length + (result?.length ?? 0);
  }
  return seen === 0 ? 0 : Math.floor((bytes / Math.min(seen, SAMPLE)) * store.tasks.size);
}

export function countsOfDays(store: QueueStore, days: readonly string[], now: number): DayCount[] {
  const processed = store.processed.byDay(now);
  const failed = store.failed.byDay(now);
  return days.map((day) => ({ day, processed: processed[day] ?? 0, failed: failed[day] ?? 0 }));
}
