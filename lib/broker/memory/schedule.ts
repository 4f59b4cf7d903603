import { floorSeconds } from '../../clock.js';
import type { Firing, FiringReply, FiringStatus, ScheduleMark } from '../scheduling.js';
import { enqueueAll } from './produce.js';
import { type QueueStore, type StoredSchedule, wellFormed } from './queue-store.js';

const UNKNOWN = { mark: -Infinity, spec: '', fired: undefined, attempt: undefined, status: undefined, task: undefined };

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
): ScheduleMark {
  const known = find(store, entry, now);
  const begins = known.spec !== wellFormed(spec) || known.mark === -Infinity;
  const mark = begins ? Math.max(known.mark, floorSeconds(now)) : known.mark;
  const expiresAt = now + keepFor * 1000;
  store.schedules.set(wellFormed(entry), { ...known, mark, spec: wellFormed(spec), expiresAt });
  return { mark, fired: known.fired };
}

export function fire(store: QueueStore, firing: Firing, now: number): FiringReply {
  const { entry, planned, attempt, request, skipUnfinished, keepFor } = firing;
  store.announced = true;
  const known = find(store, entry, now);
  if (known.mark >= planned) {
    return { status: known.attempt === attempt ? known.status! : 'past', mark: known.mark };
  }
  const unfinished = skipUnfinished && known.task !== undefined && isUnfinished(store, known.task);
  const status: FiringStatus = unfinished ? 'unfinished' : enqueueAll(store, [request], now)[0]!;
  const task = status === 'enqueued' ? wellFormed(request.message.id) : known.task;
  const expiresAt = now + keepFor * 1000;
  store.schedules.set(wellFormed(entry), {
    ...known,
    mark: planned,
    fired: planned,
    attempt,
    status,
    task,
    expiresAt,
  });
  return { status, mark: planned };
}

function isUnfinished(store: QueueStore, id: string): boolean {
  const state = store.tasks.get(id)?.state;
  return state !== undefined && state !== 'completed' && state !== 'archived';
}
