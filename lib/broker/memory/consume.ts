import { floorSeconds } from '../../clock.js';
import {
  type ExchangeReply,
  type ExchangeRequest,
  type Lease,
  type LeasedTask,
  LEASE_SECONDS,
  type Settlement,
  type SettleStatus,
} from '../broker.js';
import { trimArchived } from './maintain.js';
import { type QueueStore, type TaskRecord, storedMessage, wellFormed } from './queue-store.js';

/** Settles in order, then takes. Messages are encoded, and so checked, before anything is written. */
export function exchange(store: QueueStore, queue: string, request: ExchangeRequest, now: number): ExchangeReply {
  const messages = request.settle.map((item) =>
    'message' in item && item.message ? storedMessage(item.message) : undefined,
  );
  const archived = new Set<string>();
  const settled = request.settle.map((item, index): SettleStatus => {
    const id = wellFormed(item.lease.id);
    const record = store.leased(item.lease);
    if (!record) return 'lost';
    record.msg = messages[index] ?? record.msg;
    store.lease.delete(id);
    settle(store, item, id, record, now);
    if (item.kind === 'archive') archived.add(id);
    return 'settled';
  });
  if (archived.size > 0) trimArchived(store, Infinity, now, archived);
  return { settled, tasks: takeFront(store, queue, request.take, now), damaged: [], backlog: store.backlog };
}

function settle(store: QueueStore, item: Settlement, id: string, record: TaskRecord, now: number): void {
  switch (item.kind) {
    case 'done':
      store.tasks.delete(id);
      return succeed(store, id, item.uniqueKey, now);
    case 'complete':
      record.state = 'completed';
      if (item.result) record.result = Buffer.from(item.result);
      store.completed.set(id, item.expiresAt);
      return succeed(store, id, item.message.uniqueKey, now);
    case 'retry':
      record.state = 'retry';
      store.retry.set(id, item.retryAt);
      return item.countAsFailure ? countFailure(store, now) : undefined;
    case 'archive':
      record.state = 'archived';
      store.archived.set(id, floorSeconds(now));
      return countFailure(store, now);
    case 'requeue':
      record.state = 'pending';
      record.pendingSince = now;
      return store.pending.pushFront(id);
  }
}

function succeed(store: QueueStore, id: string, uniqueKey: string, now: number): void {
  store.processed.increment(now);
  if (uniqueKey !== '') store.locks.release(wellFormed(uniqueKey), id, now);
}

function countFailure(store: QueueStore, now: number): void {
  store.processed.increment(now);
  store.failed.increment(now);
}

function takeFront(store: QueueStore, queue: string, count: number, now: number): LeasedTask[] {
  const tasks: LeasedTask[] = [];
  while (tasks.length < count && store.backlog > 0) {
    const id = store.pending.popFront();
    const task = id === undefined ? undefined : store.lend(queue, id, floorSeconds(now) + LEASE_SECONDS);
    if (task) tasks.push(task);
  }
  return tasks;
}

/** Leases one given pending task, wherever in the line it is and whether or not the queue is paused. */
export function takeOne(store: QueueStore, queue: string, id: string, now: number): LeasedTask | undefined {
  if (!store.pending.remove(id)) return undefined;
  return store.lend(queue, id, floorSeconds(now) + LEASE_SECONDS);
}

/** Extends each lease that is still ours. */
export function extendLeases(store: QueueStore, leases: readonly Lease[], expiresAt: number): boolean[] {
  return leases.map((lease) => {
    const ours = store.leased(lease) !== undefined;
    if (ours) {
      store.lease.set(wellFormed(lease.id), expiresAt);
      lease.expiresAt = expiresAt;
    }
    delete lease.renewing;
    return ours;
  });
}

export function writeResult(store: QueueStore, lease: Lease, result: Buffer): boolean {
  const record = store.leased(lease);
  if (!record) return false;
  record.result = Buffer.from(result);
  return true;
}
