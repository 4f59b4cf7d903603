import { floorSeconds } from '../../clock.js';
import type { SchedulerEnqueueEvent, SchedulerEntry } from '../../wire/message.js';
import type {
  Firing,
  FiringReply,
  FiringStatus,
  PauseStatus,
  SchedulePause,
  ScheduleProgress,
  SchedulingRole,
} from '../scheduling.js';
import type { EnqueueStatus } from '../broker.js';
import { isLinked } from '../links.js';
import type { LinkEngine } from './links/engine.js';
import type { MemoryState } from './memory-state.js';
import type { SchedulerPublications } from './scheduler-publications.js';
import { type QueueStore, type StoredSchedule, wellFormed } from './queue-store.js';

export class MemoryScheduling implements SchedulingRole {
  constructor(
    private readonly state: MemoryState,
    private readonly links: LinkEngine,
    private readonly publications: SchedulerPublications,
  ) {}

  async openSchedule(queue: string, entry: string, spec: string, keepFor: number): Promise<ScheduleProgress> {
    return this.state.change(queue, (store, now) => openSchedule(store, entry, spec, keepFor, now));
  }

  async fire(queue: string, firing: Firing): Promise<FiringReply> {
    const enqueue = (): EnqueueStatus => this.links.enqueue(wellFormed(queue), firing.request);
    const caused = isLinked(firing.request) ? { parcels: [] } : {};
    return this.links.cause(queue, (store, now) => ({ ...fire(store, firing, enqueue, now), ...caused }));
  }

  async pauseSchedule(queue: string, entry: string): Promise<PauseStatus> {
    return this.state.change(queue, (store, now) => {
      const known = store.schedules.get(wellFormed(entry));
      if (!known || known.expiresAt <= now) return 'unknown';
      if (known.pausedAt !== undefined) return 'same';
      known.pausedAt = floorSeconds(now);
      return 'changed';
    });
  }

  async resumeSchedule(queue: string, entry: string): Promise<PauseStatus> {
    return this.state.change(queue, (store, now) => {
      const known = store.schedules.get(wellFormed(entry));
      if (!known || known.expiresAt <= now) return 'unknown';
      if (known.pausedAt === undefined) return 'same';
      known.pausedAt = undefined;
      known.resumedAt = floorSeconds(now);
      return 'changed';
    });
  }

  async readPause(queue: string, entry: string): Promise<SchedulePause> {
    this.state.assertOpen();
    const { handledUntil, pausedAt } = find(this.state.store(queue), entry, this.state.now);
    return { known: handledUntil !== -Infinity, pausedAt };
  }

  async writeSchedulerEntries(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number): Promise<void> {
    this.state.assertOpen();
    this.publications.publish(schedulerId, entries, ttl, this.state.now);
  }

  async clearSchedulerEntries(schedulerId: string): Promise<void> {
    this.state.assertOpen();
    this.publications.clear(schedulerId);
  }

  async recordEnqueueEvent(entryId: string, event: SchedulerEnqueueEvent): Promise<void> {
    this.state.assertOpen();
    this.publications.record(entryId, event, this.state.now);
  }
}

const UNKNOWN = {
  handledUntil: -Infinity,
  spec: '',
  lastFiredAt: undefined,
  attempt: undefined,
  status: undefined,
  task: undefined,
  pausedAt: undefined,
  resumedAt: undefined,
};

function find(store: QueueStore, entry: string, now: number): StoredSchedule {
  for (const [name, { expiresAt }] of store.schedules) if (expiresAt <= now) store.schedules.delete(name);
  return store.schedules.get(wellFormed(entry)) ?? { ...UNKNOWN, expiresAt: 0 };
}

/** @param keepFor seconds @param now milliseconds since the epoch */
function openSchedule(store: QueueStore, entry: string, spec: string, keepFor: number, now: number): ScheduleProgress {
  const known = find(store, entry, now);
  const begins = known.spec !== wellFormed(spec) || known.handledUntil === -Infinity;
  const handledUntil = begins ? Math.max(known.handledUntil, floorSeconds(now)) : known.handledUntil;
  const expiresAt = now + keepFor * 1000;
  store.schedules.set(wellFormed(entry), { ...known, handledUntil, spec: wellFormed(spec), expiresAt });
  return { handledUntil, lastFiredAt: known.lastFiredAt };
}

function fire(store: QueueStore, firing: Firing, enqueue: () => EnqueueStatus, now: number): FiringReply {
  const { entry, scheduledFor, attempt, request, skipUnfinished, keepFor } = firing;
  store.listed = true;
  const known = find(store, entry, now);
  if (known.handledUntil >= scheduledFor) {
    const status = known.attempt === attempt ? known.status! : 'past';
    return { status, handledUntil: known.handledUntil, lastFiredAt: known.lastFiredAt };
  }
  const progress = { handledUntil: scheduledFor, attempt, expiresAt: now + keepFor * 1000 };
  if (known.pausedAt !== undefined || (known.resumedAt ?? -Infinity) >= scheduledFor) {
    store.schedules.set(wellFormed(entry), { ...known, ...progress, status: 'paused' });
    return { status: 'paused', handledUntil: scheduledFor, lastFiredAt: known.lastFiredAt };
  }
  const unfinished = skipUnfinished && known.task !== undefined && isUnfinished(store, known.task);
  const status: FiringStatus = unfinished ? 'unfinished' : enqueue();
  const task = status === 'enqueued' ? wellFormed(request.message.id) : known.task;
  store.schedules.set(wellFormed(entry), { ...known, ...progress, lastFiredAt: scheduledFor, status, task });
  return { status, handledUntil: scheduledFor, lastFiredAt: scheduledFor };
}

function isUnfinished(store: QueueStore, id: string): boolean {
  const state = store.tasks.get(id)?.state;
  return state !== undefined && state !== 'completed' && state !== 'archived';
}
