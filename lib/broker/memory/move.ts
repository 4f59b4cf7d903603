import { floorSeconds } from '../../clock.js';
import type { DeletionStatus, MoveStatus, Place, TaskAction, UpdateStatus } from '../inspection.js';
import { placeOf } from './list.js';
import { trimArchived } from './maintain.js';
import { type QueueStore, type TaskRecord, readMessage, storedMessage, wellFormed } from './queue-store.js';

/** @param now milliseconds since the epoch */
export function moveTasks(
  store: QueueStore,
  action: TaskAction,
  ids: readonly string[],
  from: Place | undefined,
  now: number,
): MoveStatus[] {
  const statuses = ids.map((id) => moveOne(store, action, wellFormed(id), from, now));
  if (action === 'archive') trimArchived(store, Infinity, now);
  return statuses;
}

function moveOne(store: QueueStore, action: TaskAction, id: string, from: Place | undefined, now: number): MoveStatus {
  const record = store.tasks.get(id);
  if (!record) return 'missing';
  const { state } = record;
  if (state === 'active') return 'active';
  if (from && state !== from.state) return 'elsewhere';
  const group = wellFormed(from?.group ?? record.group ?? '');
  const isThere = state === 'pending' || placeOf(store, { state, group }).score(id) !== undefined;
  if (!isThere) return group === record.group ? 'claimed' : 'elsewhere';
  if ((action === 'run' && state === 'pending') || (action === 'archive' && state === 'archived')) return 'same';
  leave(store, { state, group }, id);
  arrive(store, action, id, record, now);
  return 'moved';
}

function leave(store: QueueStore, { state, group = '' }: Place, id: string): void {
  if (state === 'pending') {
    store.pending.remove(id);
    return;
  }
  const set = placeOf(store, { state, group });
  set.delete(id);
  if (state === 'aggregating' && set.size === 0) store.groups.delete(group);
}

function arrive(store: QueueStore, action: TaskAction, id: string, record: TaskRecord, now: number): void {
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

export function updatePayload(store: QueueStore, id: string, payload: Buffer): UpdateStatus {
  const record = store.tasks.get(id);
  if (!record) return 'missing';
  if (record.state !== 'scheduled') return 'notScheduled';
  record.msg = storedMessage({ ...readMessage(record), payload });
  return 'updated';
}

export function refuseDeletion(store: QueueStore, force: boolean): DeletionStatus | undefined {
  if (store.lease.size > 0) return 'active';
  return store.tasks.size + store.sets.size > 0 && !force ? 'notEmpty' : undefined;
}
