import type { TaskMessage } from '../../wire/message.js';
import type { TaskState } from '../../wire/states.js';
import { type QueueStore, type TaskRecord, readMessage } from './queue-store.js';
import { type SortedSet, compareIds } from '../sorted-set.js';

/** An id and its score in Unix seconds. */
export type ScoredId = readonly [id: string, score: number];

export interface TaskSnapshot {
  readonly state: TaskState;
  readonly message: TaskMessage;
  readonly result: Buffer | undefined;
  /** Hash field `unique_key`. */
  readonly uniqueKey: string | undefined;
  /** Hash field `group`. */
  readonly group: string | undefined;
  /** Hash field `pending_since`, in milliseconds since the epoch. */
  readonly pendingSince: number | undefined;
}

export interface SetSnapshot {
  readonly group: string;
  /** Unix seconds. */
  readonly deadline: number;
  readonly members: readonly ScoredId[];
}

export const compareSets = (a: SetSnapshot, b: SetSnapshot): number => compareIds(JSON.stringify(a), JSON.stringify(b));

/**
 * Everything that can be observed of a queue, in one order: queues in the same state have equal
 * snapshots.
 */
export interface QueueSnapshot {
  /** In the order they are to run. */
  readonly pending: readonly string[];
  /** In the order of the ids' bytes; what was taken when shows in `lease`. */
  readonly active: readonly string[];
  readonly lease: readonly ScoredId[];
  readonly scheduled: readonly ScoredId[];
  readonly retry: readonly ScoredId[];
  readonly archived: readonly ScoredId[];
  readonly completed: readonly ScoredId[];
  readonly groups: Readonly<Record<string, readonly ScoredId[]>>;
  /** Aggregation sets in the order of group, deadline and members; their keys are random. */
  readonly sets: readonly SetSnapshot[];
  /** The names in the set `groups`. */
  readonly groupNames: readonly string[];
  /** The ids of each waitlist, in their order, including those that no longer wait. */
  readonly waitlists: Readonly<Record<string, readonly string[]>>;
  /** The ids of the tasks that are held, the longest first. */
  readonly held: readonly string[];
  readonly tasks: Readonly<Record<string, TaskSnapshot>>;
  /** By key; `expiresIn` in milliseconds. */
  readonly locks: Readonly<Record<string, { readonly owner: string; readonly expiresIn: number }>>;
  /** Up to when the planned times of each periodic entry are dealt with, in Unix seconds. */
  readonly schedules: Readonly<Record<string, number>>;
  /** Unix seconds. */
  readonly pausedAt: number | undefined;
  readonly processed: number;
  readonly failed: number;
  readonly processedOn: Readonly<Record<string, number>>;
  readonly failedOn: Readonly<Record<string, number>>;
}

/** By queue name. */
export type Snapshot = Readonly<Record<string, QueueSnapshot>>;

const scored = (set: SortedSet): ScoredId[] => [...set].map(({ id, score }) => [id, score]);

const idsOf = (set: SortedSet): string[] => [...set].map(({ id }) => id);

const describeTask = (record: TaskRecord): TaskSnapshot => ({
  state: record.state,
  message: readMessage(record),
  result: record.result && Buffer.from(record.result),
  uniqueKey: record.uniqueKey,
  group: record.group,
  pendingSince: record.pendingSince,
});

/** @param now milliseconds since the epoch: what has expired by then is left out */
export function describeQueue(store: QueueStore, now: number): QueueSnapshot {
  const groups = [...store.groups].sort(([a], [b]) => compareIds(a, b));
  const tasks = [...store.tasks].sort(([a], [b]) => compareIds(a, b));
  return {
    pending: [...store.pending],
    active: [...store.lease].map(({ id }) => id).sort(compareIds),
    lease: scored(store.lease),
    scheduled: scored(store.scheduled),
    retry: scored(store.retry),
    archived: scored(store.archived),
    completed: scored(store.completed),
    groups: Object.fromEntries(groups.map(([name, members]) => [name, scored(members)])),
    sets: [...store.sets.values()]
      .map(({ members, ...set }) => ({ ...set, members: scored(members) }))
      .sort(compareSets),
    groupNames: groups.map(([name]) => name),
    waitlists: Object.fromEntries(
      [...store.waitlists].filter(([, list]) => list.size > 0).map(([name, list]) => [name, idsOf(list)]),
    ),
    held: idsOf(store.held),
    tasks: Object.fromEntries(tasks.map(([id, record]) => [id, describeTask(record)])),
    locks: store.locks.held(now),
    schedules: Object.fromEntries([...store.schedules].map(([entry, { handledUntil }]) => [entry, handledUntil])),
    pausedAt: store.pausedAt,
    processed: store.processed.total,
    failed: store.failed.total,
    processedOn: store.processed.byDay(now),
    failedOn: store.failed.byDay(now),
  };
}
