import type { ArchiveLimit } from '../archives.js';
import { floorSeconds } from '../../clock.js';
import {
  type AwaitedEvent,
  type ClaimedHeld,
  type ConsumerRole,
  type ExchangeReply,
  type ExchangeRequest,
  type Lease,
  type LeasedTask,
  LEASE_SECONDS,
  MAX_ASIDE,
  type Settlement,
  type Sleep,
  type SettleStatus,
  type StoredResult,
} from '../broker.js';
import { stepOfAnswer } from '../checkpoints.js';
import { FairPending } from './fair-pending.js';
import type { LinkEngine } from './links/engine.js';
import { ARCHIVED, REVOKED } from './links/texts.js';
import type { MemoryState } from './memory-state.js';
import { trimArchived } from './maintenance.js';
import {
  hasCome,
  type QueueStore,
  type TaskRecord,
  readMessage,
  stepsOf,
  storedMessage,
  wellFormed,
} from './queue-store.js';
import { countsAsFailed, countsAsProcessed, noteAttempt, withoutReturn } from './settlements.js';

export class MemoryConsumer implements ConsumerRole {
  constructor(
    private readonly state: MemoryState,
    private readonly links: LinkEngine,
  ) {}

  async exchange(queue: string, request: ExchangeRequest): Promise<ExchangeReply> {
    return this.state.change(queue, (store, now) => {
      const reply = exchange(store, this.links, queue, request, now);
      trimAfter(store, this.state.archives.of(queue), request.settle, now);
      return reply;
    });
  }

  async extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]> {
    return this.state.change(queue, (store) => extendLeases(store, leases, expiresAt));
  }

  async writeResult(lease: Lease, result: Buffer): Promise<boolean> {
    return this.state.change(lease.queue, (store) => writeResult(store, lease, result));
  }
}

/** A queue with too many active tasks is polled again after this time. */
const LIMIT_RETRY_MS = 100;
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

/** Settles in order, then claims. Encodes, and so checks, messages before anything is written. */
function exchange(
  store: QueueStore,
  links: LinkEngine,
  queue: string,
  request: ExchangeRequest,
  now: number,
): ExchangeReply {
  const messages = request.settle.map((item) =>
    'message' in item && item.message ? storedMessage(item.message) : undefined,
  );
  const linked = links.isLinked(queue);
  const written: Settlement[] = [];
  const settled = request.settle.map((given, index): SettleStatus => {
    const record = store.leased(given.lease);
    if (!record) return 'lost';
    const { result } = record;
    const item = withoutReturn(given, record, now);
    written.push(item);
    if (item === given) record.msg = messages[index] ?? record.msg;
    settle(store, item, wellFormed(item.lease.id), record, now);
    if ('attempt' in given && given.attempt) noteAttempt(record, given.attempt); // of a deleted task it is gone with the record
    if (linked) notifyOfEnd(links, wellFormed(queue), item, result);
    return 'settled';
  });
  store.processed.add(written.filter(countsAsProcessed).length, now);
  store.failed.add(written.filter(countsAsFailed).length, now);
  if (linked) links.work(); // what this releases here can be claimed by this call
  const { wanted, limitedFor } = limitTake(store, request, now);
  const putAside = new Map([...(request.aside?.keys() ?? [])].map((type) => [type, 0]));
  const held = wanted > 0 && heldWanted(store, request) > 0 ? takeHeld(store, request.held!, wanted) : undefined;
  const waited = claimWoken(store, queue, held?.ids ?? [], now, request);
  const beside = held ? held.ids.length : 0;
  const begun = Math.min(beside, heldWanted(store, request) - aheadOf(request));
  const rest = Math.min(wanted - beside, request.take - Math.max(0, begun));
  const taken = [
    ...waited,
    ...takeFront(store, queue, rest, now, request, putAside, lackingOf(request, held?.claimed)),
  ];
  const tasks = linked ? taken.map((task) => withLinks(links, task)) : taken;
  const { limits, allowance = 0 } = request;
  if (limits && limits.rate > 0) store.starts(limits.window).add(tasks.length, now, { max: limits.rate, allowance });
  const fair = store.pending instanceof FairPending ? store.pending : undefined;
  const backlog = fair?.hasOpen(now) === false ? 0 : store.backlog;
  const opensIn = fair ? { opensIn: fair.opensIn(now) } : {};
  const wasPutAside = [...putAside.values()].some((count) => count > 0);
  const reply = {
    settled,
    tasks,
    damaged: [],
    backlog,
    limitedFor,
    ...opensIn,
    ...(wasPutAside && { aside: putAside }),
    ...(held && { held: held.claimed }),
  };
  return linked ? { ...reply, parcels: [], news: links.takeNews() } : reply;
}

