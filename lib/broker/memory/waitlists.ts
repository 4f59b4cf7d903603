import { floorSeconds } from '../../clock.js';
import type { ClaimedHeld } from '../broker.js';
import { type QueueStore, type TaskRecord, wellFormed } from './queue-store.js';

/**
 * A task in a waitlist runs after this time even if nobody wakes it: the least, one second per that
 * many in all waitlists, the most.
 */
const MIN_WAIT_SECONDS = 60;
const TASKS_PER_EXTRA_SECOND = 10;
const MAX_WAIT_SECONDS = 3_600;
/**
 * How many tasks at the front that were woken before are put in order with those that are woken
 * now.
 */
const MAX_WOKEN_AHEAD = 64;

/** Puts a task that was claimed, or is about to be, into a waitlist. */
export function defer(store: QueueStore, name: string, id: string, record: TaskRecord, now: number): void {
  const waitlist = store.waitlist(name);
  const seconds = Math.min(MIN_WAIT_SECONDS + Math.floor(store.held.size / TASKS_PER_EXTRA_SECOND), MAX_WAIT_SECONDS);
  const waitEnd = floorSeconds(now) + seconds;
  record.state = 'retry';
  // Its position: microseconds, but always behind those that are there.
  const since = record.waits?.since ?? Math.max(Math.floor(now) * 1000, (waitlist.last()?.score ?? 0) + 1);
  record.waits = { since, waitEnd, waitlist: name };
  store.retry.set(id, waitEnd);
  store.held.set(id, since);
  waitlist.set(id, since);
}

/**
 * The longest waiting first, in order with those that were woken before and not claimed yet. A task
 * that has left `retry` since, or is there for another time, no longer waits.
 */
export function wakeWaiting(store: QueueStore, name: string, count: number, now: number) {
  const waitlist = store.waitlist(wellFormed(name));
  if (store.pausedAt !== undefined) return { woken: 0, left: waitlist.size };
  const woken: string[] = [];
  for (let first = waitlist.first(); first && woken.length < count; first = waitlist.first()) {
    waitlist.delete(first.id);
    if (store.held.score(first.id) !== undefined) woken.push(first.id);
  }
  if (woken.length === 0) return { woken: 0, left: waitlist.size };
  const front = [...wokenBefore(store), ...woken];
  for (const id of woken) {
    const record = store.tasks.get(id)!;
    store.retry.delete(id);
    record.state = 'pending';
    record.pendingSince = now;
  }
  const since = (id: string): number => store.tasks.get(id)!.waits!.since;
  for (const id of front.reverse().sort((one, other) => since(other) - since(one))) {
    store.pending.remove(id);
    store.pending.pushFront(id);
  }
  return { woken: woken.length, left: waitlist.size };
}

/** Tasks at the front of the queue that have been in a waitlist. */
function wokenBefore(store: QueueStore): string[] {
  const ids: string[] = [];
  for (const id of store.pending) {
    if (ids.length === MAX_WOKEN_AHEAD || !store.tasks.get(id)?.waits) break;
    ids.push(id);
  }
  return ids;
}

/** The longest waiting first. One that has left `retry` since no longer waits. */
export function takeHeld(store: QueueStore, held: ReadonlyMap<string, number>, wanted: number) {
  const ids: string[] = [];
  const claimed = new Map<string, ClaimedHeld>();
  for (const [name, count] of held) {
    const waitlist = store.waitlists.get(wellFormed(name));
    const before = ids.length;
    const most = Math.min(before + count, wanted);
    for (let first = waitlist?.first(); first && ids.length < most; first = waitlist?.first()) {
      waitlist!.delete(first.id);
      if (store.held.score(first.id) === undefined) continue;
      store.retry.delete(first.id);
      ids.push(first.id);
    }
    claimed.set(name, { claimed: ids.length - before, left: waitlist?.size ?? 0 });
  }
  return { ids, claimed };
}
