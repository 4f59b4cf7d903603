import { floorSeconds } from '../../clock.js';
import type { Firing, FiringReply, FiringStatus, ScheduleProgress } from '../scheduling.js';
import { enqueueAll } from './produce.js';
import { type QueueStore, type StoredSchedule, wellFormed } from './queue-store.js';

const UNKNOWN = {
  handledUntil: -Infinity,
  spec: '',
  lastFiredAt: undefined,
  attempt: undefined,
  status: undefined,
  task: undefined,
};

function find(store: QueueStore, entry: string, now: number): StoredSchedule {
  for (const [name, { expiresAt }] of store.schedules) if (expiresAt <= now) store.schedules.delete(name);
  return store.schedules.get(wellFormed(entry)) ?? { ...UNKNOWN, expiresAt: 0 };
}

/** @param keepFor seconds @param now milliseconds since the epoch */
export function openSchedule(
  store: QueueStore,
  entry: string,
  spec: string,
  keepFor: number,
  now: number,
): ScheduleProgress {
  const known = find(store, entry, now);
  const begins = known.spec !== wellFormed(spec) || known.handledUntil === -Infinity;
  const handledUntil = begins ? Math.max(known.handledUntil, floorSeconds(now)) : known.handledUntil;
  const expiresAt = now + keepFor * 1000;
  store.schedules.set(wellFormed(entry), { ...known, handledUntil, spec: wellFormed(spec), expiresAt });
  return { handledUntil, lastFiredAt: known.lastFiredAt };
}

export function fire(store: QueueStore, firing: Firing, now: number): FiringReply {
  const { entry, scheduledFor, attempt, request, skipUnfinished, keepFor } = firing;
  store.announced = true;
  const known = find(store, entry, now);
  if (known.handledUntil >= scheduledFor) {
    return { status: known.attempt === attempt ? known.status! : 'past', handledUntil: known.handledUntil };
  }
  const unfinished = skipUnfinished && known.task !== undefined && isUnfinished(store, known.task);
  const status: FiringStatus = unfinished ? 'unfinished' : enqueueAll(store, [request], now)[0]!;
  const task = status === 'enqueued' ? wellFormed(request.message.id) : known.task;
  const expiresAt = now + keepFor * 1000;
  store.schedules.set(wellFormed(entry), {
    ...known,
    handledUntil: scheduledFor,
    lastFiredAt: scheduledFor,
    attempt,
    status,
    task,
    expiresAt,
  });
  return { status, handledUntil: scheduledFor };
}

function isUnfinished(store: QueueStore, id: string): boolean {
  const state = store.tasks.get(id)?.state;
  return state !== undefined && state !== 'completed' && state !== 'archived';
}
