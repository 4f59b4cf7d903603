import { floorSeconds } from '../../clock.js';
import {
  decodeList,
  decodeSorted,
  directionOf,
  encodeList,
  encodeSorted,
  nextAnchors,
  requireForward,
} from '../cursor.js';
import { WAITING_GROUP } from '../links.js';
import type { IdPage, ListedTask, ListingRole, ListRequest, TaskLocation, TaskPage } from '../inspection.js';
import { onlyProgress } from '../../task/notes.js';
import type { MemoryState } from './memory-state.js';
import { fairnessOf } from '../../wire/fairness.js';
import { FairPending } from './fair-pending.js';
import { type QueueStore, readMessage, wellFormed } from './queue-store.js';
import { type Scored, SortedSet } from '../sorted-set.js';

export class MemoryListing implements ListingRole {
  constructor(private readonly state: MemoryState) {}

  async listTasks(queue: string, request: ListRequest): Promise<TaskPage> {
    return this.state.change(queue, (store, now) => listTasks(store, request, now));
  }

  async listIds(queue: string, request: ListRequest): Promise<IdPage> {
    return this.state.change(queue, (store) => listIds(store, request));
  }
}

/** @param now milliseconds since the epoch */
function listTasks(store: QueueStore, request: ListRequest, now: number): TaskPage {
  const { ids, cursor } = listIds(store, request);
  const due = floorSeconds(now);
  const tasks = ids.flatMap((id): ListedTask[] => {
    const task = store.describe(id);
    if (!task) return [];
    const orphaned = task.state === 'active' && (store.lease.score(id) ?? due) <= due;
    const progress = task.state === 'active' ? task.notes?.progress : undefined;
    const notes = progress === undefined ? undefined : onlyProgress(progress);
    return [{ ...task, notes, orphaned, archivedAt: store.archived.score(id) }];
  });
  return { tasks, damaged: [], cursor };
}

function listIds(store: QueueStore, request: ListRequest): IdPage {
  return request.state === 'pending' || request.state === 'active'
    ? listUnsorted(store, request)
    : listSorted(sortedSetOf(store, request), request, request.state === 'retry' ? store.held : NONE);
}

const NONE = new SortedSet();

/** The sorted set of a place; an empty one for a group that is not there. */
export function sortedSetOf(store: QueueStore, { state, group = '' }: TaskLocation): SortedSet {
  if (state === 'waiting') return store.waiting;
  if (state === 'aggregating' && group === WAITING_GROUP) return store.waiting;
  if (state === 'aggregating') return store.groups.get(wellFormed(group)) ?? new SortedSet();
  return store[state as 'scheduled' | 'retry' | 'archived' | 'completed' | 'held'];
}

/** @param without those are left out */
function listSorted(
  set: SortedSet,
  { cursor, offset = 0, size, reverse: wanted }: ListRequest,
  without: SortedSet,
): IdPage {
  const position = decodeSorted(cursor);
  const reverse = directionOf(position, wanted);
  const after = position && { id: position.id.toString(), score: scoreOf(position.score) };
  const from = reverse ? set.backwards(after) : after ? set.after(after) : set;
  const page = slice(except(from, without), position ? 0 : offset, size + 1);
  const last = page[size - 1];
  const next =
    page.length > size && last && encodeSorted({ score: spell(last.score), id: Buffer.from(last.id), reverse });
  return { ids: page.slice(0, size).map(({ id }) => id), cursor: next || undefined };
}

function listUnsorted(store: QueueStore, request: ListRequest): IdPage {
  const { state, cursor, offset = 0, size, reverse, fairnessKey } = request;
  requireForward(state, reverse);
  const position = decodeList(cursor);
  const anchors = position?.anchors.map(String) ?? [];
  const list = fairnessKey !== undefined ? ofKey(store, fairnessKey) : listOf(store, state);
  const has = (id: string): boolean =>
    state === 'pending' ? store.pending.has(id) : store.lease.score(id) !== undefined;
  const anchor = anchors.find(has);
  const from = anchor === undefined ? list : behind(store, request, list, anchor);
  const page = slice(from, position ? 0 : offset, size + 1);
  const ids = page.slice(0, size);
  if (page.length <= size) return { ids, cursor: undefined };
  const seen = (position?.seen ?? offset) + size;
  return {
    ids,
    cursor: encodeList({
      seen,
      anchors: nextAnchors(
        ids.map((id) => Buffer.from(id)),
        position,
      ),
    }),
  };
}

const listOf = (store: QueueStore, state: string): Iterable<string> =>
  state === 'pending' ? store.pending : activeInOrder(store);

/** The pending tasks of a key of a fair queue. */
function ofKey({ pending, tasks }: QueueStore, key: string): Iterable<string> {
  if (pending instanceof FairPending) return pending.lineBy(wellFormed(key));
  return [...pending].filter((id) => (fairnessOf(readMessage(tasks.get(id)!).headers)?.key ?? '') === key);
}

function behind(
  store: QueueStore,
  { state, fairnessKey }: ListRequest,
  list: Iterable<string>,
  anchor: string,
): Iterable<string> {
  if (state === 'pending' && fairnessKey === undefined) return store.pending.behind(anchor);
  const ids = [...list];
  return ids.slice(ids.indexOf(anchor) + 1);
}

const activeInOrder = (store: QueueStore): string[] =>
  [...store.lease]
    .map(({ id }) => ({ id, turn: store.tasks.get(id)?.turn ?? 0 }))
    .sort((a, b) => a.turn - b.turn)
    .map(({ id }) => id);

function* except(from: Iterable<Scored>, without: SortedSet): Iterable<Scored> {
  for (const entry of from) if (without.score(entry.id) === undefined) yield entry;
}

function slice<T>(items: Iterable<T>, from: number, count: number): T[] {
  const found: T[] = [];
  let index = 0;
  for (const item of items) {
    if (found.length >= count) break;
    if (index++ >= from) found.push(item);
  }
  return found;
}

const spell = (score: number): string => (Math.abs(score) === Infinity ? (score > 0 ? 'inf' : '-inf') : String(score));

const scoreOf = (text: string): number =>
  text.endsWith('inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