/** Notifies the watchers of the task, if this is its end. @param result what the task has stored before */
function notifyOfEnd(links: LinkEngine, place: string, item: Settlement, result: Buffer | undefined): void {
  const id = wellFormed(item.lease.id);
  if (item.kind === 'archive' || item.kind === 'retry' || item.kind === 'sleep') links.retain(place, id);
  if (item.kind === 'archive') links.ended(place, id, false, item.reason || ARCHIVED);
  else if (item.kind === 'done' && item.revoked) links.ended(place, id, false, item.reason || REVOKED);
  else if (item.kind === 'done' || item.kind === 'complete') {
    links.ended(place, id, true, '', item.result === undefined ? result : bytesOf(item.result));
  }
}

/** A copy. */
const bytesOf = (result: StoredResult): Buffer => Buffer.from(result as string);

export function withLinks(links: LinkEngine, task: LeasedTask): LeasedTask {
  const watchers = links.watchersOf(wellFormed(task.lease.queue), wellFormed(task.lease.id));
  return watchers ? { ...task, links: watchers } : task;
}

/** How many of the wanted tasks the limits allow. */
function limitTake(store: QueueStore, request: ExchangeRequest, now: number): { wanted: number; limitedFor: number } {
  const { take, limits } = request;
  const held = heldWanted(store, request);
  let wanted = Math.min(take + aheadOf(request), Math.min(take, store.backlog) + held);
  let limitedFor = 0;
  if (!limits || wanted <= 0) return { wanted, limitedFor };
  const free = limits.active > 0 ? Math.max(0, limits.active - store.lease.size) : Infinity;
  if (free < wanted) [wanted, limitedFor] = [free, LIMIT_RETRY_MS];
  if (limits.rate === 0) return { wanted, limitedFor };
  const starts = store.starts(limits.window);
  const startable = Math.max(0, limits.rate - starts.count(now));
  if (startable < wanted) [wanted, limitedFor] = [startable, Math.max(limitedFor, starts.untilFewer(now))];
  return { wanted, limitedFor };
}

function settle(store: QueueStore, item: Settlement, id: string, record: TaskRecord, now: number): void {
  store.lease.delete(id);
  switch (item.kind) {
    case 'done':
      store.tasks.delete(id);
      return store.locks.release(wellFormed(item.uniqueKey), id, now);
    case 'complete':
      record.state = 'completed';
      if (item.result !== undefined) record.result = bytesOf(item.result);
      store.completed.set(id, item.expiresAt);
      return store.locks.release(wellFormed(item.message.uniqueKey), id, now);
    case 'retry':
      record.state = 'retry';
      return store.retry.set(id, item.retryAt);
    case 'archive':
      record.state = 'archived';
      return store.archived.set(id, floorSeconds(now));
    case 'requeue':
      record.state = 'pending';
      record.pendingSince = now;
      return store.pending.pushFront(id);
    case 'wait':
      return wait(store, wellFormed(item.waitlist), id, record, now);
    case 'sleep':
      return sleep(store, item, id, record, now);
  }
}

function sleep(store: QueueStore, item: Sleep, id: string, record: TaskRecord, now: number): void {
  const { checkpoint, wakeAt } = item;
  if (checkpoint) stepsOf(record).checkpoints.set(wellFormed(checkpoint.name), Buffer.from(checkpoint.bytes));
  const awaits = (item.awaits ?? []).map(wellFormedEvent);
  if (item.atOnce || awaits.some((event) => hasCome(record, event) || isNotCalled(record, event))) {
    record.state = 'pending';
    record.pendingSince = now;
    return store.pending.pushFront(id);
  }
  record.state = 'scheduled';
  record.awaits = awaits;
  store.scheduled.set(id, wakeAt);
}

/** Whether the checkpoint of the step is missing that has called the task: the handler calls it again. */
const isNotCalled = ({ steps }: TaskRecord, event: AwaitedEvent): boolean =>
  'answer' in event && steps?.checkpoints.has(stepOfAnswer(event.answer)) !== true;

const wellFormedEvent = (event: AwaitedEvent): AwaitedEvent =>
  'answer' in event ? { answer: wellFormed(event.answer) } : { signal: wellFormed(event.signal), n: event.n };

