import { floorSeconds } from '../../clock.js';
import { type DeletionStatus, type MoveStatus, type Place, type MoveAction, type UpdateStatus } from '../inspection.js';
import { isAllowed } from '../../task/actions.js';
import { placeOf } from './list.js';
import { trimArchived } from './maintain.js';
import { type QueueStore, type TaskRecord, readMessage, storedMessage, wellFormed } from './queue-store.js';

/** What is done to each task; `at` in Unix seconds. */
type Step =
  { readonly action: MoveAction; readonly maxArchived?: number } | { readonly action: 'schedule'; readonly at: number };

/** @param now milliseconds since the epoch */
export function moveTasks(
  store: QueueStore,
  step: Step,
  ids: readonly string[],
  from: Place | undefined,
  now: number,
): MoveStatus[] {
  const statuses = ids.map((id) => moveOne(store, step, wellFormed(id), from, now));
  if (step.action === 'archive' && step.maxArchived === undefined) trimArchived(store, Infinity, now);
  return statuses;
}

function moveOne(store: QueueStore, step: Step, id: string, from: Place | undefined, now: number): MoveStatus {
  const record = store.tasks.get(id);
  if (!record) return 'missing';
  const { state } = record;
  if (state === 'active') return 'active';
  if (from && state !== from.state) return 'elsewhere';
  const group = wellFormed(from?.group ?? record.group ?? '');
  const isThere = state === 'pending' || placeOf(store, { state, group }).score(id) !== undefined;
  if (!isThere) return group === record.group ? 'claimed' : 'elsewhere';
  const { action } = step;
  if ((action === 'run' && state === 'pending') || (action === 'archive' && state === 'archived')) return 'same';
  if (step.action === 'archive' && store.archived.size >= (step.maxArchived ?? Infinity)) return 'full';
  const due = state === 'scheduled' || state === 'retry' ? store[state].score(id) : undefined;
  leave(store, { state, group }, id);
  if (step.action === 'schedule') reschedule(store, id, record, step.at, due ?? floorSeconds(now), now);
  else arrive(store, step.action, id, record, now);
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

export function updatePayload(store: QueueStore, id: string, payload: Buffer, replaces?: Buffer): UpdateStatus {
  const record = store.tasks.get(id);
  if (!record) return 'missing';
  if (!isAllowed('edit', record.state)) return 'notEditable';
  const before = readMessage(record);
  if (replaces && !before.payload.equals(replaces)) return 'different';
  record.msg = storedMessage({ ...before, payload });
  return 'updated';
}

export function refuseDeletion(store: QueueStore, force: boolean): DeletionStatus | undefined {
  if (store.lease.size > 0) return 'active';
  return store.tasks.size + store.sets.size > 0 && !force ? 'notEmpty' : undefined;
}
