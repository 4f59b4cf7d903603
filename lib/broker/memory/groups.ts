import { randomUUID } from 'node:crypto';
import { floorSeconds } from '../../clock.js';
import { Keyspace } from '../../wire/keys.js';
import {
  AGGREGATION_SECONDS,
  type AggregationSet,
  type ClaimedSet,
  type ClaimReply,
  type FinishReply,
  type FinishStatus,
  type GroupPolicy,
  type GroupsRole,
  type GroupsWatch,
  MAX_SET_SIZE,
  type PolicyOf,
} from '../groups.js';
import type { EnqueueStatus } from '../enqueue-request.js';
import { isLinked, type LinkedRequest } from '../links.js';
import type { LinkEngine } from './links/engine.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, type StoredSet, readMessage, storedMessage, wellFormed } from './queue-store.js';
import { SortedSet } from '../sorted-set.js';

export class MemoryGroups implements GroupsRole {
  constructor(
    private readonly state: MemoryState,
    private readonly keyPrefix: string,
    private readonly links: LinkEngine,
  ) {}

  async claimDueSets(queue: string, policyOf: PolicyOf, limit: number): Promise<ClaimReply> {
    const claims = (store: QueueStore, now: number) => claimDueSets(store, queue, this.keyPrefix, policyOf, limit, now);
    return this.state.change(queue, claims);
  }

  /** Nothing is remembered: what is in process is cheap to look at. */
  watchGroups(): GroupsWatch {
    return { close: async () => undefined };
  }

  async helpToClaim(queue: string, policyOf: PolicyOf, limit: number, busy: number): Promise<ClaimedSet[]> {
    return this.state.change(queue, (store, now) =>
      store.sets.size < busy ? [] : claimDueSets(store, queue, this.keyPrefix, policyOf, limit, now).sets,
    );
  }

  async readSet(set: ClaimedSet): Promise<AggregationSet> {
    return this.state.change(set.queue, (store) => readSet(store, set));
  }

  async archiveDamagedMembers(set: ClaimedSet, ids: readonly string[]): Promise<number> {
    return this.state.change(set.queue, (store, now) => archiveDamagedMembers(store, set, ids, now));
  }

  async finishSet(set: AggregationSet, request: LinkedRequest | undefined): Promise<FinishReply> {
    const enqueue = (made: LinkedRequest): EnqueueStatus => this.links.enqueue(wellFormed(set.queue), made);
    const caused = request && isLinked(request) ? { parcels: [] } : {};
    return this.links.cause(set.queue, (store, now) => {
      const status = finishSet(store, set, request, enqueue, now);
      return status === 'finished' ? { status, ...caused } : { status };
    });
  }

  async reclaimStaleSets(queue: string): Promise<number> {
    return this.state.change(queue, reclaimStaleSets);
  }

  /** There is nothing to repair: here a group is listed exactly when tasks wait in it. */
  async repairGroups(queue: string): Promise<{ listed: number; removed: number }> {
    return this.state.change(queue, () => ({ listed: 0, removed: 0 }));
  }

  /** Every group that holds tasks is listed here. */
  async listDelayedGroups(): Promise<undefined> {
    return undefined;
  }

  async listOverdueGroups(queue: string, cutoffOf: (group: string) => number | undefined): Promise<string[]> {
    return this.state.change(queue, (store) => listOverdueGroups(store, cutoffOf));
  }
}

function claimDueSets(
  store: QueueStore,
  queue: string,
  keyPrefix: string,
  policyOf: PolicyOf,
  limit: number,
  now: number,
): ClaimReply {
  const keys = new Keyspace(keyPrefix).queue(queue);
  const time = floorSeconds(now);
  const sets: ClaimedSet[] = [];
  let next = Infinity;
  for (const [group, members] of Array.from(store.groups)) {
    const policy = policyOf(group);
    if (!policy) continue;
    const due = dueAt(members, policy, time);
    if (due > time || sets.length >= limit) {
      next = Math.min(next, Math.max(due, time));
      continue;
    }
    const deadline = time + AGGREGATION_SECONDS;
    const key = keys.aggregationSet(group, randomUUID());
    store.sets.set(key, { group, members: takeFirst(store, group, members, policy), deadline });
    if (members.size > 0) next = time;
    sets.push({ queue, group, key, deadline });
  }
  return { sets, nextDue: next === Infinity ? undefined : next };
}

