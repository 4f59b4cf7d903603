import type { StoredAttempt } from '../../task/attempts.js';
import { utcDay } from '../../wire/keys.js';
import type { DayCount, GroupSize, InspectionRole, QueueNumbers, StoredTask } from '../inspection.js';
import { FairPending } from './fair-pending.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, wellFormed } from './queue-store.js';
import { attemptsOf } from './settlements.js';

/** How many tasks are measured, and checked for the longest wait, as in Redis. */
const SAMPLE_SIZE = 20;

export class MemoryInspection implements InspectionRole {
  constructor(private readonly state: MemoryState) {}

  async queues(): Promise<string[]> {
    this.state.assertOpen();
    return [...this.state.stores].flatMap(([queue, store]) => (store.listed ? [queue] : []));
  }

  async hasQueue(queue: string): Promise<boolean> {
    return this.state.change(queue, (store) => store.listed);
  }

  async groups(queue: string): Promise<GroupSize[]> {
    return this.state.change(queue, groups);
  }

  async describeQueue(queue: string): Promise<QueueNumbers> {
    return this.state.change(queue, describeQueue);
  }

  async countsOfDays(queue: string, days: readonly string[]): Promise<DayCount[]> {
    return this.state.change(queue, (store, now) => countsOfDays(store, days, now));
  }

  async getTask(queue: string, id: string): Promise<StoredTask | undefined> {
    return this.state.change(queue, (store) => store.describe(wellFormed(id)));
  }

  async attempts(queue: string, id: string): Promise<StoredAttempt[]> {
    return this.state.change(queue, (store) => attemptsOf(store.tasks.get(wellFormed(id))));
  }
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

const groups = (store: QueueStore): GroupSize[] =>
  [...store.groups].sort(byName).map(([group, members]) => ({ group, size: members.size }));

/** @param now milliseconds since the epoch */
function describeQueue(store: QueueStore, now: number): QueueNumbers {
  const day = utcDay(now);
  let aggregating = 0;
  for (const members of store.groups.values()) aggregating += members.size;
  return {
    pending: store.pending.size,
    active: store.lease.size,
    scheduled: store.scheduled.size,
    retry: store.retry.size - store.held.size,
    archived: store.archived.size,
    completed: store.completed.size,
    aggregating,
    waiting: store.waiting.size,
    held: store.held.size,
    groups: store.groups.size,
    processed: store.processed.byDay(now)[day] ?? 0,
    failed: store.failed.byDay(now)[day] ?? 0,
    processedTotal: store.processed.total,
    failedTotal: store.failed.total,
    paused: store.pausedAt !== undefined,
    latency: longestWait(store, now),
    oldestHeld: now - Math.floor((store.held.first()?.score ?? now * 1000) / 1000),
    memoryUsage: weigh(store),
    ...keysOf(store, now),
  };
}

function keysOf({ pending }: QueueStore, now: number): Pick<QueueNumbers, 'keys'> {
  const keys = pending instanceof FairPending ? pending.count(now) : { waiting: 0, held: 0 };
  return keys.waiting > 0 ? { keys } : {};
}

function longestWait(store: QueueStore, now: number): number {
  let longest = 0;
  let seen = 0;
  for (const id of store.pending) {
    if (++seen > SAMPLE_SIZE) break;
    longest = Math.max(longest, now - (store.tasks.get(id)?.pendingSince ?? now));
  }
  return longest;
}

function weigh(store: QueueStore): number {
  let bytes = 0;
  let seen = 0;
  for (const [id, { msg, result }] of store.tasks) {
    if (++seen > SAMPLE_SIZE) break;
    bytes += id.length + msg.length + (result?.length ?? 0);
  }
  return seen === 0 ? 0 : Math.floor((bytes / Math.min(seen, SAMPLE_SIZE)) * store.tasks.size);
}

function countsOfDays(store: QueueStore, days: readonly string[], now: number): DayCount[] {
  const processed = store.processed.byDay(now);
  const failed = store.failed.byDay(now);
  return days.map((day) => ({ day, processed: processed[day] ?? 0, failed: failed[day] ?? 0 }));
}
