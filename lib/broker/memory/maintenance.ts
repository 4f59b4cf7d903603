import { floorSeconds } from '../../clock.js';
import type { ArchiveLimit } from '../archives.js';
import type { ExpiredLeases, LeasedTask, MaintenanceRole } from '../broker.js';
import { WAITING_GROUP } from '../links.js';
import { FairPending } from './fair-pending.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, type TaskRecord, readMessage } from './queue-store.js';
import type { SortedSet } from '../sorted-set.js';

/** The leases of one server end within this time. */
const SOON_SECONDS = 15;

export class MemoryMaintenance implements MaintenanceRole {
  constructor(private readonly state: MemoryState) {}

  async forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }> {
    return this.state.change(queue, forward);
  }

  /** No Go server takes tasks here. */
  async fillTurns(): Promise<{ before: number; filled: number }> {
    this.state.assertOpen();
    return { before: 0, filled: 0 };
  }

  async hasLines(queue: string): Promise<boolean> {
    return this.state.change(queue, ({ pending }) => pending instanceof FairPending && pending.size > 0);
  }

  /** Nothing is lost here. */
  async repairLines(): Promise<number> {
    this.state.assertOpen();
    return 0;
  }

  async listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases> {
    return this.state.change(queue, (store) => listExpiredLeases(store, queue, cutoff, limit));
  }

  /** There is nothing to repair: here a task is active exactly when it is leased. */
  async repairActive(queue: string): Promise<number> {
    return this.state.change(queue, () => 0);
  }

  async deleteExpiredCompleted(queue: string, limit: number): Promise<number> {
    return this.state.change(queue, (store, now) => deleteExpiredCompleted(store, limit, now));
  }

  async trimArchived(queue: string, limit: number): Promise<number> {
    return this.state.change(queue, (store, now) => trimArchived(store, this.state.archives.of(queue), limit, now));
  }

  /** No Go server writes here. */
  async deleteLateResults(): Promise<number> {
    this.state.assertOpen();
    return 0;
  }
}

/** Moves due tasks of `scheduled`, then of `retry`. */
function forward(store: QueueStore, now: number): { moved: number; nextDue: number | undefined } {
  const moved = forwardFrom(store, store.scheduled, now) + forwardFrom(store, store.retry, now);
  return { moved, nextDue: store.nextDue };
}

function forwardFrom(store: QueueStore, source: SortedSet, now: number): number {
  const due = source.upTo(floorSeconds(now));
  for (const { id } of due) {
    source.delete(id);
    const record = store.tasks.get(id);
    // One that has waited for others, and was run by hand.
    if (record?.group && record.group !== WAITING_GROUP) store.addToGroup(id, record, record.group, floorSeconds(now));
    else if (record) store.addPending(id, record, now);
  }
  return due.length;
}

function listExpiredLeases(store: QueueStore, queue: string, cutoff: number, limit: number): ExpiredLeases {
  const tasks = store.lease.upTo(cutoff, limit).flatMap(({ id, score }): LeasedTask[] => {
    const record = store.tasks.get(id);
    return record ? [{ lease: { queue, id, expiresAt: score }, message: readMessage(record) }] : [];
  });
  const ending =
    tasks.length > 0 ? store.lease.upTo(cutoff + SOON_SECONDS).length - store.lease.upTo(cutoff).length : 0;
  return { tasks, damaged: [], dangling: 0, ending };
}

function deleteExpiredCompleted(store: QueueStore, limit: number, now: number): number {
  const expired = store.completed.upTo(floorSeconds(now), limit);
  for (const { id } of expired) {
    store.completed.delete(id);
    store.tasks.delete(id);
  }
  return expired.length;
}

/**
 * Deletes the oldest archived tasks: those past their time, and those beyond the maximal number.
 * Never one of `spared`.
 */
export function trimArchived(
  store: QueueStore,
  { maxTasks, maxAge }: ArchiveLimit,
  limit: number,
  now: number,
  spared?: ReadonlySet<string>,
): number {
  const cutoff = floorSeconds(now) - maxAge;
  const surplus = store.archived.size - maxTasks;
  const doomed: string[] = [];
  let rank = 0;
  for (const { id, score } of store.archived) {
    if ((rank >= surplus && score > cutoff) || doomed.length >= limit) break;
    if (!spared?.has(id)) doomed.push(id);
    rank++;
  }
  for (const id of doomed) deleteArchived(store, id, store.tasks.get(id), now);
  return doomed.length;
}

function deleteArchived(store: QueueStore, id: string, record: TaskRecord | undefined, now: number): void {
  store.archived.delete(id);
  store.tasks.delete(id);
  if (record?.uniqueKey) store.locks.release(record.uniqueKey, id, now);
}
