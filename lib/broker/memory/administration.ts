import type { ArchiveLimit } from '../archives.js';
import { floorSeconds } from '../../clock.js';
import { isAllowed } from '../../task/actions.js';
import type {
  AdministrationRole,
  DeletionOptions,
  DeletionStatus,
  MoveAction,
  MoveStatus,
  TaskLocation,
  UpdateStatus,
} from '../inspection.js';
import { sortedSetOf } from './listing.js';
import type { MemoryState } from './memory-state.js';
import { trimArchived } from './maintenance.js';
import { type QueueStore, type TaskRecord, readMessage, storedMessage, wellFormed } from './queue-store.js';

export class MemoryAdministration implements AdministrationRole {
  constructor(private readonly state: MemoryState) {}

  async moveTasks(
    queue: string,
    action: MoveAction,
    ids: readonly string[],
    from?: TaskLocation,
    maxArchived?: number,
  ): Promise<MoveStatus[]> {
    return this.state.change(queue, (store, now) =>
      moveTasks(store, this.state.archives.of(queue), { action, maxArchived }, ids, from, now),
    );
  }

  async rescheduleTasks(queue: string, ids: readonly string[], at: number, from?: TaskLocation): Promise<MoveStatus[]> {
    return this.state.change(queue, (store, now) =>
      moveTasks(store, this.state.archives.of(queue), { action: 'schedule', at }, ids, from, now),
    );
  }

  async updatePayload(queue: string, id: string, payload: Buffer, replaces?: Buffer): Promise<UpdateStatus> {
    return this.state.change(queue, (store) => updatePayload(store, wellFormed(id), payload, replaces));
  }

  async pauseQueue(queue: string): Promise<boolean> {
    return this.state.change(queue, (store, now) => {
      if (store.pausedAt !== undefined) return false;
      store.pausedAt = floorSeconds(now);
      return true;
    });
  }

  async resumeQueue(queue: string): Promise<boolean> {
    return this.state.change(queue, (store) => {
      if (store.pausedAt === undefined) return false;
      store.pausedAt = undefined;
      return true;
    });
  }

  async deleteQueue(queue: string, { force, onProgress, signal }: DeletionOptions): Promise<DeletionStatus> {
    this.state.assertOpen();
    signal?.throwIfAborted();
    const name = wellFormed(queue);
    const store = this.state.store(name);
    const keepsMore = this.state.keepsMore(name);
    const refused = refuseDeletion(store, keepsMore, force);
    if (refused) return refused;
    this.state.stores.delete(name);
    if (keepsMore) this.state.store(name).listed = true;
    this.state.tasksChanged(name);
    onProgress?.(store.tasks.size);
    return 'deleted';
  }
}

/** What is done to each task; `at` in Unix seconds. */
type Step =
  | { readonly action: MoveAction; readonly maxArchived?: number }
  | { readonly action: 'schedule'; readonly at: number };

/** @param now milliseconds since the epoch */
function moveTasks(
  store: QueueStore,
  limit: ArchiveLimit,
  step: Step,
  ids: readonly string[],
  from: TaskLocation | undefined,
  now: number,
): MoveStatus[] {
  const statuses = ids.map((id) => moveOne(store, step, wellFormed(id), from, now));
  if (step.action === 'archive' && step.maxArchived === undefined) trimArchived(store, limit, Infinity, now);
  return statuses;
}

function moveOne(store: QueueStore, step: Step, id: string, from: TaskLocation | undefined, now: number): MoveStatus {
  const record = store.tasks.get(id);
  if (!record) return 'missing';
  const state = store.stateOf(id, record);
  if (state === 'active') return 'active';
  if (from && state !== from.state) return 'elsewhere';
  const group = wellFormed(from?.group ?? record.group ?? '');
  const isThere = state === 'pending' || sortedSetOf(store, { state, group }).score(id) !== undefined;
  if (!isThere) return group === record.group ? 'claimed' : 'elsewhere';
  const { action } = step;
  if (action === 'schedule' && state === 'waiting') return 'waiting';
  if ((action === 'run' && state === 'pending') || (action === 'archive' && state === 'archived')) return 'same';
  if (step.action === 'archive' && store.archived.size >= (step.maxArchived ?? Infinity)) return 'full';
  const due = state === 'scheduled' || state === 'retry' ? store[state].score(id) : undefined;
  leave(store, { state, group }, id);
  if (state === 'held') record.state = 'scheduled';
  if (state === 'waiting') record.group = undefined;
  if (step.action === 'schedule') reschedule(store, id, record, step.at, due ?? floorSeconds(now), now);
  else arrive(store, step.action, id, record, now);
  return 'moved';
}

function leave(store: QueueStore, { state, group = '' }: TaskLocation, id: string): void {
  if (state === 'pending') {
    store.pending.remove(id);
    return;
  }
  const set = state === 'held' ? store.retry : sortedSetOf(store, { state, group });
  set.delete(id);
  if (state === 'aggregating' && set.size === 0) store.groups.delete(group);
}

function arrive(store: QueueStore, action: MoveAction, id: string, record: TaskRecord, now: number): void {
  if (action === 'run') {
    store.addPending(id, record, now);
  } else if (action === 'archive') {
    record.state = 'archived';
    record.pendingSince = undefined;
    store.archived.set(id, floorSeconds(now));
  } else {
    store.tasks.delete(id);
    if (record.uniqueKey) store.locks.release(record.uniqueKey, id, now);
  }
}

/** @param due when it was to run before; Unix seconds, as `at` */
function reschedule(store: QueueStore, id: string, record: TaskRecord, at: number, due: number, now: number): void {
  if (record.state !== 'retry') record.state = 'scheduled';
  record.pendingSince = undefined;
  store[record.state as 'scheduled' | 'retry'].set(id, at);
  if (record.uniqueKey && at > due) store.locks.extend(record.uniqueKey, id, at - due, now);
}

function updatePayload(store: QueueStore, id: string, payload: Buffer, replaces?: Buffer): UpdateStatus {
  const record = store.tasks.get(id);
  if (!record) return 'missing';
  if (!isAllowed('edit', store.stateOf(id, record))) return 'notEditable';
  const before = readMessage(record);
  if (replaces && !before.payload.equals(replaces)) return 'different';
  record.msg = storedMessage({ ...before, payload });
  return 'updated';
}

function refuseDeletion(store: QueueStore, keepsMore: boolean, force: boolean): DeletionStatus | undefined {
  if (store.lease.size > 0) return 'active';
  if (force) return undefined;
  if (store.tasks.size + store.sets.size > 0) return 'notEmpty';
  return keepsMore ? 'kept' : undefined;
}