function wait(store: QueueStore, name: string, id: string, record: TaskRecord, now: number): void {
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

/** Each archiving trims the archive, but spares what it has archived. */
function trimAfter(store: QueueStore, limit: ArchiveLimit, items: readonly Settlement[], now: number): void {
  const spared = items.flatMap(({ kind, lease }) => (kind === 'archive' ? [wellFormed(lease.id)] : []));
  if (spared.length > 0) trimArchived(store, limit, Infinity, now, new Set(spared));
}

const aheadOf = ({ held, ahead = 0 }: ExchangeRequest): number => (held ? ahead : 0);

/** How many tasks of waitlists are asked for. */
function heldWanted(store: QueueStore, { held }: ExchangeRequest): number {
  if (!held || store.pausedAt !== undefined || store.pending instanceof FairPending) return 0;
  return [...held.values()].reduce((sum, count) => sum + count, 0);
}

/** The longest waiting first. One that has left `retry` since no longer waits. */
function takeHeld(store: QueueStore, held: ReadonlyMap<string, number>, wanted: number) {
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

/** By waitlist: how many tasks more were wanted than it has. */
const lackingOf = ({ held }: ExchangeRequest, claimed?: ReadonlyMap<string, ClaimedHeld>): Map<string, number> =>
  new Map([...(claimed ?? [])].map(([name, { claimed: count }]) => [name, held!.get(name)! - count]));

function claimWoken(
  store: QueueStore,
  queue: string,
  ids: readonly string[],
  now: number,
  { since }: ExchangeRequest,
): LeasedTask[] {
  const pendingSince = Math.floor(now);
  return ids.flatMap((id) => {
    const task = store.claim(queue, id, floorSeconds(now) + LEASE_SECONDS);
    if (!task) return [];
    return since ? { ...task, pendingSince } : task;
  });
}

function takeFront(
  store: QueueStore,
  queue: string,
  count: number,
  now: number,
  { aside, since, allowance = 0 }: ExchangeRequest,
  putAside: Map<string, number>,
  lacking: Map<string, number>,
): LeasedTask[] {
  const tasks: LeasedTask[] = [];
  const isFair = store.pending instanceof FairPending;
  let left = MAX_ASIDE;
  while (tasks.length < count && store.backlog > 0 && left > 0) {
    const id = store.popNext(now, allowance);
    if (id === undefined) break;
    const type = aside && !isFair ? putOneAside(store, aside, id, now, lacking) : undefined;
    if (type !== undefined) {
      putAside.set(type, putAside.get(type)! + 1);
      left -= 1;
      continue;
    }
    const task = store.claim(queue, id, floorSeconds(now) + LEASE_SECONDS, since);
    if (task) tasks.push(task);
  }
  return tasks;
}

/** Returns the type of the task if it was put into a waitlist. */
function putOneAside(
  store: QueueStore,
  aside: ReadonlyMap<string, string>,
  id: string,
  now: number,
  lacking: Map<string, number>,
): string | undefined {
  const record = store.tasks.get(id);
  if (!record) return undefined;
  const { type } = readMessage(record);
  const waitlist = aside.get(type);
  if (waitlist === undefined) return undefined;
  const more = lacking.get(waitlist) ?? 0;
  if (more > 0) {
    lacking.set(waitlist, more - 1);
    return undefined;
  }
  record.pendingSince = undefined;
  wait(store, wellFormed(waitlist), id, record, now);
  return type;
}

/** Leases one given pending task, at any position, paused or not. */
export function takeOne(store: QueueStore, queue: string, id: string, now: number): LeasedTask | undefined {
  if (!store.pending.remove(id)) return undefined;
  return store.claim(queue, id, floorSeconds(now) + LEASE_SECONDS);
}

/** Extends each lease that is ours when the call begins. */
function extendLeases(store: QueueStore, leases: readonly Lease[], expiresAt: number): boolean[] {
  const ours = leases.map((lease) => store.leased(lease) !== undefined);
  for (const [index, lease] of leases.entries()) {
    delete lease.renewing;
    if (!ours[index]) continue;
    store.lease.set(wellFormed(lease.id), expiresAt);
    lease.expiresAt = expiresAt;
  }
  return ours;
}

function writeResult(store: QueueStore, lease: Lease, result: Buffer): boolean {
  const record = store.leased(lease);
  if (!record) return false;
  record.result = Buffer.from(result);
  return true;
}