/** Unix seconds. */
function dueAt(members: SortedSet, { gracePeriod, maxDelay, maxSize }: GroupPolicy, now: number): number {
  if (maxSize > 0 && members.size >= maxSize) return now;
  const first = members.first()?.score ?? Infinity;
  const last = members.last()?.score ?? Infinity;
  return Math.min(last + gracePeriod, maxDelay > 0 ? first + maxDelay : Infinity);
}

function takeFirst(store: QueueStore, group: string, members: SortedSet, { maxSize }: GroupPolicy): SortedSet {
  const claimed = new SortedSet();
  for (const { id, score } of members.upTo(Infinity, Math.min(maxSize || MAX_SET_SIZE, MAX_SET_SIZE))) {
    members.delete(id);
    claimed.set(id, score);
  }
  if (members.size === 0) store.groups.delete(group);
  return claimed;
}

/** The set, if it still is the caller's. */
const own = (store: QueueStore, { key, deadline }: ClaimedSet): StoredSet | undefined => {
  const set = store.sets.get(key);
  return set?.deadline === deadline ? set : undefined;
};

function readSet(store: QueueStore, set: ClaimedSet): AggregationSet {
  const ids = [...(store.sets.get(set.key)?.members ?? [])].map(({ id }) => id);
  const tasks = ids.flatMap((id) => store.tasks.get(id) ?? []).map(readMessage);
  return { ...set, tasks, damaged: [] };
}

function archiveDamagedMembers(store: QueueStore, set: ClaimedSet, ids: readonly string[], now: number): number {
  const { members } = own(store, set) ?? {};
  const moved = ids.map(wellFormed).filter((id) => members?.delete(id));
  for (const id of moved) {
    store.tasks.get(id)!.state = 'archived';
    store.archived.set(id, floorSeconds(now));
  }
  return moved.length;
}

function finishSet(
  store: QueueStore,
  set: AggregationSet,
  request: LinkedRequest | undefined,
  enqueue: (request: LinkedRequest) => EnqueueStatus,
  now: number,
): FinishStatus {
  if (request) storedMessage(request.message); // encoded, and so checked, before anything is written
  const stored = own(store, set);
  if (!stored || (request && stored.members.size === 0)) return 'lost';
  const held = set.tasks.filter(({ id, uniqueKey }) => stored.members.score(id) !== undefined && uniqueKey !== '');
  const locks = held.flatMap(({ id, uniqueKey }) => store.locks.giveUp(wellFormed(uniqueKey), id, now) ?? []);
  const status = request ? enqueue(request) : 'enqueued';
  if (status !== 'enqueued') {
    for (const { key, lock } of locks) store.locks.restore(key, lock);
    return status;
  }
  for (const { id } of stored.members) store.tasks.delete(id);
  store.sets.delete(set.key);
  return 'finished';
}

function reclaimStaleSets(store: QueueStore, now: number): number {
  let reclaimed = 0;
  for (const [key, { group, members, deadline }] of store.sets) {
    if (deadline > floorSeconds(now)) continue;
    for (const { id, score } of members) store.addToGroup(id, store.tasks.get(id)!, group, score);
    reclaimed += members.size;
    store.sets.delete(key);
  }
  return reclaimed;
}

const listOverdueGroups = (store: QueueStore, cutoffOf: (group: string) => number | undefined): string[] =>
  [...store.groups]
    .filter(([group, members]) => (members.last()?.score ?? Infinity) <= (cutoffOf(group) ?? -Infinity))
    .map(([group]) => group);
